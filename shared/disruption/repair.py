"""Node repair: a machine whose Node has said for long enough that it is broken goes at once, whatever is on it.

Neither budgets nor PodDisruptionBudgets, do-not-disrupt or a grace period hold it back: the claim is deleted with its
deadline in the past, and its pods are planned for as those of any node that goes. Where many Nodes are broken together
the cause is hardly theirs, and new ones would break as well: none goes then.

Known difference: Karpenter looks again after five minutes, this at every sweep; people's pauses hold it back.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.disruption.candidates import Blocked
from shared.disruption.verdicts import Disrupted, Kept, Verdict
from shared.lifecycle.events import about_machine
from shared.lifecycle.followups import SOONEST
from shared.lifecycle.machines import Machine, is_ours, machines_of
from shared.model.action import Action, DeleteObject, FollowUp, PatchMetadata
from shared.model.cluster import Cluster
from shared.model.commands import Pauses
from shared.model.labels import NODEPOOL, TERMINATION_TIMESTAMP
from shared.model.nodes import Node, NodeClaim
from shared.model.objects import Condition
from shared.model.units import instant_text, parse_instant

REASON: Final = "Unhealthy"
MOST_PERCENT: Final = 20
"""Of the Nodes that may be broken at once, rounded up, for any of them to be repaired."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What a Node may say of itself, and how long that is put up with."""

    type: str
    status: str
    toleration: timedelta


_HALF_AN_HOUR: Final = timedelta(minutes=30)
POLICIES: Final = (
    Policy(type="Ready", status="False", toleration=_HALF_AN_HOUR),
    Policy(type="Ready", status="Unknown", toleration=_HALF_AN_HOUR),
    Policy(type="AcceleratedHardwareReady", status="False", toleration=timedelta(minutes=10)),
    Policy(type="StorageReady", status="False", toleration=_HALF_AN_HOUR),
    Policy(type="NetworkingReady", status="False", toleration=_HALF_AN_HOUR),
    Policy(type="KernelReady", status="False", toleration=_HALF_AN_HOUR),
    Policy(type="ContainerRuntimeReady", status="False", toleration=_HALF_AN_HOUR),
)
"""Those of EKS: the node's kubelet, and its node monitoring agent."""


class Ailment(msgspec.Struct, frozen=True, kw_only=True):
    """What a Node says is wrong with it, and since when."""

    policy: Policy
    since: datetime

    @property
    def due(self) -> datetime:
        """When it is put up with no longer."""
        return self.since + self.policy.toleration

    def words(self) -> str:
        """Say it; the same words for as long as it lasts."""
        what = f"condition {self.policy.type} has been {self.policy.status} since {instant_text(self.since)}"
        return f"{what}, longer than {self.policy.toleration // timedelta(minutes=1)} minutes"


class Repairs(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at the Nodes' health comes to."""

    nodes: frozenset[str] = frozenset()
    """That go, by name: nobody else is to decide about them."""
    actions: tuple[Action, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    """Of the Nodes that go, and of those that ought to and stay; sorted by name."""

    def counts(self) -> dict[str, float]:
        """Answer what metrics say of it; nothing where nobody has to be repaired."""
        if not self.verdicts:
            return {}
        ended = sum(isinstance(one, DeleteObject) for one in self.actions)
        held = sum(not isinstance(one, Disrupted) for one in self.verdicts)
        return {"RepairedNodes": float(ended), "HeldRepairs": float(held)}

    def with_verdicts(self, others: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
        """Answer one verdict for each node: these, and *others* of nodes that these say nothing of."""
        mine = {one.node for one in self.verdicts}
        every = (*self.verdicts, *(one for one in others if one.node not in mine))
        return tuple(sorted(every, key=lambda one: one.node))


def repair(cluster: Cluster, paused: Pauses) -> Repairs:
    """Give up the machines that have been broken for long enough, unless that is *paused* or too many are."""
    now, actions, verdicts = cluster.taken_at, list[Action](), list[Verdict]()
    owners = Counter(claim.provider_id for claim in cluster.node_claims)
    for machine in machines_of(cluster):
        node = machine.nodes[0] if len(machine.nodes) == owners[machine.claim.provider_id] == 1 else None
        ailment = ailment_of(node) if node is not None and is_ours(node) else None
        if node is None or ailment is None or ailment.due > now:
            continue
        verdict = _verdict(machine.claim, node, ailment, cluster, paused)
        verdicts.append(verdict)
        if isinstance(verdict, Disrupted):
            actions.extend(_end(machine, verdict, now))
    nodes = frozenset(one.node for one in verdicts if isinstance(one, Disrupted))
    return Repairs(nodes=nodes, actions=tuple(actions), verdicts=tuple(sorted(verdicts, key=lambda one: one.node)))


def ailment_of(node: Node) -> Ailment | None:
    """Answer which of *node*'s ailments is due first; None: it has none, or does not say since when."""
    found = [Ailment(policy=policy, since=one.since) for one, policy in _matches(node) if one.since is not None]
    return min(found, key=lambda one: (one.due, one.policy.type), default=None)


def is_unhealthy(node: Node) -> bool:
    """Whether *node* says that something is wrong, for however short a time."""
    return any(True for _ in _matches(node))


def _matches(node: Node) -> Iterator[tuple[Condition, Policy]]:
    return (
        (one, policy)
        for one in node.conditions
        for policy in POLICIES
        if (one.type, one.status) == (policy.type, policy.status)
    )


def _verdict(claim: NodeClaim, node: Node, ailment: Ailment, cluster: Cluster, paused: Pauses) -> Verdict:
    pool = claim.meta.label(NODEPOOL)
    if why := paused.why(pool, REASON):
        return Kept(node=node.name, reason="Paused", message=f"{ailment.words()}; its repair is paused: {why}")
    if why := _epidemic(pool, cluster):
        return Blocked(node=node.name, reason=REASON, message=f"{ailment.words()}; {why}")
    return Disrupted(node=node.name, reason=REASON, message=ailment.words())


def _epidemic(pool: str, cluster: Cluster) -> str:
    """Say that more Nodes of *pool* (of the cluster, if there is none) are broken than may be; "" if they are not."""
    around = [node for node in cluster.nodes if not pool or node.meta.label(NODEPOOL) == pool]
    broken = sum(is_unhealthy(node) for node in around)
    if broken <= -(-len(around) * MOST_PERCENT // 100):
        return ""
    where = f"NodePool {pool}" if pool else "the cluster"
    return f"{broken} of {len(around)} nodes of {where} are unhealthy, more than {MOST_PERCENT} %: none is repaired"


def _end(machine: Machine, verdict: Disrupted, now: datetime) -> Iterator[Action]:
    """End the machine: its time is up, so the drain waits for nothing."""
    claim = machine.claim
    if _is_up(claim, now) and claim.is_deleting():
        return
    note = ((TERMINATION_TIMESTAMP, instant_text(now)),)
    if not _is_up(claim, now):
        yield PatchMetadata(kind="NodeClaim", name=claim.name, annotations=note, why=verdict.message)
    if not claim.is_deleting():
        yield DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, why=REASON.lower())
    words = f"Deleting {claim.name}: {verdict.message}"
    yield from about_machine(claim, machine.nodes, "DisruptionTerminating", words, now, type_="Warning")
    yield FollowUp(function="lifecycle", after=SOONEST, why=f"{claim.name} is repaired")


def _is_up(claim: NodeClaim, now: datetime) -> bool:
    """Whether the claim's grace period is known to be over."""
    try:
        return parse_instant(claim.meta.annotation(TERMINATION_TIMESTAMP)) <= now
    except ValueError:
        return False
