"""Contract of dry runs, capacity reservations and placement groups, for every implementation of the cloud."""

from datetime import timedelta

import msgspec
import pytest

from shared.errors import Throttled
from shared.model.ec2.account import CapacityReservation, PlacementGroup, SelectorTerm
from shared.model.ec2.dry_run import DryRunRequest
from shared.model.ec2.launch_template import ConnectionTracking, LaunchTemplate, NetworkInterface
from tests.contract.asking import DISCOVERY, STANDARD, TAGS, TEMPLATE_NAME
from tests.contract.memory_face import Face


def make_dry_run_request(aws: Face, **changes: object) -> DryRunRequest:
    template = LaunchTemplate(
        name=TEMPLATE_NAME,
        image_id=aws.parameters.get_parameter(STANDARD),
        user_data="YQ==",
        instance_profile="nodes",
        security_group_ids=tuple(group.group_id for group in aws.ec2.describe_security_groups(DISCOVERY)),
        network_interfaces=(NetworkInterface(), NetworkInterface(device_index=1, interface_type="efa-only")),
        connection_tracking=ConnectionTracking(udp_timeout=45),
        ip_prefix_count=1,
        nested_virtualization="enabled",
        tags=TAGS,
    )
    return DryRunRequest(
        template=msgspec.structs.replace(template, **changes),
        instance_type="m5.large",
        subnet_ids=tuple(subnet.subnet_id for subnet in aws.ec2.describe_subnets(DISCOVERY)),
        context="arn:context",
    )


def list_error_codes(aws: Face, dry_run_request: DryRunRequest) -> list[tuple[str, str]]:
    return [(error.action, error.code) for error in aws.ec2.dry_run_launch(dry_run_request)]


def test_valid_launch_dry_run_returns_no_errors_and_creates_nothing(aws: Face) -> None:
    assert aws.ec2.dry_run_launch(make_dry_run_request(aws)) == ()
    assert aws.ec2.describe_launch_templates("joiner") == ()
    assert aws.cloud.instances.describe_all() == ()


@pytest.mark.parametrize("action", ["CreateFleet", "CreateLaunchTemplate", "RunInstances"])
def test_denied_action_is_reported_with_the_ec2_error_message(aws: Face, action: str) -> None:
    aws.cloud.dry_runs.deny(action, "explicit deny in a permissions boundary")
    [error] = aws.ec2.dry_run_launch(make_dry_run_request(aws))
    assert (error.action, error.code) == (action, "UnauthorizedOperation")
    assert "permissions boundary" in error.message
    aws.cloud.dry_runs.allow(action)
    assert aws.ec2.dry_run_launch(make_dry_run_request(aws)) == ()


def test_all_denied_actions_are_reported_in_order(aws: Face) -> None:
    for action in ("RunInstances", "CreateFleet", "CreateLaunchTemplate"):
        aws.cloud.dry_runs.deny(action)
    assert [action for action, _ in list_error_codes(aws, make_dry_run_request(aws))] == [
        "CreateFleet",
        "CreateLaunchTemplate",
        "RunInstances",
    ]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"image_id": "ami-0bbbbbbbbbbbbbbbb"}, "InvalidAMIID.NotFound"),
        ({"security_group_ids": ("sg-0bbbbbbbbbbbbbbbb",)}, "InvalidGroup.NotFound"),
        ({"instance_profile": "lost"}, "InvalidParameterValue"),
    ],
)
def test_missing_image_security_group_or_profile_is_reported_by_run_instances(
    aws: Face, changes: dict[str, object], code: str
) -> None:
    aws.cloud.dry_runs.delete_profile("lost")
    assert list_error_codes(aws, make_dry_run_request(aws, **changes)) == [("RunInstances", code)]


def test_single_existing_subnet_is_sufficient(aws: Face) -> None:
    good = make_dry_run_request(aws)
    missing_subnet = "subnet-0bbbbbbbbbbbbbbbb"
    assert list_error_codes(aws, msgspec.structs.replace(good, subnet_ids=(missing_subnet, *good.subnet_ids))) == []
    assert list_error_codes(aws, msgspec.structs.replace(good, subnet_ids=(missing_subnet,))) == [
        ("RunInstances", "InvalidSubnetID.NotFound")
    ]


def test_instance_type_must_exist_and_match_the_image_architecture(aws: Face) -> None:
    for kind, code in (("m6g.large", "InvalidParameterValue"), ("m5.tiny", "InvalidInstanceType")):
        dry_run_request = msgspec.structs.replace(make_dry_run_request(aws), instance_type=kind)
        assert list_error_codes(aws, dry_run_request) == [("RunInstances", code)]


