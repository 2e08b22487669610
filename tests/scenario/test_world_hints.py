"""What was planned together stays together, whatever kube-scheduler likes better."""

from collections import Counter
from collections.abc import Iterable

import pytest

from shared.model.action import CreateNodeClaim, EvictPod, NominatePod, RegisterNode
from shared.ports import World as Ports
from sim.faults import Call
from tests.scenario.kill_sites import Killer
from tests.scenario.promised import MOST, promise
from tests.scenario.worlds import World, deployment, node_class, pool


def planned(world: World) -> list[str]:
    return [pod for action in world.done(CreateNodeClaim) for pod in action.pods]


class Silent(World):
    """A world whose deployment gives no hints."""

    def _world(self, function: str, environment: dict[str, str]) -> Ports:
        return super()._world(function, environment | {"JOINER_HINTS": "Withheld"})


def burst(kind: type[World] = World) -> World:
    """Pods of two sizes that together fill nodes to the last: any other mix leaves some of them without a place."""
    world = kind(node_class(), pool())
    world.apply([deployment(40, "small", cpu="700m"), deployment(20, "large", cpu="1500m")])
    return world


def hints(world: World) -> list[NominatePod]:
    """Answer what pods were to be told, whether their node was open already or not."""
    return [*world.done(NominatePod), *(hint for action in world.done(RegisterNode) for hint in action.hints)]


def test_a_burst_is_planned_once_and_each_pod_is_told_once() -> None:
    told = Counter[str]()

    def tap(call: Call) -> None:
        told[call.detail] += call.when == "before" and call.method == "patch" and "/pods/" in call.detail

    world = burst()
    with world.tapped(tap):
        world.settled(60)
    assert len(planned(world)) == len(set(planned(world)))
    assert len(world.launched) == 16
    assert 0 < sum(told.values()) <= 60 * 1.1
    assert not any("nominatedNodeName" in one["status"] for one in world.live.pods("default"))


def test_one_deployment_costs_no_hint() -> None:
    world = World(node_class(), pool())
    world.apply([deployment(30)])
    world.settled(30)
    assert not hints(world)
    assert len(world.launched) == 8


def test_pods_of_a_node_that_dies_once_they_were_told_of_it_are_planned_for_again() -> None:
    world = burst()
    world.until(lambda: hints(world))
    [name, *_] = [action.node for action in hints(world)]
    instance = next(one for one in world.living() if one.private_dns_name == name)
    world.forfeit.add(instance.instance_id)
    world.cloud.terminate((instance.instance_id,))
    world.settled(60, within=600)
    assert name not in [pod["spec"]["nodeName"] for pod in world.running()]


@pytest.mark.parametrize("number", [1, 20, 50])
def test_whoever_dies_while_telling_goes_on_later(number: int) -> None:
    world = burst()
    killer = Killer("lifecycle kube.patch /api/v1/namespaces/*/pods/* after", number)
    with world.tapped(killer):
        world.settled(60)
    assert killer.struck
    assert len(planned(world)) == len(set(planned(world)))


def test_where_hints_are_withheld_nobody_is_told() -> None:
    world = burst(Silent)
    world.settled(60, within=600)
    assert not hints(world)


@pytest.mark.parametrize(
    "sizes",
    [(("700m", 120), ("1500m", 80)), (("300m", 150), ("900m", 60), ("3", 20))],
    ids=["two-sizes", "three-sizes"],
)
def test_what_is_paid_in_the_end_is_what_was_planned_first(
    sizes: tuple[tuple[str, int], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes that exist when all pods run, at their offerings' prices, against the first plan for each pod."""
    promised = promise(monkeypatch)
    world = World(node_class(), pool())
    world.apply([deployment(count, f"size-{number}", cpu=cpu) for number, (cpu, count) in enumerate(sizes)])
    total = sum(count for _, count in sizes)
    world.settled(total, within=600)
    again = [pod for pod, times in Counter(planned(world)).items() if times > 1]
    assert len(again) <= total / 100
    assert 0 < world.cloud.hourly_cost() <= MOST * promised.usd_per_hour


def test_pods_that_had_to_leave_early_come_to_the_nodes_that_were_planned_for_them() -> None:
    """Nothing can be launched until the pods are evicted: those that come instead have other names."""
    world = World(node_class(), pool(capacity=("spot",), after="Never"))
    world.apply([deployment(16, "small", cpu="700m"), deployment(12, "large", cpu="1500m")])
    world.settled(28)
    world.seconds(90)
    before = {pod["metadata"]["name"] for pod in world.live.pods("default")}
    world.entries.clear()
    with world.down("ec2.create_fleet"):
        for one in world.living():
            world.cloud.interrupt_spot(one.instance_id)
        world.until(lambda: len(world.done(EvictPod)) > 1, 120)
        world.seconds(20)
    world.settled(28, within=600)
    fresh = {pod["metadata"]["name"] for pod in world.live.pods("default")} - before
    assert fresh
    assert not fresh & {name.partition("/")[2] for name in planned(world)}
    names = {claim["metadata"]["name"]: claim["status"]["nodeName"] for claim in world.claims()}
    wanted = {names[action.claim.name]: _sizes(action.pods) for action in world.done(CreateNodeClaim)}
    homes: dict[str, list[str]] = {}
    for pod in world.running():
        homes.setdefault(pod["spec"]["nodeName"], []).append(f"default/{pod['metadata']['name']}")
    assert {node: _sizes(there) for node, there in homes.items()} == wanted


def _sizes(pods: Iterable[str]) -> Counter[str]:
    return Counter(name.partition("/")[2].partition("-")[0] for name in pods)
