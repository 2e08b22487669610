"""Contract of CreateFleet, for every implementation of the cloud."""

from contextlib import suppress
from datetime import timedelta

import msgspec
import pytest

from shared.errors import Invalid, NotFound
from shared.model.ec2.account import PlacementGroup
from shared.model.ec2.fleet import EMPTY_RESULT_ERROR, FleetResult
from shared.model.ec2.types import AllocationStrategy
from sim.cloud.ec2.fleet import REPLAY_ANSWERS, ReplayAnswer
from tests.contract.asking import (
    CLUSTER,
    TAGS,
    TEMPLATE_NAME,
    build_fleet_request,
    get_first_override,
    replace_overrides,
)
from tests.contract.memory_face import Face

SECOND_LAUNCH = "another call"


def list_error_codes(result: FleetResult) -> list[str]:
    return [error.code for error in result.errors]


def list_instance_types(result: FleetResult) -> list[str]:
    return sorted(instance.instance_type for instance in result.instances)


def test_fleet_launches_the_requested_instance_type_in_the_requested_subnet(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large")
    result = aws.ec2.create_fleet(fleet_request)
    (instance,) = result.instances
    assert result.errors == ()
    assert result.fleet_id.startswith("fleet-")
    override = get_first_override(fleet_request)
    assert (instance.instance_type, instance.zone) == ("m5.large", "us-east-1a")
    assert (instance.subnet_id, instance.image_id) == (override.subnet_id, override.image_id)
    assert instance.capacity_type == "on-demand"


def test_lowest_price_fleet_uses_the_next_cheapest_type_when_the_cheapest_is_exhausted(aws: Face) -> None:
    aws.cloud.pools.set_limit("m5.large", "us-east-1a", "on-demand", 1)
    result = aws.ec2.create_fleet(build_fleet_request(aws, "m5.4xlarge", "m5.large", "m5.xlarge", capacity=2))
    assert list_instance_types(result) == ["m5.large", "m5.xlarge"]
    assert [(e.code, e.instance_type, e.zone) for e in result.errors] == [
        ("InsufficientInstanceCapacity", "m5.large", "us-east-1a")
    ]


def test_prioritized_fleet_prefers_priority_over_price(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large", "m5.4xlarge", strategy="prioritized")
    cheap, expensive = fleet_request.configs[0].overrides
    preferred = replace_overrides(fleet_request, cheap, msgspec.structs.replace(expensive, priority=0.0))
    assert list_instance_types(aws.ec2.create_fleet(preferred)) == ["m5.4xlarge"]


def test_spot_fleet_launches_spot_instances(aws: Face) -> None:
    result = aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", strategy="price-capacity-optimized"))
    aws.cloud.clock.advance(timedelta(seconds=30))
    assert aws.ec2.describe_instance(result.instances[0].instance_id).capacity_type == "spot"


def test_exhausted_pools_return_an_error_for_every_attempted_offering(aws: Face) -> None:
    for kind in ("m5.large", "m5.xlarge"):
        aws.cloud.pools.set_limit(kind, "us-east-1a", "on-demand", 0)
    result = aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", "m5.xlarge"))
    assert result.instances == ()
    assert list_error_codes(result) == ["InsufficientInstanceCapacity"] * 2


def test_spot_fleet_without_any_capacity_returns_unfulfillable_capacity(aws: Face) -> None:
    aws.cloud.drain_zone("us-east-1a")
    result = aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", strategy="price-capacity-optimized"))
    assert result.instances == ()
    assert list_error_codes(result) == ["UnfulfillableCapacity"]


@pytest.mark.parametrize(
    ("strategy", "code"),
    [("lowest-price", "VcpuLimitExceeded"), ("price-capacity-optimized", "MaxSpotInstanceCountExceeded")],
)
def test_vcpu_quota_limits_the_number_of_launched_instances(aws: Face, strategy: AllocationStrategy, code: str) -> None:
    fleet_request = build_fleet_request(aws, "m5.large", strategy=strategy, capacity=3)
    aws.cloud.pools.set_quota(fleet_request.capacity_type, 4)
    result = aws.ec2.create_fleet(fleet_request)
    assert len(result.instances) == 2
    assert list_error_codes(result) == [code]


def test_full_subnet_limits_the_number_of_launched_instances(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large", capacity=3)
    aws.cloud.network.get_subnet(get_first_override(fleet_request).subnet_id).set_free(1)
    result = aws.ec2.create_fleet(fleet_request)
    assert len(result.instances) == 1
    assert [(e.code, e.subnet_id) for e in result.errors] == [
        ("InsufficientFreeAddressesInSubnet", get_first_override(fleet_request).subnet_id)
    ]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"subnet_id": "subnet-0aaaaaaaaaaaaaaaa"}, "InvalidSubnetID.NotFound"),
        ({"image_id": "ami-0aaaaaaaaaaaaaaaa"}, "InvalidAMIID.NotFound"),
        ({"instance_type": "m6g.large"}, "InvalidParameterValue"),
    ],
)
def test_invalid_override_returns_an_error_for_that_offering(aws: Face, changes: dict[str, str], code: str) -> None:
    fleet_request = build_fleet_request(aws, "m5.large")
    result = aws.ec2.create_fleet(
        replace_overrides(fleet_request, msgspec.structs.replace(get_first_override(fleet_request), **changes))
    )
    assert result.instances == ()
    assert list_error_codes(result) == [code]


