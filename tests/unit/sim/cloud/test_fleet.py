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
def test_a_strategy_is_an_order(strategy: AllocationStrategy, candidates: list[FleetCandidate], order: str) -> None:
    for ordered_candidates in (candidates, candidates[::-1]):
        assert (
            "".join(candidate.override.instance_type for candidate in rank_candidates(ordered_candidates, strategy))
            == order
        )


def test_a_pool_is_as_deep_as_its_seed_says_unless_it_is_empty() -> None:
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
def test_a_strategy_is_for_spot_or_for_on_demand(
    aws: Face, strategy: AllocationStrategy, capacity_type: CapacityType
) -> None:
    fleet_request = build_fleet_request(aws, "m5.large", strategy=strategy, capacity_type=capacity_type)
    with pytest.raises(Invalid) as refused:
        aws.ec2.create_fleet(fleet_request)
    assert refused.value.code == "InvalidParameterValue"


def test_a_fleet_needs_an_offering(aws: Face) -> None:
    with pytest.raises(Invalid) as refused:
        aws.ec2.create_fleet(replace_overrides(build_fleet_request(aws, "m5.large")))
    assert refused.value.code == "MissingParameter"


def test_a_fleet_has_at_most_three_hundred_offerings(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, *list(aws.cloud.types)[:301])
    with pytest.raises(Invalid, match="300"):
        aws.ec2.create_fleet(fleet_request)
    assert aws.ec2.create_fleet(replace_overrides(fleet_request, *fleet_request.configs[0].overrides[:300])).instances


def test_a_fleet_cannot_set_tags_of_ec2s_own(aws: Face) -> None:
    with pytest.raises(Invalid, match="reserved"):
        aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", tags=(("aws:mine", "1"),)))


