"""Tests of nodes: how they register, what happens to their pods, and how they are removed."""

from datetime import timedelta

import pytest

from shared.errors import Invalid, NotFound
from sim.cluster.cluster import SimulatedCluster
from sim.cluster.controllers.nodes.node_lifecycle import compute_expected_taints
from sim.cluster.controllers.nodes.taint_eviction import compute_toleration_time
from sim.cluster.kubelet.pod_stages import (
    POD_STAGES,
    RUN_SECONDS_ANNOTATION,
    START_SECONDS_ANNOTATION,
    STOP_SECONDS_ANNOTATION,
    find_next_stage,
)
from sim.time.virtual_clock import Clock
from tests.support.cluster_objects import (
    Obj,
    list_names,
    make_node,
    make_node_boot,
    make_pod,
    make_workload,
    run,
    start_cluster,
)

UNREGISTERED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


def list_taints(world: SimulatedCluster, name: str) -> set[tuple[str, str]]:
    node_taints = world.api.get("nodes", name)["spec"].get("taints") or []
    return {(taint["key"], taint["effect"]) for taint in node_taints}


def get_ready_status(world: SimulatedCluster, name: str) -> str:
    conditions = world.api.get("nodes", name)["status"]["conditions"]
    return next(str(c["status"]) for c in conditions if c["type"] == "Ready")


