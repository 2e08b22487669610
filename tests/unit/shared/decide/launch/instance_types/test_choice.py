"""The node bought for a few pods: the cheapest that fits the pods, their daemons and the kubelet."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from shared.decide.launch.instance_types.capacity import CapacitySettings
from shared.decide.launch.instance_types.instance_types import build_instance_types
from shared.decide.scheduling.templates.node_claim_builder import build_node_claims
from shared.model.cloud_provider.instance_type import Catalog, InstanceType
from shared.model.cloud_provider.regional_offerings import RegionalOfferings
from sim.cloud.catalog.instance_types import load_instance_types as every_type
from tests.support.catalogues import make_cluster_snapshot, make_daemon_set, make_node_pool, make_pod, make_requirements
from tests.support.launch_cases import FACTS, make_node_class
from tests.support.snapshot_decisions import plan_launches, solve

FAMILY = "karpenter.k8s.aws/instance-family"
PRICES_USD_PER_HOUR = {
    "c4.large": 0.1,
    "c4.xlarge": 0.199,
    "c4.2xlarge": 0.398,
    "t3a.large": 0.0752,
    "t3a.xlarge": 0.1504,
    "t3a.2xlarge": 0.3008,
}
"""USD per hour, us-east-1, November 2026."""


def build_priced_types(prices: Mapping[str, float]) -> tuple[InstanceType, ...]:
    infos_by_name = every_type()
    market = RegionalOfferings(
        region="us-east-1",
        offerings=tuple(sorted((name, zone) for name in prices for zone in ("us-east-1a", "us-east-1b"))),
        on_demand=prices,
        spot=(),
    )
    return build_instance_types([infos_by_name[name] for name in prices], market, make_node_class(), CapacitySettings())


@pytest.mark.parametrize(
    ("count", "family", "expected_type"),
    [(3, "c4", "c4.large"), (4, "c4", "c4.xlarge"), (15, "t3a", "t3a.2xlarge"), (15, "c4", "c4.2xlarge")],
)
def test_cheapest_instance_type_that_fits_pods_and_daemon_sets_is_launched(
    count: int, family: str, expected_type: str
) -> None:
    pods = (make_pod(f"p{number}", "500m", "128Mi") for number in range(count))
    snapshot = make_cluster_snapshot(
        *pods,
        types=build_priced_types(PRICES_USD_PER_HOUR),
        daemon_sets=(make_daemon_set("agent", "150m"),),
        node_pools=(make_node_pool(requirements=make_requirements((FAMILY, "In", (family,)))),),
    )
    placement = solve(snapshot)
    [new_node] = placement.new_nodes
    assert (len(new_node.pods), new_node.cheapest.instance_type) == (count, expected_type)
    claimed_snapshot = replace(
        snapshot,
        node_claims=build_node_claims(placement, snapshot),
        node_classes=(make_node_class(),),
        facts=FACTS,
        catalog=Catalog(
            region="us-east-1", instance_types=(), by_node_class=(("default", build_priced_types(PRICES_USD_PER_HOUR)),)
        ),
    )
    [launch] = plan_launches(claimed_snapshot).launches
    offered = [override for config in launch.group.request.configs for override in config.overrides]
    assert min(offered, key=lambda one: one.priority or 0).instance_type == expected_type
    assert PRICES_USD_PER_HOUR[expected_type] == min(override.priority or 0 for override in offered)
