"""The resources of a DaemonSet are those of its newest pod."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from shared.model.core.labels import ZONE
from shared.model.core.metadata import ObjectMeta, OwnerReference
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.model.kubernetes.workloads import DaemonSet
from shared.state.daemon_set_pods import with_daemon_representatives
from tests.support.catalogues import (
    NOW,
    locate_pods,
    make_cluster_snapshot,
    make_daemon_set,
    make_node,
    make_pod,
    make_requests,
    make_requirements,
)
from tests.support.snapshot_decisions import solve

AGENT = replace(make_daemon_set("agent"), meta=ObjectMeta(name="agent", namespace="kube-system", uid="uid-agent"))
OWNER = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="agent", uid="uid-agent", controller=True)


def make_daemon_pod(name: str, cpu: str, age: int = 0, **fields: Any) -> Pod:
    return make_pod(name, cpu, namespace="kube-system", owners=(OWNER,), on="here", age=age, **fields)


def resolve_daemon_spec(*pods: Pod, daemon_set: DaemonSet = AGENT) -> PodSpec:
    return with_daemon_representatives(make_cluster_snapshot(*pods, daemon_sets=(daemon_set,))).daemon_sets[0].spec


def test_newest_running_pod_defines_the_daemonset_resources() -> None:
    over = replace(make_daemon_pod("agent-3", "9"), phase="Failed")
    going = make_daemon_pod("agent-4", "8")
    going = replace(going, meta=replace(going.meta, deleted_at=NOW + timedelta(seconds=30)))
    assert (
        resolve_daemon_spec(
            make_daemon_pod("agent-1", "1", age=60), make_daemon_pod("agent-2", "2", age=5), over, going
        ).requests["cpu"]
        == 2000
    )


def test_template_defines_the_daemonset_resources_without_a_running_pod() -> None:
    other_owner = replace(OWNER, uid="uid-other")
    stranger = make_pod("agent-9", "7", namespace="kube-system", owners=(other_owner,), on="here")
    elsewhere = make_pod("agent-1", "7", namespace="shop", owners=(OWNER,), on="here")
    assert resolve_daemon_spec(stranger) == AGENT.spec
    assert resolve_daemon_spec(elsewhere) == AGENT.spec
    nameless = replace(AGENT, meta=ObjectMeta(name="agent", namespace="kube-system"))
    assert resolve_daemon_spec(make_daemon_pod("agent-1", "7"), daemon_set=nameless) == AGENT.spec


def test_daemonset_template_defines_the_node_affinity_of_its_pods() -> None:
    pinned = make_requirements(("kubernetes.io/hostname", "In", ["here"]))
    zonal = replace(AGENT, spec=replace(AGENT.spec, required_terms=(make_requirements((ZONE, "In", ["a"])),)))
    assert (
        resolve_daemon_spec(make_daemon_pod("agent-1", "1", required_terms=(pinned,)), daemon_set=zonal).required_terms
        == zonal.spec.required_terms
    )
    assert resolve_daemon_spec(make_daemon_pod("agent-1", "1", required_terms=(pinned,))).required_terms == (pinned,)


def test_resized_daemonset_resources_are_reserved_on_new_nodes() -> None:
    wants = make_pod("x", "3")
    room = (make_node("here", "8"), make_node("next", "4"))
    grown = make_daemon_pod("agent-1", "2")
    assert (
        locate_pods(
            solve(make_cluster_snapshot(wants, make_pod("busy", "6", on="here"), nodes=room, daemon_sets=(AGENT,)))
        )["x"]
        == "next"
    )
    placements = locate_pods(
        solve(make_cluster_snapshot(wants, make_pod("busy", "6", on="here"), grown, nodes=room, daemon_sets=(AGENT,)))
    )
    assert placements["x"] == "default"


def test_snapshot_without_daemonset_pods_is_unchanged() -> None:
    cluster = make_cluster_snapshot(make_pod("x"), daemon_sets=(AGENT,))
    assert with_daemon_representatives(cluster) is cluster
    assert resolve_daemon_spec(make_daemon_pod("agent-1", "1")).requests == make_requests("1")
