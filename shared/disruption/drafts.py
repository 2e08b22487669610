"""What a method found, before it is a command."""

from collections.abc import Iterable, Sequence

import msgspec

from shared.disruption.candidates import Candidate
from shared.model.action import CreateNodeClaim
from shared.model.cluster import Cluster
from shared.model.commands import Command, Method, Reason, Target, command
from shared.model.nodes import NodeClaim
from shared.scheduling.claims import claim_for
from shared.scheduling.placement import NewNode


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that may go together."""

    method: Method
    reason: Reason
    targets: tuple[Candidate, ...]
    new_nodes: tuple[NewNode, ...] = ()
    claims: tuple[NodeClaim, ...] = ()
    """Of static pools: made from the template."""
    moves: tuple[tuple[str, str], ...] = ()
    """Pods and the names of nodes or claims where they are expected, in an order in which they can be bound."""
    price_usd_per_hour: float = 0.0
    """What the nodes that go cost now, as far as it is known."""
    why: str = ""

    @property
    def savings_usd_per_hour(self) -> float:
        """What is saved if the replacements are the cheapest that they may be."""
        return self.price_usd_per_hour - sum(one.cheapest.price_usd_per_hour for one in self.new_nodes)


def price_of(targets: Iterable[Candidate]) -> float:
    """Answer what *targets* cost per hour."""
    return sum(one.price_usd_per_hour for one in targets)


def command_of(draft: Draft, cluster: Cluster) -> Command:
    """Answer the command that *draft* is."""
    pools = {pool.name: pool for pool in cluster.node_pools}
    made = [
        CreateNodeClaim(claim=claim_for(one, pools[one.node_pool], cluster), pods=one.pods, why=draft.why)
        for one in draft.new_nodes
    ]
    made += [CreateNodeClaim(claim=claim, why=draft.why) for claim in draft.claims]
    return command(
        reason=draft.reason,
        method=draft.method,
        targets=targets_of(draft.targets),
        replacements=tuple(made),
        homes=draft.moves,
        savings_usd_per_hour=round(draft.savings_usd_per_hour, 9),
        why=draft.why,
    )


def targets_of(some: Sequence[Candidate]) -> tuple[Target, ...]:
    """Answer *some* as a command names them."""
    return tuple(
        Target(
            node=one.name,
            claim=one.claim.name,
            claim_uid=one.claim.meta.uid,
            provider_id=one.state.provider_id,
            pool=one.pool.name,
        )
        for one in some
    )
