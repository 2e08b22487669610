"""Tests of the workload controllers: Deployment, ReplicaSet, StatefulSet."""

from collections import Counter
from datetime import timedelta

import pytest

from sim.cluster.cluster import SimulatedCluster
from sim.cluster.controllers.workloads.deployment import compute_rollout_limits
from sim.cluster.controllers.workloads.replicaset import (
    DELETION_COST_ANNOTATION,
    count_available,
    sort_pods_for_deletion,
)
from sim.cluster.kubelet.pod_stages import START_SECONDS_ANNOTATION
from sim.time.virtual_clock import DEFAULT_START_TIME
from tests.support.cluster_objects import Obj, list_names, make_node_boot, make_workload, run, start_cluster

LARGE_NODE_QUANTITIES = {"cpu": "64", "memory": "256Gi", "pods": "100"}


def make_ranked_pod(
    name: str, node: str = "n", *, ready: int | None = 100, phase: str = "Running", **fields: Obj
) -> Obj:
    """Return a pod that has been ready for *ready* seconds; with None, it is not ready."""
    since = (DEFAULT_START_TIME - timedelta(seconds=ready or 0)).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {"type": "Ready", "status": "False" if ready is None else "True", "lastTransitionTime": since}
    metadata = {"name": name, "uid": name, "creationTimestamp": "2026-11-21T00:00:00Z", **fields.get("metadata", {})}
    status = {"phase": phase, "conditions": [condition], **fields.get("status", {})}
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": status}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (make_ranked_pod("z", node=""), make_ranked_pod("a")),
        (make_ranked_pod("z", phase="Pending"), make_ranked_pod("a")),
        (make_ranked_pod("z", phase="Unknown"), make_ranked_pod("a")),
        (make_ranked_pod("z", ready=None), make_ranked_pod("a", ready=1)),
        (make_ranked_pod("z", metadata={"annotations": {DELETION_COST_ANNOTATION: "-5"}}), make_ranked_pod("a")),
        (make_ranked_pod("z"), make_ranked_pod("a", metadata={"annotations": {DELETION_COST_ANNOTATION: "5"}})),
        (make_ranked_pod("z", ready=1), make_ranked_pod("a", ready=10_000)),
        (make_ranked_pod("z", ready=0), make_ranked_pod("a", ready=1)),
        (make_ranked_pod("z", status={"containerStatuses": [{"restartCount": 3}]}), make_ranked_pod("a")),
        (make_ranked_pod("z", metadata={"creationTimestamp": "2026-11-21T07:59:00Z"}), make_ranked_pod("a")),
        (make_ranked_pod("a", metadata={"annotations": {DELETION_COST_ANNOTATION: "much"}}), make_ranked_pod("b")),
    ],
)
def test_replicaset_deletes_pods_in_the_kubernetes_order(first: Obj, second: Obj) -> None:
    assert list_names(sort_pods_for_deletion([second, first], [], DEFAULT_START_TIME)) == list_names([first, second])


def test_ready_times_of_the_same_magnitude_are_equal() -> None:
    pods = [make_ranked_pod("a", ready=1000), make_ranked_pod("b", ready=900)]
    assert list_names(sort_pods_for_deletion(pods, [], DEFAULT_START_TIME)) == ["a", "b"]


def test_pods_on_one_node_are_counted_over_all_replicasets_of_the_deployment() -> None:
    own_pods = [make_ranked_pod("m1", "x"), make_ranked_pod("m2", "y")]
    other_pods = [make_ranked_pod("o1", "y"), make_ranked_pod("o2", "y")]
    assert list_names(sort_pods_for_deletion(own_pods, own_pods + other_pods, DEFAULT_START_TIME)) == ["m2", "m1"]


def test_scale_down_removes_pods_from_the_most_crowded_node() -> None:
    world = start_cluster(
        make_node_boot("a", quantities=LARGE_NODE_QUANTITIES),
        make_node_boot("b", quantities=LARGE_NODE_QUANTITIES),
        make_node_boot("c", quantities=LARGE_NODE_QUANTITIES),
    )
    placed = {"b": 12, "a": 7, "c": 1}
    world.apply(make_workload("Deployment", "web", 0))
    run(world, 5)
    for node, count in placed.items():
        for node_name in ("a", "b", "c"):
            world.api.patch("nodes", node_name, {"spec": {"unschedulable": node_name != node}})
        replicas = world.api.get("deployments.apps", "web", "default")["spec"]["replicas"]
        world.scale("Deployment", "default", "web", replicas + count)
        run(world)
    assert count_pods_by_node(world) == placed
    world.scale("Deployment", "default", "web", 10)
    run(world)
    assert count_pods_by_node(world) == {"b": 2, "a": 7, "c": 1}


