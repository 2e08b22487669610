"""Lifecycle with parallel calls dies in the middle of many terminations: the next runs finish them."""

from datetime import timedelta

import pytest

from shared.ports.world import World as Ports
from sim.fault_tap import Killed, PortCall
from tests.scenario.worlds import CLAIMS, World, make_deployment, make_node_class, make_node_pool
from tests.support.parallel_world import SlowPort, make_parallel

NODE_COUNT = 8
KILLED_CALLS = (1, 8, 9, 20, 31, 47)


class ParallelWorld(World):
    """A world in which lifecycle has threads."""

    kubes: list[SlowPort]

    def _build_world(self, function: str, environment: dict[str, str]) -> Ports:
        ports = super()._build_world(function, environment)
        if function != "lifecycle":
            return ports
        parallel_ports, kube = make_parallel(ports, 4)
        self.kubes = [*getattr(self, "kubes", ()), kube]
        return parallel_ports


class WriteKiller:
    """Kills lifecycle at its write to Kubernetes with this number, counted from one, once."""

    def __init__(self, number: int) -> None:
        """Wait for the write."""
        self._number, self.count = number, 0

    def __call__(self, call: PortCall) -> None:
        if call.phase == "after" and call.port == "kube" and call.method in ("create", "patch", "delete"):
            self.count += call.world_name.startswith("lifecycle")
            if self.count == self._number:
                self.count += 1
                raise Killed(call.method)


@pytest.mark.parametrize("number", KILLED_CALLS)
def test_lifecycle_killed_between_parallel_calls_terminates_all_nodes(number: int) -> None:
    world = ParallelWorld(
        make_node_class(),
        make_node_pool(after="Never", types=("m5.large",)),
        make_deployment(NODE_COUNT, cpu="1500m", terminationGracePeriodSeconds=5),
    )
    world.wait_until(lambda: len(world.list_running_pods()) == NODE_COUNT)
    old_claims = [claim["metadata"]["name"] for claim in world.list_claims()]
    assert len(old_claims) == NODE_COUNT
    killer = WriteKiller(number)
    world.tap = killer
    for name in old_claims:
        world.cluster.api.delete(CLAIMS, name)
    world.wait_until(lambda: not {claim["metadata"]["name"] for claim in world.list_claims()} & set(old_claims), 900)
    world.advance_time(timedelta(minutes=2))
    assert killer.count > number
    assert max(kube.max_running_count for kube in world.kubes) == 4
    assert len(world.list_running_pods()) == NODE_COUNT
    assert len(world.list_nodes()) == NODE_COUNT
    assert len(world.list_active_instances()) == NODE_COUNT
