"""Provisioning without pending pods sends few requests to the API server, and reports that."""

import msgspec

from shared.cycles.provision import run_provision
from shared.ports.world import World
from tests.support.snapshot_world import Lists, make_object, make_pod, make_world

DELETED_NODE_METADATA = {"name": "n", "deletionTimestamp": "2026-11-21T08:00:00Z"}
IDLE_KINDS = ["Pod", "Node", "NodeClaim", "EC2NodeClass"]


def build_world_with_log(kube: Lists) -> tuple[World, list[str]]:
    lines: list[str] = []
    return msgspec.structs.replace(make_world(kube), emit=lines.append), lines


def test_idle_provisioning_lists_only_unbound_pods_nodes_and_karpenter_objects() -> None:
    kube = Lists({"Pod": [make_pod("a")], "Node": [make_object("n")]})
    awake, lines = build_world_with_log(kube)
    report = run_provision(awake, "schedule")
    assert kube.requested_kinds == IDLE_KINDS
    assert kube.selectors["Pod"].startswith("spec.nodeName=,")
    assert report.outcomes == ()
    assert report.counts == {"PendingPods": 0.0, "PlannedNodes": 0.0, "UnschedulablePods": 0.0}
    assert any('"PendingPods"' in line for line in lines)


def test_provisioning_with_a_deleting_node_lists_all_kinds() -> None:
    kube = Lists({"Node": [{"metadata": DELETED_NODE_METADATA}]})
    run_provision(build_world_with_log(kube)[0], "schedule")
    assert len(kube.requested_kinds) > len(IDLE_KINDS) + 12
    assert kube.selectors["Pod"] == "status.phase!=Succeeded,status.phase!=Failed"
