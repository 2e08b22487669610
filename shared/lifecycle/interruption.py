"""What is done at once about instances that AWS is about to take away. Duplicates and any order are harmless."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from shared.lifecycle.events import about_machine
from shared.lifecycle.followups import SOONEST, soonest
from shared.lifecycle.machines import Machine, machines_of
from shared.lifecycle.notices import Notice, NoticeKind, Unknown, parse_notice
from shared.model.action import Action, DeleteObject, FollowUp, MarkUnavailable, TaintNode
from shared.model.catalogue import UnavailableOffering
from shared.model.cluster import Cluster
from shared.model.labels import DISRUPTED_TAINT, EXCLUDE_BALANCERS, INSTANCE_TYPE, SPOT, ZONE
from shared.model.taints import DISRUPTED

__all__ = ["Notice", "NoticeKind", "Unknown", "decide_notices", "parse_notice"]

UNAVAILABLE_FOR: Final = timedelta(minutes=3)
_REBALANCE: Final = "rebalance_recommendation"
_EVENTS: Final[dict[NoticeKind, tuple[str, str]]] = {
    "spot_interrupted": ("SpotInterrupted", "EC2 takes the spot instance back in two minutes"),
    "rebalance_recommendation": ("SpotRebalanceRecommendation", "EC2 sees a raised risk of a spot interruption"),
    "instance_stopped": ("InstanceStopping", "The instance is stopping"),
    "instance_terminated": ("InstanceTerminating", "The instance is terminating"),
    "scheduled_change": ("InstanceUnhealthy", "AWS has scheduled a change of the instance"),
    "capacity_reservation_interrupted": (
        "CapacityReservationInstanceInterrupted",
        "EC2 takes the reserved capacity of the instance back",
    ),
}


def decide_notices(cluster: Cluster, notices: Iterable[Notice]) -> tuple[Action, ...]:
    """Act on *notices*: each instance's claim is deleted once, for the first kind in the order of the alphabet.

    Instances without a claim of ours, and claims that are deleting already, are left alone.
    """
    kinds: dict[str, set[NoticeKind]] = {}
    for notice in notices:
        for instance_id in notice.instance_ids:
            kinds.setdefault(instance_id, set()).add(notice.kind)
    actions: list[Action] = []
    for machine in machines_of(cluster):
        said = kinds.get(machine.claim.instance_id) if machine.claim.provider_id else None
        if said and not machine.claim.is_deleting():
            actions.extend(_act(machine, sorted(said), cluster))
    return soonest(actions)


def _act(machine: Machine, kinds: list[NoticeKind], cluster: Cluster) -> tuple[Action, ...]:
    claim, now = machine.claim, cluster.taken_at
    events: list[Action] = []
    for kind in kinds:
        reason, words = _EVENTS[kind]
        events.extend(
            about_machine(claim, machine.nodes, reason, words, now, type_="Normal" if kind == _REBALANCE else "Warning")
        )
    grave = [kind for kind in kinds if kind != _REBALANCE]
    if not grave:
        return tuple(events)
    words = f"Deleting {claim.name}: {grave[0]}"
    events.extend(about_machine(claim, machine.nodes, "TerminatingOnInterruption", words, now, type_="Warning"))
    return (
        *_taints(machine, grave[0]),
        DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, why=grave[0]),
        *(_marks(machine, cluster) if "spot_interrupted" in grave else ()),
        *events,
        FollowUp(function="provision", after=timedelta(), why=f"{claim.name} is interrupted"),
        FollowUp(function="lifecycle", after=SOONEST, why=f"{claim.name} is interrupted"),
    )


def _taints(machine: Machine, why: str) -> tuple[TaintNode, ...]:
    return tuple(
        TaintNode(
            name=node.name,
            resource_version=node.meta.resource_version,
            taints=(*(taint for taint in node.taints if taint.key != DISRUPTED_TAINT), DISRUPTED),
            labels=((EXCLUDE_BALANCERS, "karpenter"),),
            why=why,
        )
        for node in machine.nodes
        if DISRUPTED not in node.taints
    )


def _marks(machine: Machine, cluster: Cluster) -> tuple[MarkUnavailable, ...]:
    """Mark the offering; a label that is missing would stand for any type or zone, so then nothing is marked."""
    instance_type, zone = machine.claim.meta.label(INSTANCE_TYPE), machine.claim.meta.label(ZONE)
    if not instance_type or not zone:
        return ()
    until = cluster.taken_at + UNAVAILABLE_FOR
    offering = UnavailableOffering(capacity_type=SPOT, instance_type=instance_type, zone=zone, until=until)
    return (MarkUnavailable(offering=offering, why=f"{machine.claim.name} was interrupted"),)
