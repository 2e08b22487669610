"""The measurements of `make bench-kubernetes` in the embedded world, on virtual time."""

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

from shared.model.decisions.action import LaunchInstances
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.lambda_runtime.stack_template.synthesis import synthesize_template
from sim.playground.kubectl import NODES_PATH, PODS_PATH, KubectlClient
from sim.world.embedded_world import EmbeddedWorld
from sim.world.measurements import is_finished, is_joiner_node, is_running
from tests.kubernetes import timings
from tests.kubernetes.arena import Arena
from tests.kubernetes.manifests import Object, make_node_class, make_node_pool
from tests.scenario.worlds import DEFAULT_INSTANCE_TYPES


class EmbeddedArena:
    """The parts of an arena that the measurements need, around an embedded world."""

    def __init__(self, *, consolidates: bool = False) -> None:
        """Wait until the NodePool is ready."""
        self.world = EmbeddedWorld(1, template=synthesize_template(settings=timings.SETTINGS))
        cloud = self.world.cloud
        cloud.types = {name: cloud.types[name] for name in DEFAULT_INSTANCE_TYPES}
        cloud.offerings = tuple(offering for offering in cloud.offerings if offering[0] in cloud.types)
        cloud.instances.speed_factor = timings.NODE_SPEED
        self.desk = KubectlClient(InMemoryKube(self.world.cluster.api))
        self.playground = SimpleNamespace(cloud=self.world.cloud, clock=self.world.clock)
        self.reporter = SimpleNamespace(launch_actions=[])
        self.world.on_journal_entry = self._record_launches
        self.desk.apply_all([make_node_class(), make_node_pool("default", consolidates=consolidates)])
        self.advance(timedelta(seconds=90))

    def _record_launches(self, entry: Any) -> None:
        self.reporter.launch_actions += [
            result.action
            for result in entry.results
            if result.result == "done" and isinstance(result.action, LaunchInstances)
        ]

    def advance(self, duration: timedelta) -> None:
        self.world.run(duration)

    def wait_until(self, holds: Callable[[], bool], description: str, interval: timedelta = timedelta()) -> float:
        del interval
        began = self.world.clock.get_time()
        assert self.world.run_until(holds, timedelta(minutes=15)), description
        return (self.world.clock.get_time() - began).total_seconds()

    def list_pods(self, app: str = "") -> list[Object]:
        pods = [pod for pod in self.desk.list_objects(PODS_PATH) if pod["metadata"]["namespace"] == "default"]
        return [pod for pod in pods if not is_finished(pod) and app in ("", pod["metadata"]["labels"]["app"])]

    def list_nodes(self) -> list[Object]:
        return [node for node in self.desk.list_objects(NODES_PATH) if is_joiner_node(node)]

    def build_running_check(self, count: int, app: str = "") -> Callable[[], bool]:
        def are_all_running() -> bool:
            pods = self.list_pods(app)
            return len(pods) == count and all(is_running(pod) for pod in pods)

        return are_all_running


def start_arena(*, consolidates: bool = False) -> Arena:
    return cast(Arena, EmbeddedArena(consolidates=consolidates))


def test_burst_and_its_cost_and_reactions_are_measured() -> None:
    arena = start_arena()
    assert 0 < timings.measure_burst(arena, 12, spread_count=6) < 120
    assert len({pod["spec"]["nodeName"] for pod in arena.list_pods("spread")}) >= 3
    assert timings.measure_cost_excess(arena) >= 0
    median, late = timings.compute_reaction_percentiles(timings.measure_reactions(arena, 2))
    assert 0 <= median <= 3
    assert median <= late <= 5


def test_scale_down_has_ended_when_nothing_changes_any_more() -> None:
    arena = start_arena(consolidates=True)
    seconds_by_step = timings.measure_scale_down(arena, (3, 1, 0), timedelta(seconds=150))
    assert [*seconds_by_step] == ["3 to 1", "1 to 0"]
    assert all(0 < seconds < 180 for seconds in seconds_by_step.values())
    assert not arena.list_nodes()
