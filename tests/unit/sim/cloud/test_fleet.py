"""Tests of fleets: order of the offerings and request errors; tests/contract has what all faces share."""

import math
from itertools import combinations

import msgspec
import pytest

from shared.errors import Invalid
from shared.model.ec2.fleet import Override
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.ec2.types import AllocationStrategy, CapacityType
from sim.cloud.cloud import Cloud
from sim.cloud.ec2.capacity_pools import CapacityPools
from sim.cloud.ec2.fleet import FleetCandidate, rank_candidates
from sim.time.virtual_clock import Clock
from tests.contract.asking import (
    FIRST_LAUNCH,
    TAGS,
    TEMPLATE_NAME,
    build_fleet_request,
    get_first_override,
    replace_overrides,
)
from tests.contract.memory_face import Face, build_memory_face

TEMPLATE = LaunchTemplate(name=TEMPLATE_NAME, image_id="ami-0b", user_data="")


@pytest.fixture
def aws() -> Face:
    return build_memory_face(Cloud(Clock()))


def make_candidate(kind: str, price: float = 1.0, depth: float = 0.0, priority: float | None = None) -> FleetCandidate:
    override = Override(instance_type=kind, zone="z", subnet_id="s", priority=priority)
    return FleetCandidate(override=override, template=TEMPLATE, price_usd_per_hour=price, pool_depth=depth)


@pytest.mark.parametrize(
    ("strategy", "candidates", "order"),
    [
        ("lowest-price", [make_candidate("a", 2), make_candidate("b", 1), make_candidate("c", 3, 0.9)], "bac"),
        ("lowest-price", [make_candidate("b", 1, priority=0), make_candidate("a", 1)], "ab"),
        (
            "prioritized",
            [make_candidate("a", 1), make_candidate("b", 3, priority=2), make_candidate("c", 9, priority=1)],
            "cba",
        ),
        ("prioritized", [make_candidate("a", 2, priority=1), make_candidate("b", 1, priority=1)], "ba"),
        ("price-capacity-optimized", [make_candidate("a", 1, 0), make_candidate("b", 1.5, 0.9)], "ba"),
        ("price-capacity-optimized", [make_candidate("a", 1, 0), make_candidate("b", 2, 0.99)], "ab"),
        ("capacity-optimized-prioritized", [make_candidate("a", 1, 0.1), make_candidate("b", 9, 0.9)], "ba"),
        (
            "capacity-optimized-prioritized",
            [
                make_candidate("a", 1, 0.8, priority=2),
                make_candidate("b", 9, 0.78, priority=1),
                make_candidate("c", 1, 0.9),
            ],
            "bac",
        ),
    ],
)
def test_allocation_strategy_defines_the_order_of_offerings(
    strategy: AllocationStrategy, candidates: list[FleetCandidate], order: str
) -> None:
    for ordered_candidates in (candidates, candidates[::-1]):
        assert (
            "".join(candidate.override.instance_type for candidate in rank_candidates(ordered_candidates, strategy))
            == order
        )


def test_capacity_pool_depth_depends_on_the_seed_unless_the_pool_is_empty() -> None:
    pools = CapacityPools(0)
    depths = {pools.compute_depth(kind, "us-east-1a", "spot") for kind in ("a", "b", "c")}
    assert len(depths) == 3
    assert all(0 <= depth < 1 for depth in depths)
    pools.set_limit("a", "us-east-1a", "spot", 0)
    assert math.isclose(pools.compute_depth("a", "us-east-1a", "spot"), 0)


@pytest.mark.parametrize(
    ("strategy", "capacity_type"),
    [
        ("prioritized", "spot"),
        ("price-capacity-optimized", "on-demand"),
        ("capacity-optimized-prioritized", "on-demand"),
        ("price-capacity-optimized", "reserved"),
    ],
)
def test_allocation_strategy_of_another_capacity_type_is_rejected(
    aws: Face, strategy: AllocationStrategy, capacity_type: CapacityType
) -> None:
    fleet_request = build_fleet_request(aws, "m5.large", strategy=strategy, capacity_type=capacity_type)
    with pytest.raises(Invalid) as refused:
        aws.ec2.create_fleet(fleet_request)
    assert refused.value.code == "InvalidParameterValue"


