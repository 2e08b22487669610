"""Instances launched from a capacity reservation, when the reservation ends or releases them."""

from datetime import datetime, timedelta

import pytest

from shared.model.core import labels
from shared.model.decisions.action import Action, DeleteObject, PatchMetadata, PublishEvent
from shared.model.ec2.account import CapacityReservation
from shared.model.ec2.types import CapacityType
from tests.support.lifecycle_cases import (
    NODE_CLASS,
    NOW,
    Case,
    filter_actions,
    make_claim,
    make_cluster,
    make_instance,
    make_node,
    replace_fields,
)
from tests.support.snapshot_decisions import decide_lifecycle

RESERVED = {labels.CAPACITY_TYPE: labels.RESERVED, labels.RESERVATION_ID: "cr-1"}
REMOVED_LABELS = (labels.RESERVATION_ID, labels.RESERVATION_TYPE, labels.RESERVATION_INTERRUPTIBLE)


def decide_for_capacity_type(
    capacity_type: CapacityType = "reserved", *, extra: Case = RESERVED, **fields: Case
) -> tuple[Action, ...]:
    """Return the actions for an instance whose capacity type is *capacity_type* according to EC2."""
    node_claim = make_claim(extra=extra, **fields)
    return decide_lifecycle(
        make_cluster(
            node_claims=(node_claim,),
            nodes=(make_node(),),
            instances=(replace_fields(make_instance(), capacity_type=capacity_type),),
            node_classes=(make_class_with_reservation(),),
        )
    )


def make_class_with_reservation(ends: datetime | None = None, kind: str = "capacity-block") -> Case:
    reservation = CapacityReservation(
        reservation_id="cr-1", instance_type="m5.large", zone="a", reservation_type=kind, ends_at=ends
    )
    return replace_fields(NODE_CLASS, resolved_capacity_reservations=(reservation,))


def list_demoted(actions: tuple[Action, ...]) -> list[tuple[str, str]]:
    patches = [patch for patch in filter_actions(PatchMetadata, actions) if patch.removed_labels]
    assert all(patch.removed_labels == REMOVED_LABELS for patch in patches)
    assert all(dict(patch.labels) == {labels.CAPACITY_TYPE: labels.ON_DEMAND} for patch in patches)
    return [(patch.kind, patch.name) for patch in patches]


def test_instance_that_left_its_capacity_reservation_is_labeled_on_demand() -> None:
    assert list_demoted(decide_for_capacity_type("on-demand")) == [("NodeClaim", "a"), ("Node", "node-a")]
    assert list_demoted(decide_for_capacity_type("reserved")) == []


def test_on_demand_or_deleting_node_claim_keeps_its_capacity_type_label() -> None:
    assert list_demoted(decide_for_capacity_type("on-demand", extra={labels.CAPACITY_TYPE: labels.ON_DEMAND})) == []
    assert list_demoted(decide_for_capacity_type("on-demand", deleted=NOW)) == []


def test_reserved_node_claim_keeps_its_labels_when_ec2_was_not_queried() -> None:
    world = make_cluster(node_claims=(make_claim(extra=RESERVED),), nodes=(make_node(),), instances=None)
    assert list_demoted(decide_lifecycle(world)) == []


@pytest.mark.parametrize(
    ("ends", "kind", "goes"),
    [
        (timedelta(minutes=40), "capacity-block", True),
        (timedelta(minutes=41), "capacity-block", False),
        (timedelta(minutes=5), "default", False),
        (None, "capacity-block", False),
    ],
)
def test_node_is_deleted_40_minutes_before_its_capacity_block_ends(
    ends: timedelta | None, kind: str, *, goes: bool
) -> None:
    reserved_class = make_class_with_reservation(None if ends is None else NOW + ends, kind)
    world = make_cluster(
        node_claims=(make_claim(extra=RESERVED), make_claim("b")), nodes=(make_node(),), node_classes=(reserved_class,)
    )
    actions = decide_lifecycle(world)
    deleted = [deletion.name for deletion in filter_actions(DeleteObject, actions) if deletion.kind == "NodeClaim"]
    events = [
        event.kind for event in filter_actions(PublishEvent, actions) if event.reason == "CapacityReservationExpiring"
    ]
    assert (deleted, events) == ((["a"], ["NodeClaim", "Node"]) if goes else ([], []))
