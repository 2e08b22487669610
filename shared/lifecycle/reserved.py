"""Machines from reservations: those that EC2 counts as on-demand by now, and those whose capacity block ends.

EC2 tells nobody that a capacity block ends; it takes the machines back half an hour before. So claims are deleted in
time to be drained.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from shared.lifecycle.events import about_machine
from shared.lifecycle.machines import Machine, View
from shared.model.action import Action, DeleteObject, Kind, PatchMetadata
from shared.model.ec2 import CapacityReservation
from shared.model.labels import (
    CAPACITY_TYPE,
    ON_DEMAND,
    REGISTERED,
    RESERVATION_ID,
    RESERVATION_INTERRUPTIBLE,
    RESERVATION_TYPE,
    RESERVED,
)
from shared.model.nodeclasses import EC2NodeClass

BLOCK_ENDS: Final = timedelta(minutes=40)
"""So long before a capacity block's end its nodes go."""
ENDING: Final = "CapacityReservationExpiring"


def follow_reservations(machines: Iterable[Machine], view: View) -> Iterator[Action]:
    """Say on-demand where EC2 does, and delete the claims of capacity blocks that end."""
    over = ending(view.cluster.node_classes, view.now)
    for machine in machines:
        claim = machine.claim
        if claim.is_deleting() or claim.meta.label(CAPACITY_TYPE) != RESERVED:
            continue
        name = claim.meta.label(RESERVATION_ID)
        instance = (view.instances or {}).get(claim.instance_id)
        if name in over:
            yield from about_machine(claim, machine.nodes, ENDING, f"{name} ends, its node goes before", view.now)
            yield DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, why="its capacity block ends")
        elif instance is not None and instance.capacity_type == ON_DEMAND:
            yield _demoted("NodeClaim", claim.name)
            registered = (node for node in machine.nodes if node.meta.label(REGISTERED) == "true")
            yield from (_demoted("Node", node.name) for node in registered)


def ending(node_classes: Iterable[EC2NodeClass], now: datetime) -> frozenset[str]:
    """Answer the capacity blocks that end soon, by id."""
    held = (one for each in node_classes for one in each.resolved_capacity_reservations)
    return frozenset(one.reservation_id for one in held if _is_ending(one, now))


def _is_ending(one: CapacityReservation, now: datetime) -> bool:
    return one.reservation_type == "capacity-block" and one.ends_at is not None and now >= one.ends_at - BLOCK_ENDS


def _demoted(kind: Kind, name: str) -> PatchMetadata:
    return PatchMetadata(
        kind=kind,
        name=name,
        labels=((CAPACITY_TYPE, ON_DEMAND),),
        unlabelled=(RESERVATION_ID, RESERVATION_TYPE, RESERVATION_INTERRUPTIBLE),
        why="it is in no reservation any more",
    )