def test_scale_down_keeps_the_pod_on_the_less_crowded_node() -> None:
    world = start_cluster(
        make_node_boot("b", quantities=LARGE_NODE_QUANTITIES), make_node_boot("c", quantities=LARGE_NODE_QUANTITIES)
    )
    for node, count in (("b", 9), ("c", 1)):
        for node_name in ("b", "c"):
            world.api.patch("nodes", node_name, {"spec": {"unschedulable": node_name != node}})
        if count == 9:
            world.apply(make_workload("Deployment", "web", 9))
        else:
            world.scale("Deployment", "default", "web", 10)
        run(world)
    assert count_pods_by_node(world) == {"b": 9, "c": 1}
    world.scale("Deployment", "default", "web", 5)
    run(world)
    assert count_pods_by_node(world) == {"b": 4, "c": 1}


def count_pods_by_node(world: SimulatedCluster) -> dict[str, int]:
    return dict(Counter(pod["spec"]["nodeName"] for pod in world.list_pods("default")))


def test_pod_is_available_after_min_ready_seconds() -> None:
    pods = [make_ranked_pod("old", ready=100), make_ranked_pod("young", ready=5)]
    assert count_available(pods, 10, DEFAULT_START_TIME) == (1, DEFAULT_START_TIME + timedelta(seconds=5))
    assert count_available(pods, 0, DEFAULT_START_TIME) == (2, None)


def test_deployment_creates_its_pods_and_reports_status() -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(make_workload("Deployment", "web", 3))
    run(world)
    status = world.api.get("deployments.apps", "web", "default")["status"]
    assert (status["replicas"], status["availableReplicas"], status["unavailableReplicas"]) == (3, 3, 0)
    assert [(c["type"], c["status"]) for c in status["conditions"]] == [("Available", "True"), ("Progressing", "True")]
    [replica_set] = world.api.list("replicasets.apps")
    assert replica_set["metadata"]["labels"]["pod-template-hash"] in replica_set["metadata"]["name"]
    assert replica_set["spec"]["selector"]["matchLabels"] == replica_set["metadata"]["labels"]


@pytest.mark.parametrize(
    ("rolling", "surge", "unavailable"),
    [({}, 3, 2), ({"maxSurge": 0, "maxUnavailable": 0}, 0, 1), ({"maxSurge": "0%", "maxUnavailable": "50%"}, 0, 5)],
)
def test_rollout_percentages_round_in_favor_of_availability(rolling: Obj, surge: int, unavailable: int) -> None:
    deployment = {"spec": {"replicas": 10, "strategy": {"rollingUpdate": rolling}}}
    assert compute_rollout_limits(deployment) == (surge, unavailable)


@pytest.mark.parametrize(("surge", "unavailable"), [(1, 0), (0, 1), ("25%", "25%")])
def test_rollout_respects_max_surge_and_max_unavailable(surge: int | str, unavailable: int | str) -> None:
    world = start_cluster(make_node_boot("n", quantities=LARGE_NODE_QUANTITIES))
    rolling = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    world.apply(make_workload("Deployment", "web", 4, strategy=rolling))
    run(world)
    world.apply(make_workload("Deployment", "web", 4, strategy=rolling, annotations={"version": "2"}))
    max_surge, max_unavailable = compute_rollout_limits(world.api.get("deployments.apps", "web", "default"))
    for _ in range(600):
        run(world, 0.1)
        pods = [pod for pod in world.list_pods("default") if not pod["metadata"].get("deletionTimestamp")]
        ready = sum(
            1
            for pod in pods
            for c in pod["status"].get("conditions", [])
            if c["type"] == "Ready" and c["status"] == "True"
        )
        assert 4 - max_unavailable <= ready
        assert len(pods) <= 4 + max_surge
    pods = world.list_pods("default")
    assert [pod["metadata"]["annotations"] for pod in pods] == [{"version": "2"}] * 4
    assert sorted(replica_set["spec"]["replicas"] for replica_set in world.api.list("replicasets.apps")) == [0, 4]


def test_rollout_replaces_unready_pods_first() -> None:
    world = start_cluster(make_node_boot("n", quantities=LARGE_NODE_QUANTITIES))
    stuck = {START_SECONDS_ANNOTATION: "100000"}
    world.apply(make_workload("Deployment", "web", 4, annotations=stuck))
    run(world)
    world.apply(make_workload("Deployment", "web", 4, annotations={START_SECONDS_ANNOTATION: "1"}))
    run(world)
    assert world.api.get("deployments.apps", "web", "default")["status"]["readyReplicas"] == 4


def test_recreate_strategy_waits_until_old_pods_are_deleted() -> None:
    world = start_cluster(make_node_boot("n", quantities=LARGE_NODE_QUANTITIES))
    world.apply(make_workload("Deployment", "web", 2, strategy={"type": "Recreate"}))
    run(world)
    world.apply(make_workload("Deployment", "web", 2, strategy={"type": "Recreate"}, annotations={"version": "2"}))
    run(world, 120)
    assert [pod["metadata"]["annotations"] for pod in world.list_pods("default")] == [{"version": "2"}] * 2


