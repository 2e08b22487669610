"""What is bought for a handful of pods: the cheapest machine that holds them, its daemons and its kubelet."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from shared.launch.groups import plan_launches
from shared.launch.type_room import Knobs
from shared.launch.types import Market, instance_types
from shared.model.catalogue import Catalogue, InstanceType
from shared.scheduling.solve import claims, solve
from sim.cloud.types import instance_types as every_type
from tests.unit.catalogues import daemon, needs, pod, pool, world
from tests.unit.launch_cases import FACTS, node_class

FAMILY = "karpenter.k8s.aws/instance-family"
PINNED = {
    "c4.large": 0.1,
    "c4.xlarge": 0.199,
    "c4.2xlarge": 0.398,
    "t3a.large": 0.0752,
    "t3a.xlarge": 0.1504,
    "t3a.2xlarge": 0.3008,
}
"""USD per hour, us-east-1, November 2026."""


def sold(prices: Mapping[str, float]) -> tuple[InstanceType, ...]:
    known = every_type()
    market = Market(
        region="us-east-1",
        offerings=tuple(sorted((name, zone) for name in prices for zone in ("us-east-1a", "us-east-1b"))),
        on_demand=prices,
        spot=(),
    )
    return instance_types([known[name] for name in prices], market, node_class(), Knobs())


@pytest.mark.parametrize(
    ("count", "family", "bought"),
    [(3, "c4", "c4.large"), (4, "c4", "c4.xlarge"), (15, "t3a", "t3a.2xlarge"), (15, "c4", "c4.2xlarge")],
)
def test_the_cheapest_machine_that_holds_pods_and_daemons_is_bought_and_only_one(
    count: int, family: str, bought: str
) -> None:
    pods = (pod(f"p{number}", "500m", "128Mi") for number in range(count))
    seen = world(
        *pods,
        types=sold(PINNED),
        daemon_sets=(daemon("agent", "150m"),),
        node_pools=(pool(requirements=needs((FAMILY, "In", (family,)))),),
    )
    placement = solve(seen)
    [made] = placement.new_nodes
    assert (len(made.pods), made.cheapest.instance_type) == (count, bought)
    asked = replace(
        seen,
        node_claims=claims(placement, seen),
        node_classes=(node_class(),),
        facts=FACTS,
        catalogue=Catalogue(region="us-east-1", instance_types=(), by_node_class=(("default", sold(PINNED)),)),
    )
    [launch] = plan_launches(asked).launches
    offered = [one for config in launch.group.request.configs for one in config.overrides]
    assert min(offered, key=lambda one: one.priority or 0).instance_type == bought
    assert PINNED[bought] == min(one.priority or 0 for one in offered)
