"""The setting `spot-price-tolerance-percent`: the Spot offerings of a request that EC2 may choose."""

import msgspec
import pytest

from shared.cycles.setup.options_from_settings import build_launch_policy
from shared.decide.disruption.methods.replacement import MIN_SPOT_TYPES
from shared.decide.launch.fleets.launch_planning import LaunchPolicy
from shared.decide.launch.fleets.offerings import MIN_SPOT_TO_SPOT_TYPES, SpotPriceTolerance
from shared.model.core import labels
from shared.model.core.requirements import build_requirements, parse_requirement
from shared.settings import Settings
from tests.support.launch_cases import make_claim, make_cluster
from tests.support.snapshot_decisions import plan_launches

Pools = list[tuple[str, str]]


def list_pools(claim_type: str = "spot", *, min_values: int | None = None, **fields: int) -> Pools:
    """Return type and zone of the overrides of one launch, the cheapest first.

    In the market, m5.large costs $0.03 in zone a and $0.04 in zone b (33 % more), c5.xlarge $0.054 and $0.072.
    """
    claim = make_claim("a", capacity_types=(claim_type,))
    if min_values is not None:
        minimum = parse_requirement(labels.INSTANCE_TYPE, "Exists", min_values=min_values)
        claim = make_claim("a", requirements=build_requirements((*claim.requirements, minimum)))
    policy = LaunchPolicy(spot_price_tolerance=SpotPriceTolerance(**fields))
    [launch] = plan_launches(make_cluster(claim), policy).launches
    overrides = [override for config in launch.group.request.configs for override in config.overrides]
    overrides.sort(key=lambda override: (override.priority or 0, override.instance_type, override.zone))
    return [(override.instance_type, override.zone[-1]) for override in overrides]


@pytest.mark.parametrize(
    ("percent", "pools"),
    [
        (1, [("m5.large", "a")]),
        (33, [("m5.large", "a")]),
        (34, [("m5.large", "a"), ("m5.large", "b")]),
        (80, [("m5.large", "a"), ("m5.large", "b"), ("c5.xlarge", "a")]),
    ],
)
def test_spot_offerings_above_the_tolerance_are_left_out(percent: int, pools: Pools) -> None:
    assert list_pools(percent=percent) == pools


def test_without_a_tolerance_every_spot_offering_is_requested() -> None:
    assert len(list_pools()) == len(list_pools(percent=1000)) == 6


def test_the_cheapest_offerings_of_the_minimum_of_types_stay() -> None:
    assert list_pools(percent=1, min_types=2) == [("m5.large", "a"), ("c5.xlarge", "a")]


def test_on_demand_launches_and_launches_with_min_values_have_no_limit() -> None:
    assert len(list_pools("on-demand", percent=1)) == len(list_pools("on-demand"))
    assert list_pools(percent=1, min_values=2) == list_pools(min_values=2)


def test_spot_to_spot_consolidation_keeps_as_many_types_as_a_replacement_requires() -> None:
    assert MIN_SPOT_TO_SPOT_TYPES == MIN_SPOT_TYPES
    settings = Settings(cluster_name="demo", region="r", spot_price_tolerance_percent=20)
    assert build_launch_policy(settings).spot_price_tolerance == SpotPriceTolerance(percent=20)
    gated_settings = msgspec.structs.replace(settings, feature_gates="SpotToSpotConsolidation=true")
    gated_policy = build_launch_policy(gated_settings)
    assert gated_policy.spot_price_tolerance == SpotPriceTolerance(percent=20, min_types=15)
    assert build_launch_policy(Settings(cluster_name="demo", region="r")).spot_price_tolerance.percent == 0
