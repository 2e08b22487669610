"""What launched instances cost, compared with the plan."""

from collections.abc import Iterable

import msgspec

from shared.model.core.labels import LAUNCH_GROUP
from shared.model.decisions.action import LaunchInstances
from sim.cloud.cloud import Cloud
from sim.world.instance_boot import list_active_instances


class LaunchCost(msgspec.Struct, frozen=True, kw_only=True):
    """The prices of the instances of one CreateFleet request, and how many offerings the request had."""

    planned_usd_per_hour: float
    """With every instance at the price of the cheapest offering."""
    realized_usd_per_hour: float
    """With every instance at the price of the offering that EC2 chose."""
    instance_type_count: int
    offering_count: int


def measure_launch_costs(launches: Iterable[LaunchInstances], cloud: Cloud) -> list[LaunchCost]:
    """Return the costs of *launches*, in their order, at the current prices; only active instances count."""
    instance_costs_by_group: dict[str, list[float]] = {}
    now = cloud.clock.get_time()
    for instance in list_active_instances(cloud):
        price_usd_per_hour = (
            cloud.prices.get_spot_price(instance.instance_type, instance.zone, now)
            if instance.capacity_type == "spot"
            else cloud.prices.on_demand[instance.instance_type]
        )
        group_name = dict(instance.tags).get(LAUNCH_GROUP, "")
        instance_costs_by_group.setdefault(group_name, []).append(price_usd_per_hour)
    return [_build_launch_cost(launch, instance_costs_by_group.get(launch.group.name, [])) for launch in launches]


def compute_excess_percent(launch_costs: Iterable[LaunchCost]) -> float:
    """Return how much more than planned all instances cost, in percent; 0 if there are none."""
    costs = list(launch_costs)
    planned = sum(cost.planned_usd_per_hour for cost in costs)
    realized = sum(cost.realized_usd_per_hour for cost in costs)
    return 100 * (realized / planned - 1) if planned else 0.0


def _build_launch_cost(launch: LaunchInstances, instance_costs: list[float]) -> LaunchCost:
    overrides = [override for config in launch.group.request.configs for override in config.overrides]
    return LaunchCost(
        planned_usd_per_hour=len(instance_costs) * min(override.priority or 0.0 for override in overrides),
        realized_usd_per_hour=sum(instance_costs),
        instance_type_count=len({override.instance_type for override in overrides}),
        offering_count=len(overrides),
    )
