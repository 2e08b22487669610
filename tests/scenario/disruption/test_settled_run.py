"""Runs of disrupt that took long and found nothing to do: scheduled runs do not repeat them while nothing changes."""

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.ports import world as ports_world
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}
NODE_COUNT = 3
MESSAGE = "nothing has changed"


class SlowWorld(World):
    """A world in which each run of disrupt takes *seconds*, and no node can be disrupted."""

    def __init__(self, seconds: float) -> None:
        """Run three pods on one node each, and wait until nothing changes anymore."""
        self.seconds = 0.0
        pool = make_node_pool(types=("m5.large",), disruption={"consolidationPolicy": "WhenEmptyOrUnderutilized"})
        super().__init__(make_node_class(), pool, make_deployment(NODE_COUNT, affinity=APART))
        self.wait_until_settled(NODE_COUNT)
        self.advance_seconds(600)
        self.seconds = seconds

    def _build_world(self, function: str, environment: dict[str, str]) -> ports_world.World:
        world = super()._build_world(function, environment)
        if function != "disrupt":
            return world
        checks = iter((timedelta(seconds=60),))
        return replace(world, time_left=lambda: next(checks, timedelta(seconds=60 - self.seconds)))

    def count_skipped_runs(self, minutes: int) -> int:
        """Return how many of the scheduled runs in *minutes* evaluate nothing."""
        count_before = sum(MESSAGE in line for line in self.log_lines)
        self.advance_seconds(60 * minutes)
        return sum(MESSAGE in line for line in self.log_lines) - count_before


@pytest.mark.parametrize(("seconds", "minutes", "skipped"), [(0.5, 10, 0), (13.0, 9, 6), (40.0, 10, 8)])
def test_run_that_took_long_is_repeated_after_ten_times_as_long_and_at_most_five_minutes(
    seconds: float, minutes: int, skipped: int
) -> None:
    world = SlowWorld(seconds)
    world.count_skipped_runs(5)
    assert world.count_skipped_runs(minutes) == skipped


def change_pod(world: World) -> None:
    world.apply([make_deployment(1, "other", cpu="100m")])


def change_node_pool(world: World) -> None:
    world.apply([make_node_pool(types=("m5.large", "m5.xlarge"))])


@pytest.mark.parametrize("change", [change_pod, change_node_pool])
def test_changed_cluster_is_evaluated_at_once(change: Callable[[World], None]) -> None:
    world = SlowWorld(30.0)
    world.count_skipped_runs(5)
    change(world)
    assert world.count_skipped_runs(1) == 0


def test_nodes_are_consolidated_as_soon_as_their_pods_have_gone() -> None:
    world = SlowWorld(30.0)
    world.count_skipped_runs(7)
    world.apply([make_deployment(1, affinity=APART)])
    assert world.wait_until(lambda: len(world.list_nodes()) == 1, 300) <= 240


def test_skipped_run_reports_the_metrics_of_the_last_one() -> None:
    world = SlowWorld(30.0)
    count_before = len(world.log_lines)
    assert world.count_skipped_runs(5) >= 1
    lines = [json.loads(line) for line in world.log_lines[count_before:]]
    completed = [line for line in lines if (line["message"], line.get("function")) == ("cycle completed", "disrupt")]
    assert len(completed) == 5
    assert [line["counts"]["ManagedNodes"] for line in completed] == [NODE_COUNT] * 5
    assert len({line["counts"]["FleetUsdPerHour"] for line in completed}) == 1
