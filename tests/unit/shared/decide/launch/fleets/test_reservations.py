"""Reserved capacity: taken from the reservation that the template names, reported to the claim, and returned."""

import json
from datetime import timedelta

import msgspec
import pytest

from shared.decide.launch.fleets.fleet_result import plan_fleet_outcome, report_failed_request
from shared.model.core import labels
from shared.model.decisions.action import PatchMetadata, PatchStatus, PublishEvent
from shared.model.ec2.account import CapacityReservation
from shared.model.ec2.fleet import FleetInstance, FleetResult
from shared.model.ec2.launch_template import LaunchTemplate
from sim.cloud.cloud import Cloud
from sim.time.virtual_clock import Clock
from tests.contract.asking import ZONE, build_fleet_request, get_first_override
from tests.contract.memory_face import Face, build_memory_face
from tests.golden.requests import build_reserved_cluster
from tests.support.launch_cases import make_claim, make_cluster
from tests.support.snapshot_decisions import plan_launches

NAME = "joiner/reserved"


@pytest.fixture
def aws() -> Face:
    return build_memory_face(Cloud(Clock()))


def reserve_capacity(aws: Face, count: int, kind: str = "m5.large") -> str:
    """Reserve capacity, create the template that targets it, and return the reservation's id."""
    reservation = CapacityReservation(reservation_id="", instance_type=kind, zone=ZONE, available_count=count)
    reservation_id = aws.cloud.reservations.add(reservation)
    base_request = build_fleet_request(aws, "m5.large")
    base_template = aws.cloud.templates.find(base_request.configs[0].launch_template_name)
    template = LaunchTemplate(
        name=NAME,
        image_id=base_template.image_id,
        user_data="",
        security_group_ids=base_template.security_group_ids,
        capacity_type="reserved",
        reservation_id=reservation_id,
        reservation_type="default",
    )
    aws.ec2.ensure_launch_template(template)
    return reservation_id


def create_reserved_fleet(aws: Face, token: str, capacity: int) -> FleetResult:
    base_request = build_fleet_request(aws, "m5.large", client_token=token, capacity=capacity)
    configs = (
        msgspec.structs.replace(
            base_request.configs[0], launch_template_name=NAME, overrides=(get_first_override(base_request),)
        ),
    )
    return aws.ec2.create_fleet(
        msgspec.structs.replace(base_request, configs=configs, capacity_type="reserved", reservation_type="default")
    )


def test_capacity_reservation_provides_its_instances_and_regains_terminated_ones(aws: Face) -> None:
    reservation_id = reserve_capacity(aws, 2)
    result = create_reserved_fleet(aws, "one", 3)
    assert [instance.capacity_type for instance in result.instances] == ["reserved", "reserved"]
    assert [error.code for error in result.errors] == ["ReservationCapacityExceeded"]
    aws.ec2.terminate_instances([result.instances[0].instance_id])
    aws.cloud.clock.advance(timedelta(minutes=2))
    reservation = aws.cloud.reservations.find(reservation_id)
    assert reservation is not None
    assert reservation.available_count == 1
    assert len(create_reserved_fleet(aws, "two", 1).instances) == 1


def test_capacity_reservation_of_another_instance_type_is_not_found(aws: Face) -> None:
    reserve_capacity(aws, 2, kind="m5.xlarge")
    assert [error.code for error in create_reserved_fleet(aws, "one", 1).errors] == [
        "InvalidCapacityReservationId.NotFound"
    ]


@pytest.mark.parametrize(("zone", "reservation"), [("us-east-1a", "cr-2"), ("us-east-1b", "cr-3")])
def test_node_claim_labels_name_its_capacity_reservation(zone: str, reservation: str) -> None:
    snapshot = build_reserved_cluster("default")
    [launch] = plan_launches(snapshot).launches
    instance = FleetInstance(
        instance_id="i-1", instance_type="m5.large", zone=zone, subnet_id="s", image_id="a", capacity_type="reserved"
    )
    group = msgspec.structs.replace(launch.group, result=FleetResult(fleet_id="f", instances=(instance,)))
    [patch] = [action for action in plan_fleet_outcome(group, snapshot).actions if isinstance(action, PatchMetadata)]
    patched_labels = dict(patch.labels)
    assert (patched_labels[labels.RESERVATION_ID], patched_labels[labels.RESERVATION_TYPE]) == (reservation, "default")
    assert patched_labels[labels.CAPACITY_TYPE] == "reserved"


def test_failed_fleet_request_is_reported_on_its_node_claims_and_node_pool() -> None:
    snapshot = make_cluster(make_claim("a"), make_claim("b"), make_claim("c", provider_id="aws:///z/i-1"))
    [launch] = plan_launches(snapshot).launches
    group = msgspec.structs.replace(launch.group, claims=("a", "b", "c"))
    actions = report_failed_request(group, "Forbidden: ec2:CreateFleet: UnauthorizedOperation: no", snapshot)
    patches = [action for action in actions if isinstance(action, PatchStatus)]
    assert [status_patch.name for status_patch in patches] == ["a", "b"]
    reasons = {condition["reason"] for patch in patches for condition in json.loads(patch.status)["conditions"]}
    assert "Unauthorized" in reasons
    [event] = [action for action in actions if isinstance(action, PublishEvent)]
    assert (event.kind, event.name) == ("NodePool", "default")
    assert "the role of the function provision" in event.message
