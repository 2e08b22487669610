"""The outcome check in the whole world: moved pods that fail pause their NodePool, until they recover."""

from typing import Any, Final

from shared.ports import world as ports_world
from tests.scenario.disruption.test_disruption import CHEAPER, SIZES, list_command_states
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool

PAUSED: Final = "DisruptionPaused"


class Checked(World):
    """A world whose functions check the outcome of disruption for ten minutes."""

    def _build_world(self, function: str, environment: dict[str, str]) -> ports_world.World:
        return super()._build_world(function, {**environment, "JOINER_OUTCOME_CHECK_MINUTES": "10"})


def build_moved_world(kind: type[World] = Checked) -> World:
    """Build a world in which a disruption has just moved four pods to a smaller node."""
    pool = make_node_pool(types=SIZES, disruption=CHEAPER)
    world = kind(make_node_class(), pool, make_deployment(4, cpu="400m"), make_deployment(6, "padding"))
    world.wait_until_settled(10)
    world.advance_seconds(150)
    world.scale(0, "padding")
    world.wait_until(lambda: [state.phase for state in list_command_states(world)] == ["DONE"], 900)
    world.wait_until_settled(4)
    return world


def set_restarts(world: World, count: int) -> None:
    status: dict[str, Any] = {"containerStatuses": [{"name": "main", "restartCount": count}]}
    for pod in world.list_running_pods():
        world.cluster.api.patch("pods", pod["metadata"]["name"], {"status": status}, "default", "status")


def list_pauses(world: World) -> list[str]:
    """Return the pauses that the last run of `disrupt` reported."""
    entries = [entry for entry in world.entries if entry.function == "disrupt"]
    return [note.reason for note in entries[-1].notes if note.verdict == PAUSED]


def test_failing_moved_pods_pause_their_node_pool_until_they_have_recovered() -> None:
    world = build_moved_world()
    world.advance_seconds(70)
    assert not list_pauses(world)
    set_restarts(world, 2)
    world.wait_until(lambda: list_pauses(world), 90)
    assert len(list_pauses(world)) == 3
    assert "4 of 4 pods moved by disruption are restarting or not Ready" in list_pauses(world)[0]
    assert world.list_events("default", PAUSED)
    world.clear_container_caches()
    set_restarts(world, 0)
    world.advance_seconds(180)
    assert any("were failing until" in pause for pause in list_pauses(world))
    world.wait_until(lambda: not list_pauses(world), 1000)


def test_paused_node_pool_is_resumed_by_its_annotation() -> None:
    world = build_moved_world()
    set_restarts(world, 2)
    world.wait_until(lambda: list_pauses(world), 90)
    resumed = {"joiner.dev/disruption-resumed": world.clock.get_time().strftime("%Y-%m-%dT%H:%M:%SZ")}
    world.cluster.api.patch("nodepools.karpenter.sh", "default", {"metadata": {"annotations": resumed}})
    world.wait_until(lambda: not list_pauses(world), 90)


def test_outcome_is_not_recorded_without_the_setting() -> None:
    world = build_moved_world(World)
    set_restarts(world, 2)
    world.advance_seconds(130)
    assert not list_pauses(world)
    assert [state.moved for state in list_command_states(world)] == [None]