def test_oversized_user_data_is_rejected_by_create_launch_template(aws: Face) -> None:
    assert ("CreateLaunchTemplate", "InvalidUserData.Malformed") in list_error_codes(
        aws, make_dry_run_request(aws, user_data="YWFh" * 5463)
    )


def test_throttling_raises_an_error_instead_of_a_dry_run_result(aws: Face) -> None:
    aws.cloud.rate_limiter.reject_next_calls("CreateLaunchTemplate")
    with pytest.raises(Throttled):
        aws.ec2.dry_run_launch(make_dry_run_request(aws))


def make_reservation(**fields: object) -> CapacityReservation:
    plain = CapacityReservation(reservation_id="", instance_type="m5.large", zone="us-east-1a", available_count=2)
    return msgspec.structs.replace(plain, total_count=3, **fields)


def test_capacity_reservations_are_found_by_id_tags_owner_and_criteria(aws: Face) -> None:
    reservations = aws.cloud.reservations
    first = reservations.add(make_reservation(), tags=(("team", "shop"),))
    second = reservations.add(
        make_reservation(instance_match_criteria="open", owner_id="999999999999", is_interruptible=True)
    )

    def find_ids(*terms: SelectorTerm) -> list[str]:
        return [
            matching_reservation.reservation_id
            for matching_reservation in aws.ec2.describe_capacity_reservations(terms)
        ]

    assert find_ids(SelectorTerm(id=first), SelectorTerm(id="cr-0bbbbbbbbbbbbbbbb")) == [first]
    assert find_ids(SelectorTerm(tags=(("team", "*"),))) == [first]
    assert find_ids(SelectorTerm(tags=(("team", "web"),))) == []
    assert find_ids(SelectorTerm(instance_match_criteria="open")) == [second]
    assert find_ids(SelectorTerm(instance_match_criteria="open", owner="123456789012")) == []
    assert find_ids(SelectorTerm(id=first), SelectorTerm(instance_match_criteria="open")) == sorted((first, second))
    assert find_ids() == []
    [described] = aws.ec2.describe_capacity_reservations((SelectorTerm(id=second),))
    assert described == reservations.find(second)


def test_expired_capacity_reservation_is_not_returned(aws: Face) -> None:
    ends = aws.cloud.clock.get_time() + timedelta(hours=1)
    block = aws.cloud.reservations.add(make_reservation(reservation_type="capacity-block", ends_at=ends))
    [described] = aws.ec2.describe_capacity_reservations((SelectorTerm(id=block),))
    assert (described.ends_at, described.reservation_type) == (ends, "capacity-block")
    aws.cloud.clock.advance(timedelta(hours=1))
    assert aws.ec2.describe_capacity_reservations((SelectorTerm(id=block),)) == ()


def test_scheduled_capacity_block_is_returned_on_request_until_it_is_active(aws: Face) -> None:
    starts_at = aws.cloud.clock.get_time() + timedelta(hours=1)
    block = make_reservation(reservation_type="capacity-block", starts_at=starts_at)
    terms = (SelectorTerm(id=aws.cloud.reservations.add(block)),)
    assert aws.ec2.describe_capacity_reservations(terms) == ()
    [scheduled] = aws.ec2.describe_capacity_reservations(terms, are_scheduled_included=True)
    assert scheduled.starts_at == starts_at
    aws.cloud.clock.advance(timedelta(hours=1))
    [active] = aws.ec2.describe_capacity_reservations(terms)
    assert active.starts_at is None
    assert aws.ec2.describe_capacity_reservations(terms, are_scheduled_included=True) == (active,)


def test_a_placement_group_is_found_by_id_or_name(aws: Face) -> None:
    group = PlacementGroup(group_id="", name="racks", strategy="partition", partition_count=3)
    group_id = aws.cloud.reservations.add_group(group)
    by_name = aws.ec2.describe_placement_group(SelectorTerm(name="racks"))
    assert by_name == msgspec.structs.replace(group, group_id=group_id)
    assert aws.ec2.describe_placement_group(SelectorTerm(id=group_id)) == by_name
    assert aws.ec2.describe_placement_group(SelectorTerm(name="other")) is None
    aws.cloud.reservations.remove_group(group_id)
    assert aws.ec2.describe_placement_group(SelectorTerm(id=group_id)) is None
