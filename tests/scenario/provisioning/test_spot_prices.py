"""With `spot-price-tolerance-percent`, Spot nodes cost little more than planned."""

import pytest

from shared.model.decisions.action import LaunchInstances
from shared.ports.world import World as Ports
from sim.world.launch_costs import LaunchCost, compute_excess_percent, measure_launch_costs
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool

SEEDS = (1, 2, 3, 4)


class Tolerant(World):
    """A world whose deployment limits the price of Spot offerings."""

    percent = "5"

    def _build_world(self, function: str, environment: dict[str, str]) -> Ports:
        return super()._build_world(function, environment | {"JOINER_SPOT_PRICE_TOLERANCE_PERCENT": self.percent})


def measure(kind: type[World], seed: int) -> list[LaunchCost]:
    world = kind(make_node_class(), make_node_pool(capacity=("spot",)), seed=seed, types=("m5.xlarge",))
    world.apply([make_deployment(6, cpu="2500m")])
    world.wait_until_settled(6)
    return measure_launch_costs(world.list_done_actions(LaunchInstances), world.cloud)


@pytest.mark.parametrize("seed", SEEDS)
def test_spot_nodes_cost_at_most_the_tolerance_more_than_planned(seed: int) -> None:
    costs = measure(Tolerant, seed)
    assert costs
    for cost in costs:
        ratio = round(cost.realized_usd_per_hour / cost.planned_usd_per_hour, 9)
        assert 1 <= ratio <= 1.05


def test_without_a_tolerance_spot_nodes_cost_more_than_planned() -> None:
    costs = [cost for seed in SEEDS for cost in measure(World, seed)]
    assert compute_excess_percent(costs) > 5
    assert compute_excess_percent([]) == 0
    assert {cost.offering_count for cost in costs} == {3}
