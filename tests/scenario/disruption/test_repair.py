"""Node repair in the whole world: what is broken goes and its pods run elsewhere; what breaks together stays."""

from datetime import datetime

import pytest

from shared.model.core.labels import ZONE
from shared.model.core.units import format_instant, parse_instant
from shared.model.decisions.action import DeleteObject
from shared.ports.world import World as Ports
from sim.fault_tap import Killed, PortCall
from tests.scenario.worlds import (
    Json,
    World,
    make_deployment,
    make_node_class,
    make_node_pool,
    make_pod_disruption_budget,
)

TICK, SLACK = 60, 30
"""In seconds: the schedule, and the time for a forced drain and a few calls."""
HARDWARE = "AcceleratedHardwareReady"


class Repairing(World):
    """A world with node repair enabled."""

    def _build_world(self, function: str, environment: dict[str, str]) -> Ports:
        return super()._build_world(function, environment | {"FEATURE_GATES": "NodeRepair=true"})


def build_settled_world(replicas: int, *objects: Json, kind: type[World] = Repairing, **template: object) -> World:
    """Build a world of nodes with four pods each."""
    world = kind(make_node_class(), make_node_pool(), make_deployment(replicas, **template), *objects)  # type: ignore[arg-type]
    world.wait_until_settled(replicas)
    world.advance_seconds(60)
    assert len(world.list_nodes()) == replicas // 4
    return world


def report_condition(world: World, name: str, type_: str = HARDWARE, status: str = "False") -> datetime:
    """Write the condition that the node monitoring agent reports for a node, by default a failure; return the time."""
    conditions = world.cluster.api.get("nodes", name)["status"]["conditions"]
    since = world.clock.get_time()
    reported_condition = {
        "type": type_,
        "status": status,
        "reason": "Test",
        "lastTransitionTime": format_instant(since),
    }
    other_conditions = [condition for condition in conditions if condition["type"] != type_]
    world.cluster.api.patch(
        "nodes", name, {"status": {"conditions": [*other_conditions, reported_condition]}}, "", "status"
    )
    return since


def compute_minutes_since(world: World, start: datetime) -> float:
    return (world.clock.get_time() - start).total_seconds() / 60


def list_node_names(world: World) -> list[str]:
    return [node["metadata"]["name"] for node in world.list_nodes()]


def get_zone(node: Json) -> str:
    return str(node["metadata"]["labels"][ZONE])


def list_repaired(world: World) -> list[str]:
    return [one.name for one in world.list_done_actions(DeleteObject) if one.message == "unhealthy"]


def test_unhealthy_node_is_repaired_despite_budgets_pdb_and_do_not_disrupt() -> None:
    stays = {"karpenter.sh/do-not-disrupt": "true"}
    world = build_settled_world(8, make_pod_disruption_budget(maxUnavailable=0), annotations=stays)
    world.cluster.api.patch(
        "nodepools.karpenter.sh", "default", {"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}}
    )
    sick = list_node_names(world)[0]
    since = report_condition(world, sick)
    world.wait_until(lambda: sick not in list_node_names(world), 900)
    assert 10 <= compute_minutes_since(world, since) <= 10 + (TICK + 2 * SLACK) / 60
    world.wait_until_settled(8)
    assert len(list_repaired(world)) == 1
    assert len(world.list_active_instances()) == 2
    assert len(world.launched) == 3
    [words] = world.list_events(sick, "DisruptionTerminating")
    assert f"condition {HARDWARE} has been False since {format_instant(since)}, longer than 10m" in words
    notes = [note for entry in world.entries for note in entry.notes if note.kind == "Node" and note.name == sick]
    assert ("disrupted", "Unhealthy") in {(note.verdict, note.reason.partition(":")[0]) for note in notes}


def test_unreachable_node_is_repaired_after_thirty_minutes() -> None:
    patient = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    world = build_settled_world(4, tolerations=[patient])
    [silent] = list_node_names(world)
    world.cluster.stop_node(silent, terminated=False)
    world.wait_until(lambda: bool(list_repaired(world)), 2400)
    ready = next(
        condition
        for condition in world.cluster.api.get("nodes", silent)["status"]["conditions"]
        if condition["type"] == "Ready"
    )
    assert ready["status"] == "Unknown"
    assert 30 <= compute_minutes_since(world, parse_instant(ready["lastTransitionTime"])) <= 30 + TICK / 60
    world.wait_until(lambda: silent not in list_node_names(world))
    world.wait_until_settled(4)
    assert len(world.list_active_instances()) == 1


def test_zone_failure_blocks_node_repair_and_recovered_nodes_are_kept() -> None:
    world = build_settled_world(36, topologySpreadConstraints=SPREAD)
    failed_nodes = [
        node["metadata"]["name"] for node in world.list_nodes() if get_zone(node) == get_zone(world.list_nodes()[0])
    ]
    assert len(failed_nodes) == 3
    for name in failed_nodes:
        report_condition(world, name)
    world.advance_seconds(600 + 2 * TICK)
    assert len(failed_nodes) / len(list_node_names(world)) > 0.2
    assert list_repaired(world) == []
    assert len(world.list_active_instances()) == len(list_node_names(world)) == 9
    for name in failed_nodes:
        [words] = world.list_events(name, "NodeRepairBlocked")
        assert "3 of 9 nodes of NodePool default are unhealthy, more than 20%: no node is repaired" in words
        report_condition(world, name, status="True")
    world.advance_seconds(2 * TICK)
    assert list_repaired(world) == []


SPREAD = [
    {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
]


def test_unhealthy_node_is_kept_when_the_node_repair_feature_gate_is_off() -> None:
    world = build_settled_world(4, kind=World)
    report_condition(world, list_node_names(world)[0])
    world.advance_seconds(600 + 2 * TICK)
    assert (list_repaired(world), len(world.launched)) == ([], 1)


def test_disruption_pause_postpones_node_repair_until_it_is_removed() -> None:
    world = build_settled_world(4)
    [sick] = list_node_names(world)
    annotation = "joiner.dev/disruption-paused"
    world.cluster.api.patch(
        "nodepools.karpenter.sh", "default", {"metadata": {"annotations": {annotation: "Unhealthy"}}}
    )
    report_condition(world, sick)
    world.advance_seconds(600 + 2 * TICK)
    assert list_repaired(world) == []
    world.cluster.api.patch("nodepools.karpenter.sh", "default", {"metadata": {"annotations": {annotation: None}}})
    world.wait_until(lambda: sick not in list_node_names(world), TICK + 3 * SLACK)
    world.wait_until_settled(4)


@pytest.mark.parametrize("method", ["patch", "delete"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_node_repair_completes_after_the_disrupt_function_is_killed_at_a_write(method: str, when: str) -> None:
    world = build_settled_world(4)
    [sick] = list_node_names(world)
    report_condition(world, sick)
    killed: list[str] = []

    def kill_once(call: PortCall) -> None:
        of_claim = call.port == "kube" and call.world_name.startswith("disrupt") and "nodeclaims" in call.detail
        if of_claim and (call.method, call.phase) == (method, when) and not killed:
            killed.append(call.detail)
            raise Killed

    with world.use_tap(kill_once):
        world.wait_until(lambda: sick not in list_node_names(world), 900)
    assert len(killed) == 1
    world.wait_until_settled(4)
    assert (len(world.list_active_instances()), len(world.launched)) == (1, 2)