def test_a_refused_request_does_not_use_up_its_token(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large")
    with pytest.raises(Invalid):
        aws.ec2.create_fleet(msgspec.structs.replace(fleet_request, capacity=0))
    assert aws.ec2.create_fleet(fleet_request).instances


def test_without_a_token_every_call_is_another(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large", client_token="")
    assert aws.ec2.create_fleet(fleet_request).instances != aws.ec2.create_fleet(fleet_request).instances


def test_the_templates_image_is_used_where_the_offering_has_none(aws: Face) -> None:
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


def test_a_type_that_does_not_exist_is_refused(aws: Face) -> None:
    assert get_fleet_error(aws, instance_type="m5.tiny") == (
        "InvalidInstanceType",
        "The instance type 'm5.tiny' does not exist",
    )


def test_a_subnet_is_in_one_zone(aws: Face) -> None:
    code, message = get_fleet_error(aws, zone="us-east-1b")
    assert (code, "us-east-1b" in message) == ("InvalidParameterValue", True)


def test_a_security_group_must_exist(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large")
    aws.ec2.delete_launch_template(TEMPLATE_NAME)
    aws.ec2.ensure_launch_template(msgspec.structs.replace(TEMPLATE, security_group_ids=("sg-0a",)))
    assert [error.code for error in aws.ec2.create_fleet(fleet_request).errors] == ["InvalidGroup.NotFound"]


def test_spot_is_not_sold_of_every_type(aws: Face) -> None:
    types = (info for info in aws.cloud.types.values() if info.architectures == ("x86_64",))
    kind = next(info.name for info in types if "spot" not in info.usage_classes and _is_in_zone(aws, info.name))
    result = aws.ec2.create_fleet(build_fleet_request(aws, kind, strategy="price-capacity-optimized"))
    assert [error.code for error in result.errors] == ["Unsupported"]


def _is_in_zone(aws: Face, kind: str) -> bool:
    return (kind, "us-east-1a") in aws.cloud.offerings


@pytest.mark.parametrize(("strategy", "starts"), [("lowest-price", 0), ("price-capacity-optimized", 1)])
def test_a_template_that_tags_spot_requests_starts_spot_only(
    aws: Face, strategy: AllocationStrategy, starts: int
) -> None:
    fleet_request = build_fleet_request(aws, "m5.large", strategy=strategy)
    template = msgspec.structs.replace(TEMPLATE, tags=TAGS, capacity_type="spot")
    aws.ec2.delete_launch_template(TEMPLATE_NAME)
    aws.ec2.ensure_launch_template(template)
    assert len(aws.ec2.create_fleet(fleet_request).instances) == starts


def test_a_spot_template_without_tags_starts_anything(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large")
    aws.ec2.delete_launch_template(TEMPLATE_NAME)
    aws.ec2.ensure_launch_template(msgspec.structs.replace(TEMPLATE, capacity_type="spot"))
    assert aws.ec2.create_fleet(fleet_request).instances


def test_the_cheapest_spot_offering_is_not_the_cheapest_on_demand(aws: Face) -> None:
    listed = aws.prices.get_on_demand_prices("us-east-1")
    spot = {p.instance_type: p.price_usd_per_hour for p in aws.ec2.describe_spot_prices() if p.zone == "us-east-1a"}
    usual = [
        kind for kind in sorted(spot) if kind.endswith(".large") and "x86_64" in aws.cloud.types[kind].architectures
    ]
    pairs = combinations(usual, 2)
    first_type, second_type = next((a, b) for a, b in pairs if (listed[a] - listed[b]) * (spot[a] - spot[b]) < 0)
    result = aws.ec2.create_fleet(build_fleet_request(aws, first_type, second_type, capacity_type="spot"))
    assert result.instances[0].instance_type == min((first_type, second_type), key=lambda kind: spot[kind])


def test_a_quota_is_of_what_runs_and_of_its_own_kind(aws: Face) -> None:
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


def test_what_is_not_reserved_is_refused(aws: Face) -> None:
    fleet_request = build_fleet_request(aws, "m5.large", capacity_type="reserved")
    assert [error.code for error in aws.ec2.create_fleet(fleet_request).errors] == ["ReservationCapacityExceeded"]


def test_what_is_reserved_can_be_started(aws: Face) -> None:
    aws.cloud.pools.set_limit("m5.large", "us-east-1a", "reserved", 1)
    result = aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", capacity_type="reserved", capacity=2))
    assert [instance.capacity_type for instance in result.instances] == ["reserved"]
    assert [error.code for error in result.errors] == ["ReservationCapacityExceeded"]


def test_a_lack_of_capacity_says_where_else_the_type_is_offered(aws: Face) -> None:
    aws.cloud.pools.set_limit("m5.large", "us-east-1a", "on-demand", 0)
    (error,) = aws.ec2.create_fleet(build_fleet_request(aws, "m5.large")).errors
    assert "(us-east-1a)" in error.message
    assert "choosing us-east-1b, us-east-1c." in error.message


def test_spot_that_is_partly_there_lacks_capacity_only(aws: Face) -> None:
    aws.cloud.pools.set_limit("m5.large", "us-east-1a", "spot", 1)
    result = aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", strategy="price-capacity-optimized", capacity=2))
    assert len(result.instances) == 1
    assert [error.code for error in result.errors] == ["InsufficientInstanceCapacity"]


def test_a_zone_can_be_drained_and_refilled(aws: Face) -> None:
    aws.cloud.drain_zone("us-east-1a", ["on-demand"])
    strategies: tuple[AllocationStrategy, ...] = ("lowest-price", "price-capacity-optimized", "lowest-price")
    started: list[int] = []
    for number, strategy in enumerate(strategies):
        fleet_request = build_fleet_request(aws, "m5.large", strategy=strategy, client_token=f"{FIRST_LAUNCH} {number}")
        started.append(len(aws.ec2.create_fleet(fleet_request).instances))
        if strategy != "lowest-price":
            aws.cloud.restore_zone("us-east-1a")
    assert started == [0, 1, 1]


def test_a_quota_can_be_lifted(aws: Face) -> None:
    aws.cloud.pools.set_quota("on-demand", 2)
    aws.cloud.pools.set_quota("on-demand", None)
    aws.cloud.pools.set_quota("on-demand", None)
    assert len(aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", capacity=5)).instances) == 5


def test_reserved_instances_count_against_the_on_demand_quota(aws: Face) -> None:
    aws.cloud.pools.set_quota("on-demand", 3)
    aws.cloud.pools.set_limit("m5.large", "us-east-1a", "reserved", 5)
    result = aws.ec2.create_fleet(build_fleet_request(aws, "m5.large", capacity_type="reserved", capacity=2))
    assert (len(result.instances), result.errors[0].code) == (1, "VcpuLimitExceeded")
