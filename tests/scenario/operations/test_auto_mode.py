"""Running next to EKS Auto Mode: its NodePools, NodeClaims and nodes are neither touched nor counted.

Auto Mode uses the same kinds of karpenter.sh, with node classes of eks.amazonaws.com.
"""

from typing import Final

import msgspec
import pytest

from cli.audit.assets import AuditEvidence
from cli.audit.rules import list_assets
from cli.status.node_rows import build_node_rows
from cli.status.summary import build_fleet_status
from cli.uninstall.steps import build_removal_plan
from shared.state.cluster_state import ClusterState
from shared.take.snapshot import PLANNING_REQUEST, take_snapshot
from sim.fault_tap import PortCall
from tests.scenario.worlds import CLAIMS, POOLS, Json, World, make_deployment, make_node_class, make_node_pool

AUTO_MODE: Final = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"}
OWN_CAPACITY_TYPE: Final = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["capacity-block"]}
"""A requirement that Joiner rejects in its own NodePools."""
FINALIZERS: Final = ["karpenter.sh/termination"]
FOREIGN_OBJECTS: Final = ((POOLS, "general-purpose"), (CLAIMS, "auto-1"), ("nodes", "auto-1"))
WRITES: Final = ("create", "patch", "delete")


def make_foreign_pool(name: str = "general-purpose") -> Json:
    """Return a NodePool of Auto Mode."""
    pool = make_node_pool(name)
    pool["spec"]["template"]["spec"] |= {
        "nodeClassRef": AUTO_MODE,
        "requirements": [
            {"key": "eks.amazonaws.com/instance-category", "operator": "In", "values": ["c", "m"]},
            OWN_CAPACITY_TYPE,
        ],
        "expireAfter": "336h",
    }
    return pool


def add_foreign_node(world: World, name: str = "auto-1") -> None:
    """Add a node of Auto Mode with its NodeClaim, whose instance Joiner does not list."""
    labels = {"karpenter.sh/nodepool": "general-purpose", "eks.amazonaws.com/nodeclass": "default"}
    provider_id = f"aws:///us-east-1a/i-{name}"
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": labels, "finalizers": FINALIZERS},
        "spec": {"nodeClassRef": AUTO_MODE, "requirements": []},
    }
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels | {"kubernetes.io/hostname": name}, "finalizers": FINALIZERS},
        "spec": {"providerID": provider_id},
        "status": {"allocatable": {"cpu": "0", "memory": "0", "pods": "0"}, "conditions": [ready]},
    }
    world.apply([claim, node])
    status = {"providerID": provider_id, "nodeName": name, "conditions": []}
    world.cluster.api.patch(CLAIMS, name, {"status": status}, subresource="status")


def read_world(world: World) -> ClusterState:
    outside = world._build_world("disrupt", dict(world.wiring.get_function("disrupt").environment))  # noqa: SLF001
    return ClusterState(take_snapshot(msgspec.structs.replace(outside, memory=None), PLANNING_REQUEST))


@pytest.fixture
def world() -> World:
    """Return a cluster in which both run, while Joiner launches nodes, consolidates and removes them."""
    world = World(make_node_class(), make_node_pool(after="10s"), make_foreign_pool())
    add_foreign_node(world)
    return world


def list_foreign_writes(calls: list[PortCall]) -> list[tuple[str, str]]:
    names = ("general-purpose", "auto-1", "auto-2")
    return [
        (call.method, call.detail)
        for call in calls
        if call.port == "kube" and call.method in WRITES and any(name in call.detail for name in names)
    ]


def test_auto_mode_objects_are_never_changed(world: World) -> None:
    world.advance_seconds(10)
    calls: list[PortCall] = []
    world.tap = calls.append
    before = {resource: world.cluster.api.get(resource, name) for resource, name in FOREIGN_OBJECTS}
    world.apply([make_deployment(3)])
    world.wait_until_settled(3)
    world.cluster.scale("Deployment", "default", "web", 0)
    world.wait_until(lambda: not world.list_claims()[1:], 900)
    world.cluster.api.delete("nodes", "auto-1")  # Auto Mode drains its own node and removes its own finalizer
    world.cluster.api.delete(CLAIMS, "auto-1")
    world.advance_seconds(180)
    assert list_foreign_writes(calls) == []
    for resource, name in FOREIGN_OBJECTS:
        now = world.cluster.api.get(resource, name)
        assert now["spec"] == before[resource]["spec"]
        assert now["metadata"].get("finalizers") == before[resource]["metadata"].get("finalizers")
        assert now.get("status", {}).get("conditions") == before[resource].get("status", {}).get("conditions")
    assert [problem for problem in world.list_problems() if not problem.startswith("Catalogue")] == []
    assert world.list_errors() == []


def test_auto_mode_nodes_are_not_counted(world: World) -> None:
    world.apply([make_deployment(1)])
    world.wait_until_settled(1)
    state = read_world(world)
    assert [pool.name for pool in state.snapshot.node_pools] == ["default"]
    assert {claim.meta.get_label("karpenter.sh/nodepool") for claim in state.snapshot.node_claims} == {"default"}
    assert state.snapshot.problems == ()
    assert "auto-1" in {node.name for node in state.snapshot.nodes}, "its pods count in the scheduling simulation"
    assert "auto-1" not in {row.name for row in build_node_rows(state)}
    assert [pool.name for pool in build_fleet_status(state).pools] == ["default"]
    removal_plan = build_removal_plan(state.snapshot, ("general-purpose",))
    assert ([meta.name for meta in removal_plan.pools], len(removal_plan.rows)) == (["default"], 1)
    evidence = AuditEvidence(
        now=state.taken_at,
        cluster_name=world.cluster_name,
        cluster_state=state,
        instances=world.list_active_instances(),
        templates=(),
        attached=(),
        named_resources=(),
        commands=(),
        is_installed=True,
    )
    assert [asset.name for asset in list_assets(evidence) if "auto" in asset.name or asset.is_leaked] == []
