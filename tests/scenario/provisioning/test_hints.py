"""Pods that were planned together stay together, even where kube-scheduler prefers other nodes."""

from collections import Counter
from collections.abc import Iterable

import pytest

from shared.model.decisions.action import CreateNodeClaim, EvictPod, NominatePod, RegisterNode
from shared.ports.world import World as Ports
from sim.fault_tap import PortCall
from tests.scenario.kill_sites import Killer
from tests.scenario.promised import MAX_COST_RATIO, record_promise
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool


def list_planned_pods(world: World) -> list[str]:
    return [pod for action in world.list_done_actions(CreateNodeClaim) for pod in action.pods]


class Silent(World):
    """A world whose deployment disables pod nominations."""

    def _build_world(self, function: str, environment: dict[str, str]) -> Ports:
        return super()._build_world(function, environment | {"JOINER_POD_NOMINATIONS": "Disabled"})


def build_burst_world(kind: type[World] = World) -> World:
    """Pods of two sizes that together fill nodes to the last: any other mix leaves some of them without a place."""
    world = kind(make_node_class(), make_node_pool())
    world.apply([make_deployment(40, "small", cpu="700m"), make_deployment(20, "large", cpu="1500m")])
    return world


def list_hints(world: World) -> list[NominatePod]:
    """Return the hints for pods, including those for nodes that were not yet open."""
    return [
        *world.list_done_actions(NominatePod),
        *(hint for action in world.list_done_actions(RegisterNode) for hint in action.nominations),
    ]


def test_burst_is_planned_once_and_each_pod_gets_its_hint_once() -> None:
    patch_counts = Counter[str]()

    def count_pod_patches(call: PortCall) -> None:
        patch_counts[call.detail] += call.phase == "before" and call.method == "patch" and "/pods/" in call.detail

    world = build_burst_world()
    with world.use_tap(count_pod_patches):
        world.wait_until_settled(60)
    assert len(list_planned_pods(world)) == len(set(list_planned_pods(world)))
    assert len(world.launched) == 16
    assert 0 < sum(patch_counts.values()) <= 60 * 1.1
    assert not any("nominatedNodeName" in pod["status"] for pod in world.cluster.list_pods("default"))


def test_single_deployment_needs_no_hints() -> None:
    world = World(make_node_class(), make_node_pool())
    world.apply([make_deployment(30)])
    world.wait_until_settled(30)
    assert not list_hints(world)
    assert len(world.launched) == 8


def test_pods_hinted_to_a_terminated_node_are_planned_again() -> None:
    world = build_burst_world()
    world.wait_until(lambda: list_hints(world))
    [name, *_] = [action.node for action in list_hints(world)]
    instance = next(
        active_instance for active_instance in world.list_active_instances() if active_instance.private_dns_name == name
    )
    world.forfeit.add(instance.instance_id)
    world.cloud.terminate_instances((instance.instance_id,))
    world.wait_until_settled(60, timeout=600)
    assert name not in [pod["spec"]["nodeName"] for pod in world.list_running_pods()]


@pytest.mark.parametrize("number", [1, 20, 50])
def test_hinting_resumes_after_the_lifecycle_function_is_killed(number: int) -> None:
    world = build_burst_world()
    killer = Killer("lifecycle kube.patch /api/v1/namespaces/*/pods/* after", number)
    with world.use_tap(killer):
        world.wait_until_settled(60)
    assert killer.struck
    assert len(list_planned_pods(world)) == len(set(list_planned_pods(world)))


def test_hints_are_not_written_when_the_setting_is_off() -> None:
    world = build_burst_world(Silent)
    world.wait_until_settled(60, timeout=600)
    assert not list_hints(world)


@pytest.mark.parametrize(
    "sizes",
    [(("700m", 120), ("1500m", 80)), (("300m", 150), ("900m", 60), ("3", 20))],
    ids=["two-sizes", "three-sizes"],
)
def test_final_cost_stays_close_to_the_first_plan(
    sizes: tuple[tuple[str, int], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes that exist when all pods run, at their offerings' prices, against the first plan for each pod."""
    promised = record_promise(monkeypatch)
    world = World(make_node_class(), make_node_pool())
    world.apply([make_deployment(count, f"size-{number}", cpu=cpu) for number, (cpu, count) in enumerate(sizes)])
    total = sum(count for _, count in sizes)
    world.wait_until_settled(total, timeout=600)
    repeated_pods = [pod for pod, times in Counter(list_planned_pods(world)).items() if times > 1]
    assert len(repeated_pods) <= total / 100
    assert 0 < world.cloud.compute_hourly_cost() <= MAX_COST_RATIO * promised.usd_per_hour


def test_replacement_pods_of_early_evictions_run_on_the_nodes_planned_for_the_evicted_pods() -> None:
    """Nothing can be launched until the pods are evicted: those that come instead have other names."""
    world = World(make_node_class(), make_node_pool(capacity=("spot",), after="Never"))
    world.apply([make_deployment(16, "small", cpu="700m"), make_deployment(12, "large", cpu="1500m")])
    world.wait_until_settled(28)
    world.advance_seconds(90)
    before = {pod["metadata"]["name"] for pod in world.cluster.list_pods("default")}
    world.entries.clear()
    with world.fail_ports("ec2.create_fleet"):
        for instance in world.list_active_instances():
            world.cloud.instances.interrupt(instance.instance_id)
        world.wait_until(lambda: len(world.list_done_actions(EvictPod)) > 1, 120)
        world.advance_seconds(20)
    world.wait_until_settled(28, timeout=600)
    fresh = {pod["metadata"]["name"] for pod in world.cluster.list_pods("default")} - before
    assert fresh
    assert not fresh & {name.partition("/")[2] for name in list_planned_pods(world)}
    names = {claim["metadata"]["name"]: claim["status"]["nodeName"] for claim in world.list_claims()}
    planned_sizes = {
        names[action.claim.name]: _count_sizes(action.pods) for action in world.list_done_actions(CreateNodeClaim)
    }
    homes: dict[str, list[str]] = {}
    for pod in world.list_running_pods():
        homes.setdefault(pod["spec"]["nodeName"], []).append(f"default/{pod['metadata']['name']}")
    assert {node: _count_sizes(there) for node, there in homes.items()} == planned_sizes


def _count_sizes(pods: Iterable[str]) -> Counter[str]:
    return Counter(name.partition("/")[2].partition("-")[0] for name in pods)
