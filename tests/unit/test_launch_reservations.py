"""Reserved capacity: drawn from the reservation that the template names, told to the claim, and given back."""

import json
from datetime import timedelta

import msgspec
import pytest

from shared.launch.groups import plan_launches
from shared.launch.outcome import outcome, unanswered
from shared.model import labels
from shared.model.action import PatchMetadata, PatchStatus, PublishEvent
from shared.model.ec2 import CapacityReservation, FleetInstance, FleetResult, LaunchTemplate
from sim.clock import Clock
from sim.cloud.cloud import Cloud
from tests.contract.asking import ZONE, first, request
from tests.contract.memory_face import Face, in_memory
from tests.golden.requests import reserving
from tests.unit.launch_cases import claim, cluster

NAME = "joiner/reserved"


@pytest.fixture
def aws() -> Face:
    return in_memory(Cloud(Clock()))


def reserve(aws: Face, count: int, kind: str = "m5.large") -> str:
    """Reserve room, make the template that targets it, and answer the reservation's id."""
    one = CapacityReservation(reservation_id="", instance_type=kind, zone=ZONE, available_count=count)
    reservation_id = aws.cloud.reservations.add(one)
    asked = request(aws, "m5.large")
    known = aws.cloud.templates.find(asked.configs[0].launch_template_name)
    template = LaunchTemplate(
        name=NAME,
        image_id=known.image_id,
        user_data="",
        security_group_ids=known.security_group_ids,
        capacity_type="reserved",
        reservation_id=reservation_id,
        reservation_type="default",
    )
    aws.ec2.ensure_launch_template(template)
    return reservation_id


def ask(aws: Face, token: str, capacity: int) -> FleetResult:
    asked = request(aws, "m5.large", client_token=token, capacity=capacity)
    configs = (msgspec.structs.replace(asked.configs[0], launch_template_name=NAME, overrides=(first(asked),)),)
    return aws.ec2.create_fleet(
        msgspec.structs.replace(asked, configs=configs, capacity_type="reserved", reservation_type="default")
    )


def test_a_reservation_gives_what_it_has_and_takes_it_back(aws: Face) -> None:
    reservation_id = reserve(aws, 2)
    result = ask(aws, "one", 3)
    assert [one.capacity_type for one in result.instances] == ["reserved", "reserved"]
    assert [one.code for one in result.errors] == ["ReservationCapacityExceeded"]
    aws.ec2.terminate_instances([result.instances[0].instance_id])
    aws.cloud.clock.advance(timedelta(minutes=2))
    known = aws.cloud.reservations.find(reservation_id)
    assert known is not None
    assert known.available_count == 1
    assert len(ask(aws, "two", 1).instances) == 1


def test_a_reservation_of_another_type_is_none(aws: Face) -> None:
    reserve(aws, 2, kind="m5.xlarge")
    assert [one.code for one in ask(aws, "one", 1).errors] == ["InvalidCapacityReservationId.NotFound"]


@pytest.mark.parametrize(("zone", "reservation"), [("us-east-1a", "cr-2"), ("us-east-1b", "cr-3")])
def test_a_claim_is_told_which_reservation_it_draws_from(zone: str, reservation: str) -> None:
    some = reserving("default")
    [launch] = plan_launches(some).launches
    instance = FleetInstance(
        instance_id="i-1", instance_type="m5.large", zone=zone, subnet_id="s", image_id="a", capacity_type="reserved"
    )
    group = msgspec.structs.replace(launch.group, result=FleetResult(fleet_id="f", instances=(instance,)))
    [told] = [one for one in outcome(group, some).actions if isinstance(one, PatchMetadata)]
    found = dict(told.labels)
    assert (found[labels.RESERVATION_ID], found[labels.RESERVATION_TYPE]) == (reservation, "default")
    assert found[labels.CAPACITY_TYPE] == "reserved"


def test_claims_of_a_request_that_failed_are_told_and_their_pool() -> None:
    some = cluster(claim("a"), claim("b"), claim("c", provider_id="aws:///z/i-1"))
    [launch] = plan_launches(some).launches
    group = msgspec.structs.replace(launch.group, claims=("a", "b", "c"))
    told = unanswered(group, "Forbidden: ec2:CreateFleet: UnauthorizedOperation: no", some)
    patches = [one for one in told if isinstance(one, PatchStatus)]
    assert [one.name for one in patches] == ["a", "b"]
    reasons = {one["reason"] for patch in patches for one in json.loads(patch.status)["conditions"]}
    assert "Unauthorized" in reasons
    [event] = [one for one in told if isinstance(one, PublishEvent)]
    assert (event.kind, event.name) == ("NodePool", "default")
    assert "the role of the function named provision" in event.message
