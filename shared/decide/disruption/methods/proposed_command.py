"""Proposed commands: what a disruption method has found before it becomes a disruption command."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.savings.command_value import CommandValue
from shared.decide.scheduling.templates.node_claim_builder import build_node_claim
from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.action import CreateNodeClaim
from shared.model.decisions.command import (
    MAX_TARGETS_PER_COMMAND,
    CommandReason,
    CommandTarget,
    DisruptionCommand,
    Method,
    build_command,
)
from shared.model.decisions.disruption_verdict import DisruptedVerdict
from shared.model.decisions.placement import NewNodeClaim
from shared.model.karpenter.node_claim import NodeClaim

EMPTY_REASON: Final = "Empty"


class ProposedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that can be disrupted together."""

    method: Method
    reason: CommandReason
    targets: tuple[Candidate, ...]
    new_nodes: tuple[NewNodeClaim, ...] = ()
    static_claims: tuple[NodeClaim, ...] = ()
    """Replacements in static NodePools, built from the NodePool's template."""
    moves: tuple[tuple[str, str], ...] = ()
    """Pods and the names of the nodes or NodeClaims they are expected on, in an order in which they can be bound."""
    price_usd_per_hour: float = 0.0
    """Current cost of the targets, as far as their prices are known."""
    value: CommandValue | None = None
    """What it saves and costs; None: it does not have to pay (emptiness, drift)."""
    message: str = ""

    @property
    def net_usd_per_hour(self) -> float:
        """The savings less the costs, spread over the expected duration of the savings."""
        return self.savings_usd_per_hour if self.value is None else self.value.net_usd_per_hour

    @property
    def explanation(self) -> str:
        """The message, with what the command saves and costs if it costs anything."""
        value_text = self.value.format() if self.value is not None else ""
        return f"{self.message}; {value_text}" if value_text else self.message

    def build_verdicts(self) -> list[DisruptedVerdict]:
        """Return the verdicts for its targets."""
        return [
            DisruptedVerdict(
                node=target.name,
                reason=self.reason,
                message=self.explanation,
                price_usd_per_hour=target.price_usd_per_hour,
            )
            for target in self.targets
        ]

    @property
    def savings_usd_per_hour(self) -> float:
        """The savings if each replacement is launched as its cheapest offering."""
        return self.price_usd_per_hour - sum(node.cheapest.price_usd_per_hour for node in self.new_nodes)


def build_emptiness_commands(candidates: Sequence[Candidate]) -> list[ProposedCommand]:
    """Return proposed commands that delete the empty *candidates*."""
    target_groups = (
        tuple(candidates[start : start + MAX_TARGETS_PER_COMMAND])
        for start in range(0, len(candidates), MAX_TARGETS_PER_COMMAND)
    )
    return [
        ProposedCommand(
            method="Emptiness",
            reason=EMPTY_REASON,
            targets=targets,
            price_usd_per_hour=sum_prices(targets),
            message="no pod on the node would have to move",
        )
        for targets in target_groups
    ]


def sum_prices(targets: Iterable[Candidate]) -> float:
    """Return what *targets* cost in USD per hour."""
    return sum(candidate.price_usd_per_hour for candidate in targets)


def convert_to_command(
    proposed_command: ProposedCommand, cluster: ClusterSnapshot, workloads: tuple[str, ...] = ()
) -> DisruptionCommand:
    """Return *proposed_command* as a disruption command; *workloads*: those that it evicts pods of."""
    pools = {pool.name: pool for pool in cluster.node_pools}
    replacements = [
        CreateNodeClaim(
            claim=build_node_claim(node, pools[node.node_pool], cluster),
            pods=node.pods,
            message=proposed_command.explanation,
        )
        for node in proposed_command.new_nodes
    ]
    replacements += [
        CreateNodeClaim(claim=claim, message=proposed_command.message) for claim in proposed_command.static_claims
    ]
    return build_command(
        reason=proposed_command.reason,
        method=proposed_command.method,
        targets=build_targets(proposed_command.targets),
        replacements=tuple(replacements),
        nominations=proposed_command.moves,
        savings_usd_per_hour=round(proposed_command.savings_usd_per_hour, 9),
        workloads=workloads,
        message=proposed_command.explanation,
    )


def build_targets(candidates: Sequence[Candidate]) -> tuple[CommandTarget, ...]:
    """Return *candidates* as targets of a command."""
    return tuple(
        CommandTarget(
            node=candidate.name,
            claim=candidate.claim.name,
            claim_uid=candidate.claim.meta.uid,
            provider_id=candidate.state.provider_id,
            pool=candidate.pool.name,
        )
        for candidate in candidates
    )