def test_node_registers_then_is_initialized_then_becomes_ready() -> None:
    world = SimulatedCluster(Clock())
    world.start_node(
        make_node_boot("n", labels={"team": "x"}, taints=(UNREGISTERED,), zone_id="use1-az1", internal_ip="10.0.0.7")
    )
    run(world, 19.9)
    assert world.api.list("nodes") == []
    run(world, 0.5)
    fresh = world.api.get("nodes", "n")
    assert list_taints(world, "n") >= {
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
        (NOT_READY, "NoSchedule"),
        ("karpenter.sh/unregistered", "NoExecute"),
    }
    assert "topology.kubernetes.io/zone" not in fresh["metadata"]["labels"]
    assert fresh["spec"]["providerID"] == "aws:///a/i-n"
    run(world, 2)
    labels = world.api.get("nodes", "n")["metadata"]["labels"]
    assert labels["topology.kubernetes.io/zone"] == "a"
    assert labels["topology.k8s.aws/zone-id"] == "use1-az1"
    assert (labels["team"], labels["node.kubernetes.io/instance-type"]) == ("x", "m6i.xlarge")
    assert (get_ready_status(world, "n"), list_taints(world, "n")) == (
        "False",
        {("karpenter.sh/unregistered", "NoExecute"), (NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")},
    )
    run(world, 10)
    assert (get_ready_status(world, "n"), list_taints(world, "n")) == (
        "True",
        {("karpenter.sh/unregistered", "NoExecute")},
    )
    [lease] = world.api.list("leases.coordination.k8s.io", "kube-node-lease")
    assert lease["metadata"]["ownerReferences"][0]["uid"] == fresh["metadata"]["uid"]


def test_instance_stopped_before_registration_never_registers() -> None:
    world = SimulatedCluster(Clock())
    world.start_node(make_node_boot("n"))
    run(world, 10)
    world.stop_node("n")
    run(world, 120)
    assert world.api.list("nodes") == []


def test_device_plugin_resources_are_reported_after_a_delay() -> None:
    world = SimulatedCluster(Clock())
    world.start_node(
        make_node_boot("n", device_resources={"nvidia.com/gpu": "1"}, device_plugin_delay=timedelta(seconds=40))
    )
    run(world, 50)
    assert "nvidia.com/gpu" not in world.api.get("nodes", "n")["status"]["allocatable"]
    run(world, 20)
    assert world.api.get("nodes", "n")["status"]["allocatable"]["nvidia.com/gpu"] == "1"


def test_csi_node_reports_its_volume_limit() -> None:
    world = start_cluster(make_node_boot("n", volume_limit=25))
    [csi_node] = world.api.list("csinodes.storage.k8s.io")
    assert csi_node["spec"]["drivers"][0]["allocatable"] == {"count": 25}


def test_unresponsive_node_is_unknown_after_40s_and_evicts_pods_after_5m() -> None:
    world = start_cluster(make_node_boot("a"))
    world.apply(make_workload("Deployment", "web", 2))
    run(world)
    world.stop_node("a", terminated=False)
    run(world, 39)
    assert get_ready_status(world, "a") == "True"
    run(world, 2)
    assert get_ready_status(world, "a") == "Unknown"
    assert list_taints(world, "a") == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
    assert world.api.get("deployments.apps", "web", "default")["status"]["readyReplicas"] == 0
    run(world, 290)
    assert len(world.list_pods("default")) == 2
    run(world, 15)
    deleting = [bool(listed_pod["metadata"].get("deletionTimestamp")) for listed_pod in world.list_pods("default")]
    assert sorted(deleting) == [False, False, True, True]


def test_unresponsive_node_is_detected_even_if_its_labels_change() -> None:
    world = start_cluster(make_node_boot("a"))
    world.stop_node("a", terminated=False)
    run(world, 20)
    world.api.patch("nodes", "a", {"metadata": {"labels": {"x": "y"}}})
    run(world, 19)
    assert get_ready_status(world, "a") == "True"
    run(world, 2)
    assert get_ready_status(world, "a") == "Unknown"


def test_restarted_node_becomes_ready_again() -> None:
    world = start_cluster(make_node_boot("a"))
    world.apply(make_workload("Deployment", "web", 1))
    run(world)
    world.stop_node("a", terminated=False)
    run(world)
    assert world.api.get("deployments.apps", "web", "default")["status"]["readyReplicas"] == 0
    world.start_node(make_node_boot("a"))
    run(world)
    assert world.api.get("deployments.apps", "web", "default")["status"]["readyReplicas"] == 1
    assert (get_ready_status(world, "a"), list_taints(world, "a")) == ("True", set())


def test_cloud_controller_deletes_the_node_of_a_terminated_instance() -> None:
    world = start_cluster(make_node_boot("a"))
    world.apply(make_workload("Deployment", "web", 1))
    run(world)
    [before] = world.list_pods("default")
    world.stop_node("a")
    run(world, 44)
    assert list_names(world.api.list("nodes")) == ["a"]
    run(world, 5)
    assert world.api.list("nodes") == []
    assert list_names(world.list_pods("default")) == list_names([before])
    run(world, 45)
    [after] = world.list_pods("default")
    assert (after["metadata"]["name"] != before["metadata"]["name"], after["spec"].get("nodeName")) == (True, None)


def test_instance_deregistration_delay_is_configurable() -> None:
    world = start_cluster(make_node_boot("a"))
    world.cloud_nodes.deregister_instance("a", delay=timedelta(seconds=1))
    run(world, 2)
    assert world.api.list("nodes") == []


def test_manually_created_node_only_gets_taints_from_its_conditions() -> None:
    world = SimulatedCluster(Clock())
    world.api.create("nodes", make_node("theirs"))
    world.api.create("nodes", {**make_node("blank"), "status": {}})
    run(world, 120)
    assert (get_ready_status(world, "theirs"), list_taints(world, "theirs")) == ("True", set())
    assert list_taints(world, "blank") == {(NOT_READY, "NoSchedule")}


@pytest.mark.parametrize(
    ("condition", "status", "expected_taints"),
    [
        ("Ready", "True", []),
        ("Ready", "False", [(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")]),
        ("Ready", "Unknown", [(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]),
    ],
)
def test_node_readiness_is_converted_to_taints(
    condition: str, status: str, expected_taints: list[tuple[str, str]]
) -> None:
    assert (
        compute_expected_taints({"status": {"conditions": [{"type": condition, "status": status}]}}) == expected_taints
    )


def test_node_pressure_and_cordon_are_converted_to_taints() -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "True"}]
    sick = {"spec": {"unschedulable": True}, "status": {"conditions": conditions}}
    assert compute_expected_taints(sick) == [
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    ]


T1, T2 = {"key": "a", "effect": "NoExecute"}, {"key": "b", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0),
        ([{"key": "a", "operator": "Exists"}], 0),
        ([{"operator": "Exists"}], None),
        ([{"key": "a", "operator": "Exists", "tolerationSeconds": 30}, {"operator": "Exists"}], 30),
        ([{"key": "a", "operator": "Exists", "tolerationSeconds": -1}, {"operator": "Exists"}], 0),
    ],
)
def test_shortest_toleration_seconds_determines_the_eviction_time(tolerations: list[Obj], seconds: int | None) -> None:
    limit = compute_toleration_time({"spec": {"tolerations": tolerations}}, [T1, T2])
    assert limit == (None if seconds is None else timedelta(seconds=seconds))


def test_no_execute_taint_evicts_pods_that_do_not_tolerate_it() -> None:
    world = start_cluster(make_node_boot("a"))
    world.api.create("pods", make_pod("weak"))
    world.api.create("pods", make_pod("strong", spec={"tolerations": [{"operator": "Exists"}]}))
    patient = {"key": "t", "operator": "Exists", "tolerationSeconds": 60}
    world.api.create("pods", make_pod("patient", spec={"tolerations": [patient]}))
    run(world, 10)
    world.api.patch("nodes", "a", {"spec": {"taints": [{"key": "t", "effect": "NoExecute"}]}})
    run(world, 10)
    assert list_names(world.list_pods("default")) == ["patient", "strong"]
    run(world, 60)
    assert list_names(world.list_pods("default")) == ["strong"]


def test_taint_removed_before_the_toleration_ends_evicts_no_pod() -> None:
    world = start_cluster(make_node_boot("a"))
    world.api.create(
        "pods", make_pod("p", spec={"tolerations": [{"key": "t", "operator": "Exists", "tolerationSeconds": 60}]})
    )
    run(world, 10)
    world.api.patch("nodes", "a", {"spec": {"taints": [{"key": "t", "effect": "NoExecute"}]}})
    run(world, 10)
    world.api.patch("nodes", "a", {"spec": {"taints": []}})
    run(world, 120)
    assert list_names(world.list_pods("default")) == ["p"]


def test_pod_bound_to_a_tainted_node_is_evicted() -> None:
    world = start_cluster(make_node_boot("a"))
    world.api.patch("nodes", "a", {"spec": {"taints": [{"key": "t", "effect": "NoExecute"}]}})
    world.api.create("pods", make_pod("p", spec={"nodeName": "a"}))
    run(world, 10)
    assert world.list_pods("default") == []


def test_pod_phases_and_conditions_change_on_start() -> None:
    world = start_cluster(make_node_boot("a", internal_ip="10.0.0.7"))
    world.api.create("pods", make_pod("p", annotations={START_SECONDS_ANNOTATION: "5"}))
    run(world, 1)
    status = world.api.get("pods", "p", "default")["status"]
    assert (status["phase"], status["containerStatuses"][0]["state"]) == (
        "Pending",
        {"waiting": {"reason": "ContainerCreating"}},
    )
    run(world, 5)
    status = world.api.get("pods", "p", "default")["status"]
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "PodScheduled": "True",
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
    }
    assert (status["phase"], status["hostIP"], status["podIP"].split(".")[0]) == ("Running", "10.0.0.7", "100")


@pytest.mark.parametrize(("stop", "grace", "seconds"), [("10", 30, 10), ("600", 30, 30), ("10", 5, 5), ("0", 30, 0)])
def test_pod_stops_after_its_stop_time_or_grace_period(stop: str, grace: int, seconds: int) -> None:
    world = start_cluster(make_node_boot("a"))
    world.api.create("pods", make_pod("p", annotations={STOP_SECONDS_ANNOTATION: stop}))
    run(world, 10)
    world.api.delete("pods", "p", "default", grace_period_seconds=grace)
    run(world, seconds - 0.5 if seconds else 0)
    assert len(world.list_pods("default")) == (1 if seconds else 0)
    run(world, 1)
    assert world.list_pods("default") == []


def test_second_deletion_with_a_shorter_grace_period_stops_the_pod_earlier() -> None:
    world = start_cluster(make_node_boot("a"))
    world.api.create("pods", make_pod("p", annotations={STOP_SECONDS_ANNOTATION: "600"}))
    run(world, 10)
    world.api.delete("pods", "p", "default", grace_period_seconds=300)
    run(world, 10)
    world.api.delete("pods", "p", "default", grace_period_seconds=20)
    run(world, 25)
    assert world.list_pods("default") == []


def test_pods_of_an_unresponsive_node_do_not_change() -> None:
    world = start_cluster(make_node_boot("a"))
    world.api.create("pods", make_pod("running"))
    world.api.create("pods", make_pod("starting", annotations={START_SECONDS_ANNOTATION: "30"}))
    run(world, 10)
    world.stop_node("a", terminated=False)
    world.api.delete("pods", "running", "default")
    run(world, 120)
    assert list_names(world.list_pods("default")) == ["running", "starting"]
    assert world.api.get("pods", "starting", "default")["status"]["phase"] == "Pending"


def test_pod_bound_before_its_node_exists_starts_with_the_node() -> None:
    world = SimulatedCluster(Clock())
    world.api.create("pods", make_pod("p", spec={"nodeName": "a", "tolerations": [{"operator": "Exists"}]}))
    world.start_node(make_node_boot("a"))
    run(world, 35)
    assert world.api.get("pods", "p", "default")["status"]["phase"] == "Running"


def test_pod_bound_to_a_missing_node_is_garbage_collected() -> None:
    world = SimulatedCluster(Clock())
    world.api.create("pods", make_pod("p", spec={"nodeName": "nowhere"}))
    run(world, 30)
    assert len(world.list_pods()) == 1
    run(world, 30)
    assert world.list_pods() == []


def test_only_pods_with_restart_policy_never_finish() -> None:
    assert (
        find_next_stage({**make_pod("p", annotations={RUN_SECONDS_ANNOTATION: "1"}), "status": {"phase": "Running"}})
        is None
    )
    ends = make_pod("p", annotations={RUN_SECONDS_ANNOTATION: "1"}, spec={"restartPolicy": "Never"})
    stage = find_next_stage({**ends, "status": {"phase": "Running", "startTime": "t"}})
    assert stage is not None
    assert stage.effect == "finish"


def test_pod_stage_jitter_depends_on_seed_and_pod_uid() -> None:
    stage = next(pod_stage for pod_stage in POD_STAGES if pod_stage.name == "pod-run")
    [first, repeated_duration, other_uid_duration, elsewhere] = [
        stage.compute_duration({"metadata": {"uid": uid}}, seed)
        for uid, seed in (("a", 0), ("a", 0), ("b", 0), ("a", 1))
    ]
    assert first == repeated_duration
    assert len({first, other_uid_duration, elsewhere}) == 3
    assert all(
        stage.delay <= duration <= stage.delay + stage.jitter for duration in (first, other_uid_duration, elsewhere)
    )


def test_host_network_pod_has_the_node_address() -> None:
    world = start_cluster(make_node_boot("a", internal_ip="10.0.0.7"))
    world.api.create("pods", make_pod("p", spec={"hostNetwork": True}))
    run(world, 10)
    assert world.api.get("pods", "p", "default")["status"]["podIP"] == "10.0.0.7"


def test_apply_creates_merges_and_accepts_lists() -> None:
    world = SimulatedCluster(Clock())
    web = make_workload("Deployment", "web", 1)
    pool = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    [deployment, _] = world.apply({"kind": "List", "items": [web, pool]})
    assert deployment["spec"]["replicas"] == 1
    [merged] = world.apply({**web, "spec": {"replicas": 3}})
    assert (merged["spec"]["replicas"], merged["spec"]["selector"]) == (3, web["spec"]["selector"])
    world.apply_all([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}}] * 2)
    assert len(world.api.list("configmaps", "default")) == 2
    with pytest.raises(Invalid, match="no matches for kind 'Strange'"):
        world.apply({"kind": "Strange", "metadata": {"name": "x"}})
    with pytest.raises(NotFound):
        world.scale("Deployment", "default", "missing", 1)


def test_joiner_crd_kinds_are_known() -> None:
    world = SimulatedCluster(Clock())
    assert world.get_resource_name("NodePool", "karpenter.sh/v1") == "nodepools.karpenter.sh"
    with pytest.raises(Invalid):
        world.get_resource_name("NodePool", "other/v1")
