"""Schedules in a simulated account: a cluster sleeps without nodes and wakes again. The world starts at 8:00 UTC."""

from collections import Counter
from typing import Any

import pytest

from shared.model.core.labels import SCHEDULE, SCHEDULED_SCALE
from shared.model.decisions.action import ScaleWorkload
from sim.fault_tap import Killed, PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import Json, World, make_deployment, make_node_class, make_node_pool

SLEEP = "sleep: 10 8 * * * 20m paused=Launches scale=Deployment/default/web"
MINUTE = 60


def make_scheduled_pool(schedule: str, **fields: Any) -> Json:
    pool = make_node_pool(**fields)
    pool["metadata"]["annotations"] = {SCHEDULE: schedule}
    return pool


def build_sleeping_world() -> World:
    template = synthesize_template(settings=ACTIVE_SETTINGS | {"scheduled-scaling": "on"})
    world = World(make_node_class(), make_scheduled_pool(SLEEP), make_deployment(6), template=template)
    world.wait_until_settled(6)
    return world


def get_web(world: World) -> Json:
    return world.cluster.api.get("deployments.apps", "web", "default")


def get_memory(world: World) -> str:
    annotations: dict[str, str] = get_web(world)["metadata"].get("annotations", {})
    return annotations.get(SCHEDULED_SCALE, "")


def advance_to_minute(world: World, minute: int) -> None:
    world.advance_seconds(minute * MINUTE - (world.clock.get_time() - world.clock.get_time().replace(minute=0)).seconds)


def test_cluster_sleeps_without_nodes_and_wakes_with_the_same_replicas() -> None:
    world = build_sleeping_world()
    advance_to_minute(world, 20)
    assert not world.list_active_instances()
    assert get_memory(world).startswith("from=6 to=0")
    advance_to_minute(world, 30)
    world.wait_until_settled(6)
    assert get_memory(world) == ""
    assert len(world.list_done_actions(ScaleWorkload)) == 2
    assert not world.list_errors()


def test_user_who_scales_a_sleeping_workload_keeps_the_replicas() -> None:
    world = build_sleeping_world()
    advance_to_minute(world, 14)
    world.scale(2)
    advance_to_minute(world, 36)
    assert get_web(world)["spec"]["replicas"] == 2
    assert get_memory(world) == ""


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("phase", ["before", "after"])
def test_workload_sleeps_and_wakes_after_a_crash_at_any_write(count: int, phase: str) -> None:
    world, calls, is_killed = build_sleeping_world(), 0, False

    def kill(call: PortCall) -> None:
        nonlocal calls, is_killed
        if not is_killed and call.phase == phase and call.method == "patch" and "/deployments/web" in call.detail:
            calls += 1
            if calls == count:
                is_killed = True
                raise Killed

    with world.use_tap(kill):
        advance_to_minute(world, 24)
        assert get_web(world)["spec"]["replicas"] == 0
        advance_to_minute(world, 34)
    assert is_killed
    assert get_web(world)["spec"]["replicas"] == 6
    assert get_memory(world) == ""
    world.wait_until_settled(6)


def test_static_nodepool_follows_its_schedule() -> None:
    template = synthesize_template(settings=ACTIVE_SETTINGS | {"feature-gates": "StaticCapacity=true"})
    pool = make_scheduled_pool("day: 5 8 * * * 15m replicas=2", replicas=0)
    world = World(make_node_class(), pool, template=template)
    world.advance_seconds(MINUTE)
    assert not world.list_active_instances()
    advance_to_minute(world, 10)
    assert len(world.list_active_instances()) == 2
    advance_to_minute(world, 30)
    assert not world.list_active_instances()
    assert not world.list_errors()


def count_calls(schedule: str) -> Counter[tuple[str, str]]:
    pool = make_scheduled_pool(schedule) if schedule else make_node_pool()
    world, calls = World(make_node_class(), pool, make_deployment(2)), Counter[tuple[str, str]]()

    def count(call: PortCall) -> None:
        if call.phase == "before":
            calls[call.world_name, call.method] += 1
        assert "/deployments" not in call.detail
        assert "/statefulsets" not in call.detail

    with world.use_tap(count):
        world.wait_until_settled(2)
        world.advance_seconds(150)
    return calls


def test_schedule_costs_no_call_and_scales_nothing_without_the_setting() -> None:
    calls = count_calls("")
    assert calls
    assert count_calls("always: @hourly 1h budget=10% scale=Deployment/default/web") == calls
