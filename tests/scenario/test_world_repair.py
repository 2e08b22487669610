"""Node repair in the whole world: what is broken goes and its pods run elsewhere; what breaks together stays."""

from datetime import datetime

import pytest

from shared.model.action import DeleteObject
from shared.model.labels import ZONE
from shared.model.units import instant_text, parse_instant
from shared.ports import World as Ports
from sim.faults import Call, Killed
from tests.scenario.worlds import Json, World, budget, deployment, node_class, pool

TICK, SLACK = 60, 30
"""Seconds: until somebody looks, and what a forced drain and a few calls take."""
HARDWARE = "AcceleratedHardwareReady"


class Repairing(World):
    """A world whose functions repair nodes."""

    def _world(self, function: str, environment: dict[str, str]) -> Ports:
        return super()._world(function, environment | {"FEATURE_GATES": "NodeRepair=true"})


def at_work(replicas: int, *more: Json, kind: type[World] = Repairing, **template: object) -> World:
    """Answer a world of nodes with four pods each."""
    world = kind(node_class(), pool(), deployment(replicas, **template), *more)  # type: ignore[arg-type]
    world.settled(replicas)
    world.seconds(60)
    assert len(world.nodes()) == replicas // 4
    return world


def fall_ill(world: World, name: str, type_: str = HARDWARE, status: str = "False") -> datetime:
    """Let the monitoring agent of a node say that it is broken; answer when."""
    known = world.live.api.get("nodes", name)["status"]["conditions"]
    since = world.clock.now()
    said = {"type": type_, "status": status, "reason": "Test", "lastTransitionTime": instant_text(since)}
    others = [one for one in known if one["type"] != type_]
    world.live.api.patch("nodes", name, {"status": {"conditions": [*others, said]}}, "", "status")
    return since


def minutes_since(world: World, then: datetime) -> float:
    return (world.clock.now() - then).total_seconds() / 60


def names(world: World) -> list[str]:
    return [node["metadata"]["name"] for node in world.nodes()]


def zone_of(node: Json) -> str:
    return str(node["metadata"]["labels"][ZONE])


def repaired(world: World) -> list[str]:
    return [one.name for one in world.done(DeleteObject) if one.why == "unhealthy"]


def test_a_broken_node_is_replaced_whatever_is_on_it_and_whatever_budgets_say() -> None:
    stays = {"karpenter.sh/do-not-disrupt": "true"}
    world = at_work(8, budget(maxUnavailable=0), annotations=stays)
    world.live.api.patch("nodepools.karpenter.sh", "default", {"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}})
    sick = names(world)[0]
    since = fall_ill(world, sick)
    world.until(lambda: sick not in names(world), 900)
    assert 10 <= minutes_since(world, since) <= 10 + (TICK + 2 * SLACK) / 60
    world.settled(8)
    assert len(repaired(world)) == 1
    assert len(world.living()) == 2
    assert len(world.launched) == 3
    [words] = world.events(sick, "DisruptionTerminating")
    assert f"condition {HARDWARE} has been False since {instant_text(since)}, longer than 10 minutes" in words
    notes = [note for entry in world.entries for note in entry.notes if note.kind == "Node" and note.name == sick]
    assert ("disrupted", "Unhealthy") in {(note.verdict, note.why.partition(":")[0]) for note in notes}


def test_a_node_that_falls_silent_is_given_up_after_half_an_hour_and_not_before() -> None:
    patient = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    world = at_work(4, tolerations=[patient])
    [silent] = names(world)
    world.live.stop_node(silent, gone=False)
    world.until(lambda: bool(repaired(world)), 2400)
    ready = next(one for one in world.live.api.get("nodes", silent)["status"]["conditions"] if one["type"] == "Ready")
    assert ready["status"] == "Unknown"
    assert 30 <= minutes_since(world, parse_instant(ready["lastTransitionTime"])) <= 30 + TICK / 60
    world.until(lambda: silent not in names(world))
    world.settled(4)
    assert len(world.living()) == 1


def test_where_a_zone_fails_none_is_repaired_and_what_recovers_was_never_touched() -> None:
    world = at_work(36, topologySpreadConstraints=SPREAD)
    lost = [node["metadata"]["name"] for node in world.nodes() if zone_of(node) == zone_of(world.nodes()[0])]
    assert len(lost) == 3
    for name in lost:
        fall_ill(world, name)
    world.seconds(600 + 2 * TICK)
    assert len(lost) / len(names(world)) > 0.2
    assert repaired(world) == []
    assert len(world.living()) == len(names(world)) == 9
    for name in lost:
        [words] = world.events(name, "NodeRepairBlocked")
        assert "3 of 9 nodes of NodePool default are unhealthy, more than 20 %: none is repaired" in words
        fall_ill(world, name, status="True")
    world.seconds(2 * TICK)
    assert repaired(world) == []


SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
]


def test_without_the_gate_a_broken_node_stays() -> None:
    world = at_work(4, kind=World)
    fall_ill(world, names(world)[0])
    world.seconds(600 + 2 * TICK)
    assert (repaired(world), len(world.launched)) == ([], 1)


def test_a_pause_holds_repair_back_and_its_end_lets_it_go_on() -> None:
    world = at_work(4)
    [sick] = names(world)
    annotation = "joiner.dev/disruption-paused"
    world.live.api.patch("nodepools.karpenter.sh", "default", {"metadata": {"annotations": {annotation: "Unhealthy"}}})
    fall_ill(world, sick)
    world.seconds(600 + 2 * TICK)
    assert repaired(world) == []
    world.live.api.patch("nodepools.karpenter.sh", "default", {"metadata": {"annotations": {annotation: None}}})
    world.until(lambda: sick not in names(world), TICK + 3 * SLACK)
    world.settled(4)


@pytest.mark.parametrize("method", ["patch", "delete"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_who_is_killed_in_the_middle_is_followed_by_one_who_ends_it(method: str, when: str) -> None:
    world = at_work(4)
    [sick] = names(world)
    fall_ill(world, sick)
    killed: list[str] = []

    def tap(call: Call) -> None:
        of_claim = call.port == "kube" and call.who.startswith("disrupt") and "nodeclaims" in call.detail
        if of_claim and (call.method, call.when) == (method, when) and not killed:
            killed.append(call.detail)
            raise Killed

    with world.tapped(tap):
        world.until(lambda: sick not in names(world), 900)
    assert len(killed) == 1
    world.settled(4)
    assert (len(world.living()), len(world.launched)) == (1, 2)
