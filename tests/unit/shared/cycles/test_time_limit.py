"""An invocation that is almost out of time executes its plan and wakes the next one immediately."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from functions.invocation import with_time_left
from shared.cycles.provision import run_provision
from shared.decide.scheduling.packing import new_node_placement
from shared.model.decisions.action import CreateNodeClaim, EvictPod, FollowUp, PatchStatus, PublishEvent, TaintNode
from shared.ports.world import World as Ports
from sim.benchmarks.decision_time import build_benchmark_world
from tests.scenario.worlds import CLAIMS, World, make_deployment, make_node_class, make_node_pool


def build_world_with_time_left(time_left: timedelta) -> Ports:
    return msgspec.structs.replace(build_benchmark_world(12), time_left=lambda: time_left)


@pytest.mark.parametrize(("seconds", "is_planned"), [(50, True), (3, False)])
def test_planning_stops_early_enough_to_apply_the_plan(
    monkeypatch: pytest.MonkeyPatch, seconds: int, *, is_planned: bool
) -> None:
    monkeypatch.setattr(new_node_placement, "NODES_PER_DEADLINE_CHECK", 1)
    report = run_provision(build_world_with_time_left(timedelta(seconds=seconds)), "schedule")
    actions = [outcome.action for outcome in report.outcomes]
    assert any(isinstance(action, CreateNodeClaim) for action in actions) is is_planned
    at_once = [
        action
        for action in actions
        if isinstance(action, FollowUp) and not action.after and action.function == "provision"
    ]
    assert bool(at_once) is not is_planned
    assert report.counts["PendingPods"] == 12.0
    assert report.counts["UnschedulablePods"] == 0.0
    assert report.counts["PriceAgeSeconds"] == 0.0


class TimeLimitedWorld(World):
    """A world whose lifecycle function has a fixed time left."""

    time_left = timedelta(minutes=1)

    def _build_world(self, function: str, environment: dict[str, str]) -> Ports:
        ports = super()._build_world(function, environment)
        return msgspec.structs.replace(ports, time_left=lambda: self.time_left) if function == "lifecycle" else ports


def test_lifecycle_out_of_time_skips_remaining_actions_and_triggers_the_next_run() -> None:
    world = TimeLimitedWorld(make_node_class(), make_node_pool(after="Never"), make_deployment(3))
    world.wait_until_settled(3)
    (claim,) = world.list_claims()
    world.cluster.api.delete(CLAIMS, claim["metadata"]["name"])
    world.time_left = timedelta(seconds=3)
    world.runtime.stop()
    world.runtime.invoke("lifecycle", {"source": "schedule"})
    results = world.entries[-1].results
    assert {result.result for result in results if not isinstance(result.action, FollowUp)} == {"skipped"}
    assert any(
        isinstance(result.action, FollowUp) and not result.action.after and result.result == "done"
        for result in results
    )
    assert not world.list_done_actions(TaintNode)
    world.time_left = timedelta(minutes=1)
    world.advance_seconds(2)
    assert world.list_done_actions(TaintNode)


def test_events_are_published_after_all_other_actions() -> None:
    """Events come last: if a function stops in the middle of many nodes, they have not delayed a drain."""
    world = World(make_node_class(), make_node_pool(after="Never"), make_deployment(3))
    world.wait_until_settled(3)
    world.entries.clear()
    for claim in world.list_claims():
        world.cluster.api.delete(CLAIMS, claim["metadata"]["name"])
    world.wait_until(lambda: world.list_done_actions(EvictPod))
    entry = next(
        journal_entry
        for journal_entry in world.entries
        if any(isinstance(result.action, EvictPod) for result in journal_entry.results)
    )
    kinds = [isinstance(result.action, PublishEvent) for result in entry.results]
    first = kinds.index(True)
    assert not any(isinstance(result.action, EvictPod | PatchStatus) for result in entry.results[first:])


def test_remaining_time_comes_from_the_lambda_context() -> None:
    context: Any = SimpleNamespace(get_remaining_time_in_millis=lambda: 1500)
    time_left = with_time_left(build_benchmark_world(1), context).time_left
    assert time_left is not None
    assert time_left() == timedelta(seconds=1.5)
