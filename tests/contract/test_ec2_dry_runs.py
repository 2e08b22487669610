"""What would be refused, what is set aside, and what groups there are, whoever speaks for the cloud."""

from datetime import timedelta

import msgspec
import pytest

from shared.errors import Throttled
from shared.model.ec2 import (
    CapacityReservation,
    ConnectionTracking,
    LaunchTemplate,
    NetworkInterface,
    PlacementGroup,
    Probe,
    Selector,
)
from tests.contract.asking import DISCOVERY, NAME, STANDARD, TAGS
from tests.contract.memory_face import Face


def probe(aws: Face, **changes: object) -> Probe:
    template = LaunchTemplate(
        name=NAME,
        image_id=aws.parameters.parameter(STANDARD),
        user_data="YQ==",
        instance_profile="nodes",
        security_group_ids=tuple(group.group_id for group in aws.ec2.security_groups(DISCOVERY)),
        network_interfaces=(NetworkInterface(), NetworkInterface(device_index=1, interface_type="efa-only")),
        connection_tracking=ConnectionTracking(udp_timeout=45),
        ip_prefix_count=1,
        nested_virtualization="enabled",
        tags=TAGS,
    )
    return Probe(
        template=msgspec.structs.replace(template, **changes),
        instance_type="m5.large",
        subnet_ids=tuple(subnet.subnet_id for subnet in aws.ec2.subnets(DISCOVERY)),
        context="arn:context",
    )


def codes(aws: Face, asked: Probe) -> list[tuple[str, str]]:
    return [(one.action, one.code) for one in aws.ec2.refusals(asked)]


def test_a_launch_that_would_succeed_is_refused_nothing_and_makes_nothing(aws: Face) -> None:
    assert aws.ec2.refusals(probe(aws)) == ()
    assert aws.ec2.launch_templates("joiner") == ()
    assert aws.cloud.instances() == ()


@pytest.mark.parametrize("action", ["CreateFleet", "CreateLaunchTemplate", "RunInstances"])
def test_a_call_that_is_denied_is_named_with_ec2s_words(aws: Face, action: str) -> None:
    aws.cloud.dry_runs.deny(action, "explicit deny in a permissions boundary")
    [one] = aws.ec2.refusals(probe(aws))
    assert (one.action, one.code) == (action, "UnauthorizedOperation")
    assert "permissions boundary" in one.message
    aws.cloud.dry_runs.allow(action)
    assert aws.ec2.refusals(probe(aws)) == ()


def test_all_that_is_denied_is_named_in_the_order_of_actions(aws: Face) -> None:
    for action in ("RunInstances", "CreateFleet", "CreateLaunchTemplate"):
        aws.cloud.dry_runs.deny(action)
    assert [action for action, _ in codes(aws, probe(aws))] == ["CreateFleet", "CreateLaunchTemplate", "RunInstances"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"image_id": "ami-0bbbbbbbbbbbbbbbb"}, "InvalidAMIID.NotFound"),
        ({"security_group_ids": ("sg-0bbbbbbbbbbbbbbbb",)}, "InvalidGroup.NotFound"),
        ({"instance_profile": "lost"}, "InvalidParameterValue"),
    ],
)
def test_what_does_not_exist_is_said_by_run_instances(aws: Face, changes: dict[str, object], code: str) -> None:
    aws.cloud.dry_runs.lose_profile("lost")
    assert codes(aws, probe(aws, **changes)) == [("RunInstances", code)]


def test_one_subnet_that_does_is_enough(aws: Face) -> None:
    good = probe(aws)
    gone = "subnet-0bbbbbbbbbbbbbbbb"
    assert codes(aws, msgspec.structs.replace(good, subnet_ids=(gone, *good.subnet_ids))) == []
    assert codes(aws, msgspec.structs.replace(good, subnet_ids=(gone,))) == [
        ("RunInstances", "InvalidSubnetID.NotFound")
    ]


def test_a_type_must_fit_the_image_and_exist(aws: Face) -> None:
    for kind, code in (("m6g.large", "InvalidParameterValue"), ("m5.tiny", "InvalidInstanceType")):
        asked = msgspec.structs.replace(probe(aws), instance_type=kind)
        assert codes(aws, asked) == [("RunInstances", code)]


def test_user_data_that_is_too_long_is_refused_by_the_template(aws: Face) -> None:
    assert ("CreateLaunchTemplate", "InvalidUserData.Malformed") in codes(aws, probe(aws, user_data="YWFh" * 5463))


def test_a_throttle_is_no_refusal(aws: Face) -> None:
    aws.cloud.throttle_next("CreateLaunchTemplate")
    with pytest.raises(Throttled):
        aws.ec2.refusals(probe(aws))


def reservation(**fields: object) -> CapacityReservation:
    plain = CapacityReservation(reservation_id="", instance_type="m5.large", zone="us-east-1a", available_count=2)
    return msgspec.structs.replace(plain, total_count=3, **fields)


def test_capacity_reservations_are_found_by_id_tags_owner_and_criteria(aws: Face) -> None:
    held = aws.cloud.reservations
    first = held.add(reservation(), tags=(("team", "shop"),))
    other = held.add(reservation(instance_match_criteria="open", owner_id="999999999999", is_interruptible=True))

    def found(*terms: Selector) -> list[str]:
        return [one.reservation_id for one in aws.ec2.capacity_reservations(terms)]

    assert found(Selector(id=first), Selector(id="cr-0bbbbbbbbbbbbbbbb")) == [first]
    assert found(Selector(tags=(("team", "*"),))) == [first]
    assert found(Selector(tags=(("team", "web"),))) == []
    assert found(Selector(instance_match_criteria="open")) == [other]
    assert found(Selector(instance_match_criteria="open", owner="123456789012")) == []
    assert found(Selector(id=first), Selector(instance_match_criteria="open")) == sorted((first, other))
    assert found() == []
    [one] = aws.ec2.capacity_reservations((Selector(id=other),))
    assert one == held.find(other)


def test_a_reservation_that_has_ended_is_not_answered(aws: Face) -> None:
    ends = aws.cloud.clock.now() + timedelta(hours=1)
    block = aws.cloud.reservations.add(reservation(reservation_type="capacity-block", ends_at=ends))
    [one] = aws.ec2.capacity_reservations((Selector(id=block),))
    assert (one.ends_at, one.reservation_type) == (ends, "capacity-block")
    aws.cloud.clock.advance(timedelta(hours=1))
    assert aws.ec2.capacity_reservations((Selector(id=block),)) == ()


def test_a_placement_group_is_found_by_id_or_name(aws: Face) -> None:
    group = PlacementGroup(group_id="", name="racks", strategy="partition", partition_count=3)
    group_id = aws.cloud.reservations.add_group(group)
    by_name = aws.ec2.placement_group(Selector(name="racks"))
    assert by_name == msgspec.structs.replace(group, group_id=group_id)
    assert aws.ec2.placement_group(Selector(id=group_id)) == by_name
    assert aws.ec2.placement_group(Selector(name="other")) is None
    aws.cloud.reservations.remove_group(group_id)
    assert aws.ec2.placement_group(Selector(id=group_id)) is None