def test_instance_type_not_offered_in_the_zone_is_unsupported(aws: Face) -> None:
    offered = set(aws.ec2.describe_offerings())
    usual = (info for info in aws.ec2.describe_instance_types() if info.architectures == ("x86_64",))
    absent = next(info.name for info in usual if (info.name, "us-east-1a") not in offered)
    assert list_error_codes(aws.ec2.create_fleet(build_fleet_request(aws, absent))) == ["Unsupported"]


def test_invalid_override_does_not_affect_other_overrides(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large", "m5.xlarge")
    cheap, expensive = fleet_request.configs[0].overrides
    broken = msgspec.structs.replace(cheap, image_id="ami-0aaaaaaaaaaaaaaaa")
    result = aws.ec2.create_fleet(replace_overrides(fleet_request, broken, expensive))
    assert list_instance_types(result) == ["m5.xlarge"]
    assert list_error_codes(result) == ["InvalidAMIID.NotFound"]


def test_missing_launch_template_raises_not_found(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large")
    aws.ec2.delete_launch_template(TEMPLATE_NAME)
    with pytest.raises(NotFound, match=r"InvalidLaunchTemplateName\.NotFoundException"):
        aws.ec2.create_fleet(fleet_request)


@pytest.mark.parametrize("answer", REPLAY_ANSWERS)
def test_a_repeated_request_launches_nothing(aws: Face, answer: ReplayAnswer) -> None:
    aws.cloud.fleets.replay_answer = answer
    fleet_request = build_fleet_request(aws, "m5.large", capacity=2)
    once = aws.ec2.create_fleet(fleet_request)
    aws.ec2.terminate_instances([once.instances[0].instance_id])
    if answer == "rejected":
        with pytest.raises(Invalid) as refused:
            aws.ec2.create_fleet(fleet_request)
        assert refused.value.code == "IdempotentParameterMismatch"
    else:
        empty = FleetResult(fleet_id=once.fleet_id, errors=(EMPTY_RESULT_ERROR,))
        assert aws.ec2.create_fleet(fleet_request) == (once if answer == "original" else empty)
    aws.cloud.clock.advance(timedelta(minutes=2))
    assert len(aws.ec2.describe_instances(CLUSTER)) == 1


@pytest.mark.parametrize("answer", REPLAY_ANSWERS)
def test_repeated_request_without_instances_launches_no_instance(aws: Face, answer: ReplayAnswer) -> None:
    aws.cloud.fleets.replay_answer = answer
    aws.cloud.pools.set_limit("m5.large", "us-east-1a", "on-demand", 0)
    fleet_request = build_fleet_request(aws, "m5.large")
    once = aws.ec2.create_fleet(fleet_request)
    aws.cloud.pools.set_limit("m5.large", "us-east-1a", "on-demand", None)
    with suppress(Invalid):
        assert aws.ec2.create_fleet(fleet_request).errors == (
            once.errors if answer == "original" else (EMPTY_RESULT_ERROR,)
        )
    assert aws.cloud.instances.list_all() == ()


def test_a_repeated_request_whose_template_is_gone_is_refused(aws: Face) -> None:
    aws.cloud.fleets.replay_answer = "rejected"
    fleet_request = build_fleet_request(aws, "m5.large")
    aws.ec2.create_fleet(fleet_request)
    aws.ec2.delete_launch_template(TEMPLATE_NAME)
    with pytest.raises(NotFound):
        aws.ec2.create_fleet(fleet_request)


def test_the_instances_of_a_launch_group_are_those_with_its_tag(aws: Face) -> None:
    tags = (*TAGS, ("joiner.dev/launch-group", "first"))
    result = aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", capacity=2, tags=tags))
    aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", client_token=SECOND_LAUNCH))
    assert aws.ec2.describe_launch_group("first") == ()
    aws.cloud.clock.advance(timedelta(seconds=3))
    launched_ids = [instance.instance_id for instance in result.instances]
    assert [instance.instance_id for instance in aws.ec2.describe_launch_group("first")] == launched_ids
    aws.ec2.terminate_instances(launched_ids[:1])
    aws.cloud.clock.advance(timedelta(minutes=2))
    assert [instance.instance_id for instance in aws.ec2.describe_launch_group("first")] == launched_ids[1:]
    assert aws.ec2.describe_launch_group("none") == ()


def test_client_token_with_different_parameters_is_rejected(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large")
    aws.ec2.create_fleet(fleet_request)
    with pytest.raises(Invalid) as refused:
        aws.ec2.create_fleet(msgspec.structs.replace(fleet_request, capacity=2))
    assert refused.value.code == "IdempotentParameterMismatch"


def test_different_client_token_launches_new_instances(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large")
    once = aws.ec2.create_fleet(fleet_request)
    second_fleet = aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", client_token=SECOND_LAUNCH))
    assert {i.instance_id for i in once.instances}.isdisjoint(i.instance_id for i in second_fleet.instances)


def test_duplicate_overrides_are_rejected(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large", "m5.large")
    with pytest.raises(Invalid) as refused:
        aws.ec2.create_fleet(fleet_request)
    assert refused.value.code == "InvalidFleetConfig"


def test_zero_target_capacity_is_rejected(aws: Face) -> None:
    with pytest.raises(Invalid):
        aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", capacity=0))


def test_instance_has_the_tags_of_the_fleet_request(aws: Face) -> None:
    result = aws.ec2.create_fleet(build_fleet_request(aws, "m5.large"))
    aws.cloud.clock.advance(timedelta(seconds=30))
    instance = aws.ec2.describe_instance(result.instances[0].instance_id)
    assert set(TAGS) <= set(instance.tags)
    assert instance.get_tag("aws:ec2:fleet-id") == result.fleet_id


def create_fleet_with_template(aws: Face, kind: str, **changes: object) -> FleetResult:
    """Create a fleet of one *kind* from a launch template that differs from the default one by *changes*."""
    fleet_request = build_fleet_request(aws, kind)
    usual = aws.cloud.templates.find(TEMPLATE_NAME)
    template = msgspec.structs.replace(usual, name="joiner/shaped", created_at=None, **changes)
    aws.ec2.ensure_launch_template(template)
    assert msgspec.structs.replace(aws.cloud.templates.find(template.name), created_at=None) == template
    config = msgspec.structs.replace(fleet_request.configs[0], launch_template_name=template.name)
    return aws.ec2.create_fleet(msgspec.structs.replace(fleet_request, configs=(config,)))


@pytest.mark.parametrize(
    ("kind", "changes", "code"),
    [
        ("c5n.18xlarge", {"efa_interfaces": 1}, ""),
        ("m5.large", {"efa_interfaces": 1}, "InvalidParameterCombination"),
        ("c5n.18xlarge", {"efa_interfaces": 2}, "InvalidParameterCombination"),
        ("m5.xlarge", {"enclaves": True}, ""),
        ("t3.large", {"enclaves": True}, "UnsupportedOperation"),
        ("m5.large", {"tenancy": "dedicated"}, ""),
        ("m5.large", {"placement_group_id": "pg-none"}, "InvalidPlacementGroup.Unknown"),
        ("m5.large", {"placement_group_id": "pg-1", "partition_number": 2}, ""),
        ("m5.large", {"placement_group_id": "pg-1", "partition_number": 3}, "InvalidParameterValue"),
        ("t3.large", {"placement_group_id": "pg-2"}, "InvalidParameterCombination"),
    ],
)
def test_launch_template_options_must_be_supported_by_the_instance_type(
    aws: Face, kind: str, changes: dict[str, object], code: str
) -> None:
    aws.cloud.reservations.add_group(PlacementGroup(group_id="pg-1", strategy="partition", partition_count=2))
    aws.cloud.reservations.add_group(PlacementGroup(group_id="pg-2", strategy="cluster"))
    result = create_fleet_with_template(aws, kind, **changes)
    assert list_error_codes(result) == ([code] if code else [])
    assert list_instance_types(result) == ([] if code else [kind])
