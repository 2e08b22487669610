"""Tests of DaemonSets and Jobs: one pod on every node, and pods that finish."""

import pytest

from sim.cluster.kubelet.pod_stages import EXIT_CODE_ANNOTATION, RUN_SECONDS_ANNOTATION
from tests.support.cluster_objects import Obj, list_names, make_node_boot, make_workload, run, start_cluster

IGNORE: Obj = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}


def make_daemon_set(**fields: Obj) -> Obj:
    return make_workload("DaemonSet", "agent", **fields)  # type: ignore[arg-type] # what is passed on is JSON


def test_daemonset_runs_one_pod_on_every_node_including_cordoned_nodes() -> None:
    world = start_cluster(make_node_boot("a"), make_node_boot("b"))
    world.api.patch("nodes", "b", {"spec": {"unschedulable": True}})
    run(world, 5)
    world.apply(make_daemon_set())
    run(world)
    assert sorted(pod["spec"]["nodeName"] for pod in world.list_pods("default")) == ["a", "b"]
    world.start_node(make_node_boot("c"))
    run(world)
    assert sorted(pod["spec"]["nodeName"] for pod in world.list_pods("default")) == ["a", "b", "c"]
    status = world.api.get("daemonsets.apps", "agent", "default")["status"]
    assert (status["desiredNumberScheduled"], status["numberReady"], status["numberMisscheduled"]) == (3, 3, 0)


def test_daemonset_pod_has_controller_tolerations_and_a_node_name_affinity() -> None:
    world = start_cluster(make_node_boot("a"))
    world.apply(make_daemon_set(pod_spec={"hostNetwork": True}))
    run(world)
    [pod] = world.list_pods("default")
    added = {(t["key"], t["effect"]) for t in pod["spec"]["tolerations"] if "tolerationSeconds" not in t}
    assert added == {
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
        ("node.kubernetes.io/network-unavailable", "NoSchedule"),
    }
    [term] = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}


def test_daemonset_pod_runs_only_on_selected_and_tolerated_nodes() -> None:
    world = start_cluster(
        make_node_boot("a", labels={"pool": "x"}),
        make_node_boot("b"),
        make_node_boot("c", labels={"pool": "x"}, taints=({"key": "t", "effect": "NoSchedule"},)),
    )
    world.apply(make_daemon_set(pod_spec={"nodeSelector": {"pool": "x"}}))
    run(world)
    assert [pod["spec"]["nodeName"] for pod in world.list_pods("default")] == ["a"]
    world.api.patch("nodes", "a", {"metadata": {"labels": {"pool": "y"}}})
    run(world)
    assert world.list_pods("default") == []


def test_failed_daemonset_pod_is_replaced() -> None:
    world = start_cluster(make_node_boot("a"))
    world.apply(make_daemon_set())
    run(world)
    [pod] = world.list_pods("default")
    world.api.patch("pods", pod["metadata"]["name"], {"status": {"phase": "Failed"}}, "default", "status")
    run(world)
    [second_pod] = world.list_pods("default")
    assert (second_pod["status"]["phase"], second_pod["metadata"]["uid"] != pod["metadata"]["uid"]) == ("Running", True)


@pytest.mark.parametrize(("strategy", "updated"), [({}, 2), ({"type": "OnDelete"}, 0)])
def test_daemonset_rolling_update_replaces_one_pod_at_a_time(strategy: Obj, updated: int) -> None:
    world = start_cluster(make_node_boot("a"), make_node_boot("b"))
    world.apply(make_daemon_set(updateStrategy=strategy))
    run(world)
    world.apply(make_daemon_set(updateStrategy=strategy, annotations={"version": "2"}))
    min_ready_count = 2
    for _ in range(300):
        run(world, 0.1)
        pods = [pod for pod in world.list_pods("default") if not pod["metadata"].get("deletionTimestamp")]
        ready = [pod for pod in pods if pod["status"]["phase"] == "Running"]
        min_ready_count = min(min_ready_count, len(ready))
    assert min_ready_count == (1 if updated else 2)
    assert sum("version" in (pod["metadata"].get("annotations") or {}) for pod in world.list_pods("default")) == updated


def make_job(replicas: Obj, **annotations: str) -> Obj:
    return make_workload("Job", "batch", annotations=annotations, pod_spec={"restartPolicy": "Never"}, **replicas)


def test_job_runs_its_pods_to_completion() -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(make_job({"completions": 3, "parallelism": 2}, **{RUN_SECONDS_ANNOTATION: "20"}))
    run(world, 10)
    assert world.api.get("jobs.batch", "batch", "default")["status"]["active"] == 2
    run(world, 90)
    status = world.api.get("jobs.batch", "batch", "default")["status"]
    assert (status["succeeded"], status["active"], status["conditions"][0]["type"]) == (3, 0, "Complete")
    assert "completionTime" in status


