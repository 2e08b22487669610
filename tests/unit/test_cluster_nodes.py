"""Nodes: how they come, what becomes of their pods, and how they go."""

from datetime import timedelta

import pytest

from shared.errors import Gone, Invalid
from sim.clock import Clock
from sim.cluster.controllers.node_lifecycle import wanted_taints
from sim.cluster.controllers.taint_eviction import tolerated_for
from sim.cluster.live import LiveCluster
from sim.cluster.stages import POD_STAGES, RUN_SECONDS, START_SECONDS, STOP_SECONDS, next_stage
from tests.unit.cluster_objects import Obj, boot, live, names, node, pod, run, workload

UNREGISTERED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


def taints(world: LiveCluster, name: str) -> set[tuple[str, str]]:
    found = world.api.get("nodes", name)["spec"].get("taints") or []
    return {(taint["key"], taint["effect"]) for taint in found}


def ready(world: LiveCluster, name: str) -> str:
    conditions = world.api.get("nodes", name)["status"]["conditions"]
    return next(str(c["status"]) for c in conditions if c["type"] == "Ready")


def test_a_node_registers_then_is_initialized_then_becomes_ready() -> None:
    world = LiveCluster(Clock())
    world.start_node(
        boot("n", labels={"team": "x"}, taints=(UNREGISTERED,), zone_id="use1-az1", internal_ip="10.0.0.7")
    )
    run(world, 19.9)
    assert world.api.list("nodes") == []
    run(world, 0.5)
    fresh = world.api.get("nodes", "n")
    assert taints(world, "n") >= {
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
    assert (ready(world, "n"), taints(world, "n")) == (
        "False",
        {("karpenter.sh/unregistered", "NoExecute"), (NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")},
    )
    run(world, 10)
    assert (ready(world, "n"), taints(world, "n")) == ("True", {("karpenter.sh/unregistered", "NoExecute")})
    [lease] = world.api.list("leases.coordination.k8s.io", "kube-node-lease")
    assert lease["metadata"]["ownerReferences"][0]["uid"] == fresh["metadata"]["uid"]


def test_a_machine_that_stops_before_it_registers_never_does() -> None:
    world = LiveCluster(Clock())
    world.start_node(boot("n"))
    run(world, 10)
    world.stop_node("n")
    run(world, 120)
    assert world.api.list("nodes") == []


def test_device_plug_ins_report_later() -> None:
    world = LiveCluster(Clock())
    world.start_node(boot("n", late_resources={"nvidia.com/gpu": "1"}, late_after=timedelta(seconds=40)))
    run(world, 50)
    assert "nvidia.com/gpu" not in world.api.get("nodes", "n")["status"]["allocatable"]
    run(world, 20)
    assert world.api.get("nodes", "n")["status"]["allocatable"]["nvidia.com/gpu"] == "1"


def test_a_node_with_a_csi_driver_says_how_many_volumes_it_takes() -> None:
    world = live(boot("n", volume_limit=25))
    [found] = world.api.list("csinodes.storage.k8s.io")
    assert found["spec"]["drivers"][0]["allocatable"] == {"count": 25}


def test_a_silent_node_becomes_unknown_after_forty_seconds_and_its_pods_leave_after_five_minutes() -> None:
    world = live(boot("a"))
    world.apply(workload("Deployment", "web", 2))
    run(world)
    world.stop_node("a", gone=False)
    run(world, 39)
    assert ready(world, "a") == "True"
    run(world, 2)
    assert ready(world, "a") == "Unknown"
    assert taints(world, "a") == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
    assert world.api.get("deployments.apps", "web", "default")["status"]["readyReplicas"] == 0
    run(world, 290)
    assert len(world.pods("default")) == 2
    run(world, 15)
    deleting = [bool(each["metadata"].get("deletionTimestamp")) for each in world.pods("default")]
    assert sorted(deleting) == [False, False, True, True]


def test_a_silent_node_that_is_touched_meanwhile_is_lost_no_later() -> None:
    world = live(boot("a"))
    world.stop_node("a", gone=False)
    run(world, 20)
    world.api.patch("nodes", "a", {"metadata": {"labels": {"x": "y"}}})
    run(world, 19)
    assert ready(world, "a") == "True"
    run(world, 2)
    assert ready(world, "a") == "Unknown"


def test_a_node_that_comes_back_is_reachable_again() -> None:
    world = live(boot("a"))
    world.apply(workload("Deployment", "web", 1))
    run(world)
    world.stop_node("a", gone=False)
    run(world)
    assert world.api.get("deployments.apps", "web", "default")["status"]["readyReplicas"] == 0
    world.start_node(boot("a"))
    run(world)
    assert world.api.get("deployments.apps", "web", "default")["status"]["readyReplicas"] == 1
    assert (ready(world, "a"), taints(world, "a")) == ("True", set())


def test_the_cloud_controller_deletes_the_node_of_a_terminated_instance_and_its_pods_follow() -> None:
    world = live(boot("a"))
    world.apply(workload("Deployment", "web", 1))
    run(world)
    [before] = world.pods("default")
    world.stop_node("a")
    run(world, 44)
    assert names(world.api.list("nodes")) == ["a"]
    run(world, 5)
    assert world.api.list("nodes") == []
    assert names(world.pods("default")) == names([before])
    run(world, 45)
    [after] = world.pods("default")
    assert (after["metadata"]["name"] != before["metadata"]["name"], after["spec"].get("nodeName")) == (True, None)


def test_instance_gone_may_be_asked_to_be_quick() -> None:
    world = live(boot("a"))
    world.cloud_nodes.instance_gone("a", after=timedelta(seconds=1))
    run(world, 2)
    assert world.api.list("nodes") == []


def test_a_node_that_others_made_is_left_alone_but_for_its_taints() -> None:
    world = LiveCluster(Clock())
    world.api.create("nodes", node("theirs"))
    world.api.create("nodes", {**node("blank"), "status": {}})
    run(world, 120)
    assert (ready(world, "theirs"), taints(world, "theirs")) == ("True", set())
    assert taints(world, "blank") == {(NOT_READY, "NoSchedule")}


@pytest.mark.parametrize(
    ("condition", "status", "wanted"),
    [
        ("Ready", "True", []),
        ("Ready", "False", [(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")]),
        ("Ready", "Unknown", [(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]),
    ],
)
def test_readiness_becomes_taints(condition: str, status: str, wanted: list[tuple[str, str]]) -> None:
    assert wanted_taints({"status": {"conditions": [{"type": condition, "status": status}]}}) == wanted


def test_pressure_and_a_cordon_become_taints() -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "True"}]
    sick = {"spec": {"unschedulable": True}, "status": {"conditions": conditions}}
    assert wanted_taints(sick) == [
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
def test_a_pod_stays_for_the_shortest_of_its_tolerations(tolerations: list[Obj], seconds: int | None) -> None:
    limit = tolerated_for({"spec": {"tolerations": tolerations}}, [T1, T2])
    assert limit == (None if seconds is None else timedelta(seconds=seconds))


def test_an_execute_taint_removes_pods_at_once_unless_they_tolerate_it() -> None:
    world = live(boot("a"))
    world.api.create("pods", pod("weak"))
    world.api.create("pods", pod("strong", spec={"tolerations": [{"operator": "Exists"}]}))
    patient = {"key": "t", "operator": "Exists", "tolerationSeconds": 60}
    world.api.create("pods", pod("patient", spec={"tolerations": [patient]}))
    run(world, 10)
    world.api.patch("nodes", "a", {"spec": {"taints": [{"key": "t", "effect": "NoExecute"}]}})
    run(world, 10)
    assert names(world.pods("default")) == ["patient", "strong"]
    run(world, 60)
    assert names(world.pods("default")) == ["strong"]


def test_a_taint_that_is_lifted_in_time_costs_nothing() -> None:
    world = live(boot("a"))
    world.api.create(
        "pods", pod("p", spec={"tolerations": [{"key": "t", "operator": "Exists", "tolerationSeconds": 60}]})
    )
    run(world, 10)
    world.api.patch("nodes", "a", {"spec": {"taints": [{"key": "t", "effect": "NoExecute"}]}})
    run(world, 10)
    world.api.patch("nodes", "a", {"spec": {"taints": []}})
    run(world, 120)
    assert names(world.pods("default")) == ["p"]


def test_a_pod_that_is_bound_to_a_tainted_node_is_evicted() -> None:
    world = live(boot("a"))
    world.api.patch("nodes", "a", {"spec": {"taints": [{"key": "t", "effect": "NoExecute"}]}})
    world.api.create("pods", pod("p", spec={"nodeName": "a"}))
    run(world, 10)
    assert world.pods("default") == []


def test_a_pod_goes_through_its_stages() -> None:
    world = live(boot("a", internal_ip="10.0.0.7"))
    world.api.create("pods", pod("p", annotations={START_SECONDS: "5"}))
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
def test_a_pod_stops_when_it_can_and_at_the_latest_when_its_grace_is_over(stop: str, grace: int, seconds: int) -> None:
    world = live(boot("a"))
    world.api.create("pods", pod("p", annotations={STOP_SECONDS: stop}))
    run(world, 10)
    world.api.delete("pods", "p", "default", grace_period_seconds=grace)
    run(world, seconds - 0.5 if seconds else 0)
    assert len(world.pods("default")) == (1 if seconds else 0)
    run(world, 1)
    assert world.pods("default") == []


def test_a_second_deletion_with_less_grace_brings_the_end_forward() -> None:
    world = live(boot("a"))
    world.api.create("pods", pod("p", annotations={STOP_SECONDS: "600"}))
    run(world, 10)
    world.api.delete("pods", "p", "default", grace_period_seconds=300)
    run(world, 10)
    world.api.delete("pods", "p", "default", grace_period_seconds=20)
    run(world, 25)
    assert world.pods("default") == []


def test_pods_of_a_silent_machine_make_no_progress() -> None:
    world = live(boot("a"))
    world.api.create("pods", pod("running"))
    world.api.create("pods", pod("starting", annotations={START_SECONDS: "30"}))
    run(world, 10)
    world.stop_node("a", gone=False)
    world.api.delete("pods", "running", "default")
    run(world, 120)
    assert names(world.pods("default")) == ["running", "starting"]
    assert world.api.get("pods", "starting", "default")["status"]["phase"] == "Pending"


def test_pods_that_were_bound_before_the_node_came_run_when_it_does() -> None:
    world = LiveCluster(Clock())
    world.api.create("pods", pod("p", spec={"nodeName": "a", "tolerations": [{"operator": "Exists"}]}))
    world.start_node(boot("a"))
    run(world, 35)
    assert world.api.get("pods", "p", "default")["status"]["phase"] == "Running"


def test_a_pod_on_a_node_that_never_comes_is_collected() -> None:
    world = LiveCluster(Clock())
    world.api.create("pods", pod("p", spec={"nodeName": "nowhere"}))
    run(world, 30)
    assert len(world.pods()) == 1
    run(world, 30)
    assert world.pods() == []


def test_only_pods_that_may_end_finish() -> None:
    assert next_stage({**pod("p", annotations={RUN_SECONDS: "1"}), "status": {"phase": "Running"}}) is None
    ends = pod("p", annotations={RUN_SECONDS: "1"}, spec={"restartPolicy": "Never"})
    stage = next_stage({**ends, "status": {"phase": "Running", "startTime": "t"}})
    assert stage is not None
    assert stage.effect == "finish"


def test_the_jitter_depends_on_the_seed_and_the_pod_alone() -> None:
    stage = next(each for each in POD_STAGES if each.name == "pod-run")
    [first, again, other, elsewhere] = [
        stage.takes({"metadata": {"uid": uid}}, seed) for uid, seed in (("a", 0), ("a", 0), ("b", 0), ("a", 1))
    ]
    assert first == again
    assert len({first, other, elsewhere}) == 3
    assert all(stage.delay <= taken <= stage.delay + stage.jitter for taken in (first, other, elsewhere))


def test_a_daemon_with_host_network_has_the_address_of_its_node() -> None:
    world = live(boot("a", internal_ip="10.0.0.7"))
    world.api.create("pods", pod("p", spec={"hostNetwork": True}))
    run(world, 10)
    assert world.api.get("pods", "p", "default")["status"]["podIP"] == "10.0.0.7"


def test_apply_creates_merges_and_takes_lists() -> None:
    world = LiveCluster(Clock())
    web = workload("Deployment", "web", 1)
    pool = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    [made, _] = world.apply({"kind": "List", "items": [web, pool]})
    assert made["spec"]["replicas"] == 1
    [merged] = world.apply({**web, "spec": {"replicas": 3}})
    assert (merged["spec"]["replicas"], merged["spec"]["selector"]) == (3, web["spec"]["selector"])
    world.apply_all([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-"}}] * 2)
    assert len(world.api.list("configmaps", "default")) == 2
    with pytest.raises(Invalid, match="no matches for kind 'Strange'"):
        world.apply({"kind": "Strange", "metadata": {"name": "x"}})
    with pytest.raises(Gone):
        world.scale("Deployment", "default", "missing", 1)


def test_kinds_of_our_own_definitions_are_known() -> None:
    world = LiveCluster(Clock())
    assert world.resource_of("NodePool", "karpenter.sh/v1") == "nodepools.karpenter.sh"
    with pytest.raises(Invalid):
        world.resource_of("NodePool", "other/v1")
