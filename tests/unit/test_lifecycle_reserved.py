"""Machines that were started from a reservation, when that ends or lets go of them."""

from datetime import datetime, timedelta

import pytest

from shared.lifecycle.decide import decide
from shared.model import labels
from shared.model.action import Action, DeleteObject, PatchMetadata, PublishEvent
from shared.model.ec2 import CapacityReservation, CapacityType
from tests.unit.lifecycle_cases import NODE_CLASS, NOW, Case, changed, claim, cluster, instance, node, of

RESERVED = {labels.CAPACITY_TYPE: labels.RESERVED, labels.RESERVATION_ID: "cr-1"}
GONE = (labels.RESERVATION_ID, labels.RESERVATION_TYPE, labels.RESERVATION_INTERRUPTIBLE)


def told(capacity_type: CapacityType = "reserved", *, extra: Case = RESERVED, **fields: Case) -> tuple[Action, ...]:
    """Answer what is done about a machine that EC2 says is *capacity_type*."""
    mine = claim(extra=extra, **fields)
    return decide(
        cluster(
            node_claims=(mine,),
            nodes=(node(),),
            instances=(changed(instance(), capacity_type=capacity_type),),
            node_classes=(holding(),),
        )
    )


def holding(ends: datetime | None = None, kind: str = "capacity-block") -> Case:
    one = CapacityReservation(
        reservation_id="cr-1", instance_type="m5.large", zone="a", reservation_type=kind, ends_at=ends
    )
    return changed(NODE_CLASS, resolved_capacity_reservations=(one,))


def demoted(actions: tuple[Action, ...]) -> list[tuple[str, str]]:
    some = [one for one in of(PatchMetadata, actions) if one.unlabelled]
    assert all(one.unlabelled == GONE for one in some)
    assert all(dict(one.labels) == {labels.CAPACITY_TYPE: labels.ON_DEMAND} for one in some)
    return [(one.kind, one.name) for one in some]


def test_a_machine_that_left_its_reservation_is_on_demand() -> None:
    assert demoted(told("on-demand")) == [("NodeClaim", "a"), ("Node", "node-a")]
    assert demoted(told("reserved")) == []


def test_a_machine_that_was_never_reserved_or_is_going_is_left_alone() -> None:
    assert demoted(told("on-demand", extra={labels.CAPACITY_TYPE: labels.ON_DEMAND})) == []
    assert demoted(told("on-demand", deleted=NOW)) == []


def test_without_an_answer_of_ec2_a_machine_stays_reserved() -> None:
    world = cluster(node_claims=(claim(extra=RESERVED),), nodes=(node(),), instances=None)
    assert demoted(decide(world)) == []


@pytest.mark.parametrize(
    ("ends", "kind", "goes"),
    [
        (timedelta(minutes=40), "capacity-block", True),
        (timedelta(minutes=41), "capacity-block", False),
        (timedelta(minutes=5), "default", False),
        (None, "capacity-block", False),
    ],
)
def test_a_node_goes_before_its_capacity_block_ends(ends: timedelta | None, kind: str, *, goes: bool) -> None:
    held = holding(None if ends is None else NOW + ends, kind)
    world = cluster(node_claims=(claim(extra=RESERVED), claim("b")), nodes=(node(),), node_classes=(held,))
    actions = decide(world)
    deleted = [one.name for one in of(DeleteObject, actions) if one.kind == "NodeClaim"]
    events = [one.kind for one in of(PublishEvent, actions) if one.reason == "CapacityReservationExpiring"]
    assert (deleted, events) == ((["a"], ["NodeClaim", "Node"]) if goes else ([], []))