def test_fleet_without_overrides_is_rejected(aws: Face) -> None:
    with pytest.raises(Invalid) as refused:
        aws.ec2.create_fleet(replace_overrides(build_fleet_request(aws, "m5.large")))
    assert refused.value.code == "MissingParameter"


def test_fleet_with_more_than_300_overrides_is_rejected(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, *list(aws.cloud.types)[:301])
    with pytest.raises(Invalid, match="300"):
        aws.ec2.create_fleet(fleet_request)
    assert aws.ec2.create_fleet(replace_overrides(fleet_request, *fleet_request.configs[0].overrides[:300])).instances


def test_fleet_with_reserved_aws_tags_is_rejected(aws: Face) -> None:
    with pytest.raises(Invalid, match="reserved"):
        aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", tags=(("aws:mine", "1"),)))


def test_rejected_request_does_not_use_its_client_token(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large")
    with pytest.raises(Invalid):
        aws.ec2.create_fleet(msgspec.structs.replace(fleet_request, capacity=0))
    assert aws.ec2.create_fleet(fleet_request).instances


def test_requests_without_a_client_token_launch_separate_instances(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large", client_token="")
    assert aws.ec2.create_fleet(fleet_request).instances != aws.ec2.create_fleet(fleet_request).instances


def test_launch_template_image_is_used_if_the_override_has_none(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large")
    bare = msgspec.structs.replace(get_first_override(fleet_request), image_id="")
    (instance,) = aws.ec2.create_fleet(replace_overrides(fleet_request, bare)).instances
    assert instance.image_id == aws.cloud.templates.find(TEMPLATE_NAME).image_id


def get_fleet_error(aws: Face, **changes: str) -> tuple[str, str]:
    fleet_request = build_fleet_request(aws, "m5.large")
    result = aws.ec2.create_fleet(
        replace_overrides(fleet_request, msgspec.structs.replace(get_first_override(fleet_request), **changes))
    )
    assert result.instances == ()
    return result.errors[0].code, result.errors[0].message


def test_unknown_instance_type_is_rejected(aws: Face) -> None:
    assert get_fleet_error(aws, instance_type="m5.tiny") == (
        "InvalidInstanceType",
        "The instance type 'm5.tiny' does not exist",
    )


def test_subnet_in_another_zone_is_rejected(aws: Face) -> None:
    code, message = get_fleet_error(aws, zone="us-east-1b")
    assert (code, "us-east-1b" in message) == ("InvalidParameterValue", True)


def test_unknown_security_group_is_rejected(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large")
    aws.ec2.delete_launch_template(TEMPLATE_NAME)
    aws.ec2.ensure_launch_template(msgspec.structs.replace(TEMPLATE, security_group_ids=("sg-0a",)))
    assert [error.code for error in aws.ec2.create_fleet(fleet_request).errors] == ["InvalidGroup.NotFound"]


def test_spot_request_for_an_on_demand_only_type_is_rejected(aws: Face) -> None:
    types = (info for info in aws.cloud.types.values() if info.architectures == ("x86_64",))
    kind = next(info.name for info in types if "spot" not in info.usage_classes and _is_in_zone(aws, info.name))
    result = aws.ec2.create_fleet(build_fleet_request(aws, kind, strategy="price-capacity-optimized"))
    assert [error.code for error in result.errors] == ["Unsupported"]


def _is_in_zone(aws: Face, kind: str) -> bool:
    return (kind, "us-east-1a") in aws.cloud.offerings


@pytest.mark.parametrize(("strategy", "starts"), [("lowest-price", 0), ("price-capacity-optimized", 1)])
def test_launch_template_that_tags_spot_requests_launches_only_spot(
    aws: Face, strategy: AllocationStrategy, starts: int
) -> None:
    fleet_request = build_fleet_request(aws, "m5.large", strategy=strategy)
    template = msgspec.structs.replace(TEMPLATE, tags=TAGS, capacity_type="spot")
    aws.ec2.delete_launch_template(TEMPLATE_NAME)
    aws.ec2.ensure_launch_template(template)
    assert len(aws.ec2.create_fleet(fleet_request).instances) == starts


def test_spot_launch_template_without_tags_launches_on_demand_too(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large")
    aws.ec2.delete_launch_template(TEMPLATE_NAME)
    aws.ec2.ensure_launch_template(msgspec.structs.replace(TEMPLATE, capacity_type="spot"))
    assert aws.ec2.create_fleet(fleet_request).instances


def test_cheapest_spot_offering_is_selected_by_spot_price(aws: Face) -> None:
    listed = aws.prices.get_on_demand_prices("us-east-1")
    spot = {p.instance_type: p.price_usd_per_hour for p in aws.ec2.describe_spot_prices() if p.zone == "us-east-1a"}
    usual = [
        kind for kind in sorted(spot) if kind.endswith(".large") and "x86_64" in aws.cloud.types[kind].architectures
    ]
    pairs = combinations(usual, 2)
    first_type, second_type = next((a, b) for a, b in pairs if (listed[a] - listed[b]) * (spot[a] - spot[b]) < 0)
    result = aws.ec2.create_fleet(build_fleet_request(aws, first_type, second_type, capacity_type="spot"))
    assert result.instances[0].instance_type == min((first_type, second_type), key=lambda kind: spot[kind])


def test_vcpu_quota_counts_running_instances_of_its_capacity_type(aws: Face) -> None:
    fleet_requests = [
        build_fleet_request(aws, "m5.large", client_token=f"{FIRST_LAUNCH} {number}") for number in range(3)
    ]
    spot = build_fleet_request(aws, "m5.large", strategy="price-capacity-optimized", capacity=5)
    aws.ec2.create_fleet(spot)
    aws.cloud.pools.set_quota("on-demand", 2)
    (stopped,) = aws.ec2.create_fleet(fleet_requests[0]).instances
    assert not aws.ec2.create_fleet(fleet_requests[1]).instances
    aws.cloud.instances.stop(stopped.instance_id)
    assert aws.ec2.create_fleet(fleet_requests[2]).instances


def test_reserved_launch_without_a_reservation_is_rejected(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large", capacity_type="reserved")
    assert [error.code for error in aws.ec2.create_fleet(fleet_request).errors] == ["ReservationCapacityExceeded"]


def test_reserved_launch_is_limited_by_the_reservation(aws: Face) -> None:
    aws.cloud.pools.set_limit("m5.large", "us-east-1a", "reserved", 1)
    result = aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", capacity_type="reserved", capacity=2))
    assert [instance.capacity_type for instance in result.instances] == ["reserved"]
    assert [error.code for error in result.errors] == ["ReservationCapacityExceeded"]


def test_insufficient_capacity_message_names_the_other_zones(aws: Face) -> None:
    aws.cloud.pools.set_limit("m5.large", "us-east-1a", "on-demand", 0)
    (error,) = aws.ec2.create_fleet(build_fleet_request(aws, "m5.large")).errors
    assert "(us-east-1a)" in error.message
    assert "choosing us-east-1b, us-east-1c." in error.message


def test_partially_available_spot_reports_only_insufficient_capacity(aws: Face) -> None:
    aws.cloud.pools.set_limit("m5.large", "us-east-1a", "spot", 1)
    result = aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", strategy="price-capacity-optimized", capacity=2))
    assert len(result.instances) == 1
    assert [error.code for error in result.errors] == ["InsufficientInstanceCapacity"]


def test_zone_capacity_can_be_drained_and_restored(aws: Face) -> None:
    aws.cloud.drain_zone("us-east-1a", ["on-demand"])
    strategies: tuple[AllocationStrategy, ...] = ("lowest-price", "price-capacity-optimized", "lowest-price")
    started: list[int] = []
    for number, strategy in enumerate(strategies):
        fleet_request = build_fleet_request(aws, "m5.large", strategy=strategy, client_token=f"{FIRST_LAUNCH} {number}")
        started.append(len(aws.ec2.create_fleet(fleet_request).instances))
        if strategy != "lowest-price":
            aws.cloud.restore_zone("us-east-1a")
    assert started == [0, 1, 1]


def test_vcpu_quota_can_be_removed(aws: Face) -> None:
    aws.cloud.pools.set_quota("on-demand", 2)
    aws.cloud.pools.set_quota("on-demand", None)
    aws.cloud.pools.set_quota("on-demand", None)
    assert len(aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", capacity=5)).instances) == 5


def test_reserved_instances_count_against_the_on_demand_quota(aws: Face) -> None:
    aws.cloud.pools.set_quota("on-demand", 3)
    aws.cloud.pools.set_limit("m5.large", "us-east-1a", "reserved", 5)
    result = aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", capacity_type="reserved", capacity=2))
    assert (len(result.instances), result.errors[0].code) == (1, "VcpuLimitExceeded")