def test_paused_deployment_is_scaled_but_not_rolled_out() -> None:
    world = start_cluster(make_node_boot("n", quantities=LARGE_NODE_QUANTITIES))
    world.apply(make_workload("Deployment", "web", 1))
    run(world)
    world.apply(make_workload("Deployment", "web", 2, paused=True))
    run(world)
    assert len(world.list_pods("default")) == 2
    world.apply(make_workload("Deployment", "web", 2, paused=True, annotations={"version": "2"}))
    run(world)
    assert [pod["metadata"].get("annotations", {}) for pod in world.list_pods("default")] == [{}, {}]


def test_old_replicasets_are_deleted_beyond_the_revision_history_limit() -> None:
    world = start_cluster(make_node_boot("n", quantities=LARGE_NODE_QUANTITIES))
    for version in range(4):
        annotations = {"version": str(version)}
        world.apply(make_workload("Deployment", "web", 1, revisionHistoryLimit=1, annotations=annotations))
        run(world)
    assert len(world.api.list("replicasets.apps")) == 2


def test_statefulset_pods_start_and_stop_in_order() -> None:
    world = start_cluster(make_node_boot("n", quantities=LARGE_NODE_QUANTITIES))
    started: list[str] = []
    world.api.subscribe(
        "pods", lambda event, _old, new: started.append(new["metadata"]["name"]) if event == "ADDED" and new else None
    )
    world.apply(make_workload("StatefulSet", "db", 3))
    run(world, 2)
    assert list_names(world.list_pods("default")) == ["db-0"]
    run(world)
    assert started == ["db-0", "db-1", "db-2"]
    world.scale("StatefulSet", "default", "db", 1)
    run(world, 1)
    assert [bool(pod["metadata"].get("deletionTimestamp")) for pod in world.list_pods("default")] == [
        False,
        False,
        True,
    ]
    run(world)
    assert list_names(world.list_pods("default")) == ["db-0"]
    assert world.api.get("statefulsets.apps", "db", "default")["status"]["readyReplicas"] == 1


def test_parallel_statefulset_pods_start_together() -> None:
    world = start_cluster(make_node_boot("n", quantities=LARGE_NODE_QUANTITIES))
    world.apply(make_workload("StatefulSet", "db", 3, podManagementPolicy="Parallel", ordinals={"start": 5}))
    run(world, 1)
    assert list_names(world.list_pods("default")) == ["db-5", "db-6", "db-7"]
    world.scale("StatefulSet", "default", "db", 1)
    run(world, 1)
    assert [bool(pod["metadata"].get("deletionTimestamp")) for pod in world.list_pods("default")] == [False, True, True]


def test_statefulset_update_stops_at_the_partition() -> None:
    world = start_cluster(make_node_boot("n", quantities=LARGE_NODE_QUANTITIES))
    strategy = {"rollingUpdate": {"partition": 1}}
    world.apply(make_workload("StatefulSet", "db", 3, updateStrategy=strategy))
    run(world)
    world.apply(make_workload("StatefulSet", "db", 3, updateStrategy=strategy, annotations={"version": "2"}))
    run(world, 120)
    assert ["version" in (pod["metadata"].get("annotations") or {}) for pod in world.list_pods("default")] == [
        False,
        True,
        True,
    ]


def test_volume_claims_are_deleted_with_the_statefulset_only_if_configured() -> None:
    world = start_cluster(make_node_boot("n", quantities=LARGE_NODE_QUANTITIES))
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    for name, policy in (("keep", {}), ("drop", {"whenDeleted": "Delete"})):
        extra = {"persistentVolumeClaimRetentionPolicy": policy}
        world.apply(make_workload("StatefulSet", name, 1, volumeClaimTemplates=[template], **extra))
    run(world)
    for name in ("keep", "drop"):
        world.api.delete("statefulsets.apps", name, "default")
    run(world)
    assert list_names(world.api.list("persistentvolumeclaims")) == ["data-keep-0"]


def test_deployment_replica_is_available_after_min_ready_seconds() -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(make_workload("Deployment", "web", 1, minReadySeconds=30))
    run(world, 10)
    assert world.api.get("deployments.apps", "web", "default")["status"]["availableReplicas"] == 0
    run(world, 30)
    assert world.api.get("deployments.apps", "web", "default")["status"]["availableReplicas"] == 1


def test_failed_statefulset_pod_is_replaced_and_on_delete_keeps_old_pods() -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(make_workload("StatefulSet", "db", 1, updateStrategy={"type": "OnDelete"}))
    run(world)
    world.api.patch("pods", "db-0", {"status": {"phase": "Failed"}}, "default", "status")
    run(world)
    assert world.list_pods("default")[0]["status"]["phase"] == "Running"
    world.apply(
        make_workload("StatefulSet", "db", 1, updateStrategy={"type": "OnDelete"}, annotations={"version": "2"})
    )
    run(world)
    assert "version" not in (world.list_pods("default")[0]["metadata"].get("annotations") or {})


def test_pod_template_finalizers_are_set_on_pods() -> None:
    world = start_cluster(make_node_boot("a"))
    web = make_workload("Deployment", "web", 1)
    web["spec"]["template"]["metadata"]["finalizers"] = ["example.com/wait"]
    world.apply(web)
    run(world)
    assert world.list_pods("default")[0]["metadata"]["finalizers"] == ["example.com/wait"]
