"""What is done at once about instances that AWS is about to take away. Duplicates and any order are harmless.

When EC2 ends the machine is written on its Node with the taint: the drain leaves its pods their grace periods before
that, and waits for their new nodes until then.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, Literal

from shared.lifecycle.events import about_machine
from shared.lifecycle.followups import SOONEST, soonest
from shared.lifecycle.handover import ends_at
from shared.lifecycle.machines import Machine, machines_of
from shared.lifecycle.notices import Notice, NoticeKind, Unknown, parse_notice
from shared.model.action import Action, DeleteObject, FollowUp, MarkUnavailable, TaintNode
from shared.model.catalogue import UnavailableOffering
from shared.model.cluster import Cluster
from shared.model.labels import (
    AT_RISK,
    CAPACITY_TYPE,
    DISRUPTED_TAINT,
    ENDS_AT,
    EXCLUDE_BALANCERS,
    INSTANCE_TYPE,
    NODEPOOL,
    REBALANCE_POLICY,
    RESERVED,
    SPOT,
    ZONE,
)
from shared.model.nodes import Node
from shared.model.taints import DISRUPTED, Taint
from shared.model.units import instant_text

__all__ = ["Notice", "NoticeKind", "Unknown", "decide_notices", "parse_notice"]

UNAVAILABLE_FOR: Final = timedelta(minutes=3)
WARNING: Final = timedelta(minutes=2)
"""So long before it takes a machine back EC2 says so."""
CORDONED: Final = Taint(key=AT_RISK, effect="NoSchedule")
_REBALANCE: Final = "rebalance_recommendation"
_CANCELLED: Final = "scheduled_change_cancelled"
_LATE: Final = "; its claim is deleted already, so the node goes all the same"
_WARNED: Final = ("capacity_reservation_interrupted", "spot_interrupted")
_OVER: Final = ("instance_stopped", "instance_terminated")
_EVENTS: Final[dict[NoticeKind, tuple[str, str]]] = {
    "spot_interrupted": ("SpotInterrupted", "EC2 takes the spot instance back in two minutes"),
    "rebalance_recommendation": ("SpotRebalanceRecommendation", "EC2 sees a raised risk of a spot interruption"),
    "instance_stopped": ("InstanceStopping", "The instance is stopping"),
    "instance_terminated": ("InstanceTerminating", "The instance is terminating"),
    "scheduled_change": ("InstanceUnhealthy", "AWS has scheduled a change of the instance"),
    "scheduled_change_cancelled": (
        "ScheduledChangeCancelled",
        "A scheduled change of the instance is over or called off",
    ),
    "capacity_reservation_interrupted": (
        "CapacityReservationInstanceInterrupted",
        "EC2 takes the reserved capacity of the instance back",
    ),
}


def decide_notices(cluster: Cluster, notices: Iterable[Notice]) -> tuple[Action, ...]:
    """Act on *notices*: each instance's claim is deleted once, for the first kind in the order of the alphabet.

    Instances without a claim of ours are left alone. Of a claim that is deleting already only the end is noted that EC2
    sets, if it is sooner than what is known. What a notice of the same batch calls off was never said.
    """
    said: dict[str, set[Notice]] = defaultdict(set)
    for notice in notices:
        for instance_id in notice.instance_ids:
            said[instance_id].add(notice)
    actions: list[Action] = []
    for machine in machines_of(cluster):
        of_it = _standing(said.get(machine.claim.instance_id, ())) if machine.claim.provider_id else {}
        if of_it and machine.claim.is_deleting():
            actions.extend(_hasten(machine, of_it, cluster.taken_at))
        elif of_it:
            actions.extend(_act(machine, of_it, cluster))
    return soonest(actions)


def _standing(notices: Iterable[Notice]) -> dict[NoticeKind, list[Notice]]:
    """Answer the notices that hold, by kind, kinds and notices in a fixed order."""
    some = list(notices)
    called_off = {one.event for one in some if one.kind == _CANCELLED}
    found: dict[NoticeKind, list[Notice]] = defaultdict(list)
    for one in sorted(some, key=lambda one: (one.kind, instant_text(one.at) if one.at else "", one.event)):
        if one.kind != "scheduled_change" or one.event not in called_off:
            found[one.kind].append(one)
    return found


def _hasten(machine: Machine, said: Mapping[NoticeKind, list[Notice]], now: datetime) -> tuple[Action, ...]:
    """Let a drain that has begun know until when there is time; that we end a machine ourselves is no news.

    What is called off now comes too late: a deletion is not taken back.
    """
    claim = machine.claim
    news = {kind: some for kind, some in said.items() if kind not in _OVER}
    taints = _taints(machine, next(iter(sorted(news)), ""), _end(news, now), anew=False)
    told = (kind for kind in sorted(news) if taints or kind == _CANCELLED)
    events = [event for kind in told for event in _told(machine, kind, now, _LATE if kind == _CANCELLED else "")]
    wake = FollowUp(function="lifecycle", after=SOONEST, why=f"{claim.name} has less time")
    return (*taints, *events, *((wake,) if taints else ()))


def _told(machine: Machine, kind: NoticeKind, now: datetime, more: str = "") -> list[Action]:
    reason, words = _EVENTS[kind]
    tone: Literal["Normal", "Warning"] = "Normal" if kind in (_REBALANCE, _CANCELLED) else "Warning"
    return list(about_machine(machine.claim, machine.nodes, reason, words + more, now, type_=tone))


def _act(machine: Machine, said: Mapping[NoticeKind, list[Notice]], cluster: Cluster) -> tuple[Action, ...]:
    claim, now = machine.claim, cluster.taken_at
    policy = _policy(machine, cluster)
    events: list[Action] = []
    for kind in sorted(said):
        more = f"; the policy of its NodePool is {policy}" if kind == _REBALANCE else ""
        events.extend(_told(machine, kind, now, more))
    grave = [kind for kind in sorted(said) if kind not in (_REBALANCE, _CANCELLED)]
    if _REBALANCE in said and policy != "ignore":
        if not grave and policy == "cordon":
            return (*_cordon(machine), *_marks(machine, cluster, SPOT), *events)
        grave = grave or [_REBALANCE]
    if not grave:
        return tuple(events)
    words = f"Deleting {claim.name}: {grave[0]}"
    events.extend(about_machine(claim, machine.nodes, "TerminatingOnInterruption", words, now, type_="Warning"))
    return (
        *_taints(machine, grave[0], _end(said, now)),
        DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, why=grave[0]),
        *(_marks(machine, cluster, SPOT) if {"spot_interrupted", _REBALANCE} & set(grave) else ()),
        *(_marks(machine, cluster, RESERVED) if "capacity_reservation_interrupted" in grave else ()),
        *events,
        FollowUp(function="provision", after=timedelta(), why=f"{claim.name} is interrupted"),
        FollowUp(function="lifecycle", after=SOONEST, why=f"{claim.name} is interrupted"),
    )


def _policy(machine: Machine, cluster: Cluster) -> str:
    """Answer what its NodePool wants done about a rebalance recommendation."""
    name = machine.claim.meta.label(NODEPOOL)
    pool = next((one for one in cluster.node_pools if one.name == name), None)
    wanted = pool.meta.annotation(REBALANCE_POLICY) if pool is not None else ""
    return wanted if wanted in ("cordon", "drain") else "ignore"


def _end(said: Mapping[NoticeKind, list[Notice]], now: datetime) -> datetime | None:
    """Answer when EC2 ends the machine, at the soonest; None: nobody knows."""
    ends: list[datetime] = []
    for kind, notices in said.items():
        for one in notices:
            sent = min(one.at or now, now)
            if kind in _WARNED:
                ends.append(sent + WARNING)
            elif kind in _OVER:
                ends.append(sent)
            elif kind == "scheduled_change" and one.begins_at is not None:
                ends.append(one.begins_at)
    return min(ends, default=None)


def _taints(machine: Machine, why: str, end: datetime | None, *, anew: bool = True) -> tuple[TaintNode, ...]:
    """Taint the Nodes, if *anew*, and note the *end* on them, where they do not know of one as soon."""
    return tuple(
        TaintNode(
            name=node.name,
            resource_version=node.meta.resource_version,
            taints=(*(taint for taint in node.taints if taint.key != DISRUPTED_TAINT), DISRUPTED),
            labels=((EXCLUDE_BALANCERS, "karpenter"),),
            annotations=((ENDS_AT, instant_text(end)),) if end is not None and _is_sooner(end, node) else (),
            why=why,
        )
        for node in machine.nodes
        if (anew and DISRUPTED not in node.taints) or (end is not None and _is_sooner(end, node))
    )


def _is_sooner(end: datetime, node: Node) -> bool:
    known = ends_at((node,))
    return known is None or instant_text(end) < instant_text(known)


def _cordon(machine: Machine) -> tuple[TaintNode, ...]:
    return tuple(
        TaintNode(
            name=node.name,
            resource_version=node.meta.resource_version,
            taints=(*node.taints, CORDONED),
            why=_REBALANCE,
        )
        for node in machine.nodes
        if not any(CORDONED.is_same(one) for one in node.taints)
    )


def _marks(machine: Machine, cluster: Cluster, capacity_type: str) -> tuple[MarkUnavailable, ...]:
    """Mark the offering; a label that is missing would stand for any type or zone, so then nothing is marked."""
    labels = machine.claim.meta
    instance_type, zone = labels.label(INSTANCE_TYPE), labels.label(ZONE)
    if not instance_type or not zone or labels.label(CAPACITY_TYPE) != capacity_type:
        return ()
    until = cluster.taken_at + UNAVAILABLE_FOR
    offering = UnavailableOffering(capacity_type=capacity_type, instance_type=instance_type, zone=zone, until=until)
    return (MarkUnavailable(offering=offering, why=f"{machine.claim.name} was interrupted"),)