def test_job_fails_after_its_backoff_limit() -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(
        make_job({"completions": 1, "backoffLimit": 1}, **{RUN_SECONDS_ANNOTATION: "1", EXIT_CODE_ANNOTATION: "1"})
    )
    run(world, 10)
    assert world.api.get("jobs.batch", "batch", "default")["status"]["failed"] == 1
    run(world, 120)
    status = world.api.get("jobs.batch", "batch", "default")["status"]
    assert (status["failed"], status["conditions"][0]["reason"]) == (2, "BackoffLimitExceeded")


@pytest.mark.parametrize(
    ("policy", "failed", "reasons"), [({}, 2, ["BackoffLimitExceeded"]), ({"podFailurePolicy": IGNORE}, 0, [])]
)
def test_evicted_pods_count_as_failed_unless_a_pod_failure_policy_ignores_disruption(
    policy: Obj, failed: int, reasons: list[str]
) -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(make_job({"completions": 2, "parallelism": 2, "backoffLimit": 1, **policy}))
    run(world, 20)
    for pod in world.list_pods("default"):
        world.api.evict("default", pod["metadata"]["name"])
    run(world, 60)
    status = world.api.get("jobs.batch", "batch", "default")["status"]
    assert status["failed"] == failed
    assert [condition["reason"] for condition in status.get("conditions", ())] == reasons


def test_job_is_stopped_after_its_active_deadline() -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(make_job({"completions": 1, "activeDeadlineSeconds": 30}))
    run(world, 90)
    status = world.api.get("jobs.batch", "batch", "default")["status"]
    assert (status["conditions"][0]["reason"], world.list_pods("default")) == ("DeadlineExceeded", [])


def test_job_without_completions_ends_when_a_pod_succeeds() -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(make_job({"parallelism": 2, "suspend": True}, **{RUN_SECONDS_ANNOTATION: "10"}))
    world.api.patch("jobs.batch", "batch", {"spec": {"completions": None, "suspend": False}}, "default")
    run(world, 120)
    status = world.api.get("jobs.batch", "batch", "default")["status"]
    assert (status["conditions"][0]["type"], status["succeeded"]) == ("Complete", 2)


def test_suspended_job_has_no_pods_and_lower_parallelism_removes_pods() -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(make_job({"completions": 4, "parallelism": 3}))
    run(world)
    world.api.patch("jobs.batch", "batch", {"spec": {"parallelism": 1}}, "default")
    run(world)
    assert len(world.list_pods("default")) == 1
    world.api.patch("jobs.batch", "batch", {"spec": {"suspend": True}}, "default")
    run(world)
    assert world.list_pods("default") == []


def test_finished_job_is_deleted_with_its_pods_after_its_ttl() -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(make_job({"completions": 1, "ttlSecondsAfterFinished": 60}, **{RUN_SECONDS_ANNOTATION: "1"}))
    run(world, 30)
    assert len(world.list_pods("default")) == 1
    run(world, 60)
    assert world.list_pods("default") == []
    assert world.api.list("jobs.batch") == []


def test_evicted_job_pod_is_replaced() -> None:
    world = start_cluster(make_node_boot("n"))
    world.apply(make_job({"completions": 1}, **{RUN_SECONDS_ANNOTATION: "40"}))
    run(world, 10)
    [pod] = world.list_pods("default")
    world.api.evict("default", pod["metadata"]["name"])
    run(world, 90)
    status = world.api.get("jobs.batch", "batch", "default")["status"]
    assert (status["failed"], status["succeeded"]) == (1, 1)


def test_daemonset_with_a_node_name_keeps_one_pod_there() -> None:
    world = start_cluster(make_node_boot("a"), make_node_boot("b"))
    world.apply(make_daemon_set(pod_spec={"nodeName": "b"}))
    run(world)
    [only] = world.list_pods("default")
    assert only["spec"]["nodeName"] == "b"
    metadata = {key: only["metadata"][key] for key in ("labels", "ownerReferences", "namespace")}
    world.api.create("pods", {"metadata": {**metadata, "name": "twin"}, "spec": {**only["spec"], "nodeName": "b"}})
    run(world)
    assert list_names(world.list_pods("default")) == list_names([only])


def test_unschedulable_daemonset_pod_is_created_once() -> None:
    world = start_cluster(make_node_boot("a", quantities={"cpu": "1", "memory": "1Gi", "pods": "9"}))
    world.apply(make_daemon_set(pod={"cpu": "2"}))
    run(world)
    world.api.patch("nodes", "a", {"metadata": {"labels": {"x": "y"}}})
    run(world)
    assert len(world.list_pods("default")) == 1
