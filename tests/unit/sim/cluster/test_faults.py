"""Tests of the simulated cluster while the API server is unreachable for some time."""

from datetime import timedelta

from sim.cluster.kubelet.pod_stages import START_SECONDS_ANNOTATION
from tests.support.cluster_objects import (
    ZONE,
    Obj,
    list_names,
    make_node_boot,
    make_pod,
    make_workload,
    run,
    start_flaky_cluster,
)
from tests.unit.sim.cluster.controllers.test_volumes import make_claim, make_claim_volumes, make_storage_class


def get_node_and_phase(obj: Obj) -> tuple[str, str]:
    return obj["spec"].get("nodeName", ""), obj["status"]["phase"]


def test_kubelet_retries_registration_until_the_api_server_is_reachable() -> None:
    world, api = start_flaky_cluster()
    api.failing = {"create nodes"}
    world.start_node(make_node_boot("n", device_resources={"gpu.example.com/x": "1"}))
    run(world)
    assert api.list("nodes") == []
    api.failing = {"patch nodes"}
    run(world)
    assert api.get("nodes", "n")["status"]["conditions"][-1]["status"] == "False"
    api.failing = set()
    run(world, 120)
    node = api.get("nodes", "n")
    assert (node["status"]["conditions"][-1]["status"], node["spec"]["taints"]) == ("True", [])
    assert node["status"]["allocatable"]["gpu.example.com/x"] == "1"


def test_node_deleted_during_startup_is_not_recreated() -> None:
    world, api = start_flaky_cluster()
    world.start_node(make_node_boot("n", ready_after=timedelta(seconds=30)))
    run(world, 25)
    assert world.kubelet.is_running("n")
    api.delete("nodes", "n")
    run(world, 120)
    assert api.list("nodes") == []


def test_instance_stopped_during_startup_never_becomes_ready() -> None:
    world, api = start_flaky_cluster()
    world.start_node(make_node_boot("n", ready_after=timedelta(seconds=30), volume_limit=5))
    run(world, 25)
    world.stop_node("n", terminated=False)
    run(world, 35)
    assert api.get("nodes", "n")["status"]["conditions"][-1]["status"] == "False"


def test_restarted_instance_keeps_its_csi_node() -> None:
    world, api = start_flaky_cluster(make_node_boot("n", volume_limit=5))
    world.stop_node("n", terminated=False)
    world.start_node(make_node_boot("n", volume_limit=5))
    run(world, 120)
    assert len(api.list("csinodes.storage.k8s.io")) == 1


def test_pod_binding_start_and_deletion_are_retried_after_api_errors() -> None:
    world, api = start_flaky_cluster(make_node_boot("n"))
    api.failing = {"bind pods"}
    api.create("pods", make_pod("p", annotations={START_SECONDS_ANNOTATION: "1"}))
    run(world)
    assert get_node_and_phase(api.get("pods", "p", "default")) == ("", "Pending")
    api.failing = {"patch pods"}
    run(world)
    assert get_node_and_phase(api.get("pods", "p", "default")) == ("n", "Pending")
    api.failing = set()
    run(world)
    assert get_node_and_phase(api.get("pods", "p", "default")) == ("n", "Running")
    api.delete("pods", "p", "default")
    api.failing = {"delete pods"}
    run(world)
    assert len(world.list_pods()) == 1
    api.failing = set()
    run(world, 5)
    assert world.list_pods() == []


def test_unschedulable_condition_is_written_after_api_errors() -> None:
    world, api = start_flaky_cluster()
    api.failing = {"patch pods"}
    api.create("pods", make_pod("p"))
    api.create("pods", make_pod("gated", spec={"schedulingGates": [{"name": "g"}]}))
    run(world)
    assert "conditions" not in api.get("pods", "p", "default")["status"]
    api.failing = set()
    run(world)
    assert api.get("pods", "p", "default")["status"]["conditions"][0]["reason"] == "Unschedulable"


def test_pod_with_a_ready_volume_is_bound_after_api_errors() -> None:
    world, api = start_flaky_cluster(make_node_boot("n"))
    api.create("storageclasses.storage.k8s.io", make_storage_class())
    api.create("persistentvolumeclaims", make_claim())
    api.failing = {"bind pods"}
    api.create("pods", make_pod("p", spec=make_claim_volumes("data")))
    run(world)
    assert get_node_and_phase(api.get("pods", "p", "default")) == ("", "Pending")
    api.failing = set()
    run(world)
    assert get_node_and_phase(api.get("pods", "p", "default")) == ("n", "Running")


def test_node_deleted_during_provisioning_lets_the_pod_move_to_another_zone() -> None:
    world, api = start_flaky_cluster(make_node_boot("a", zone="a"))
    api.create("storageclasses.storage.k8s.io", make_storage_class())
    api.create("persistentvolumeclaims", make_claim())
    api.failing = {"create persistentvolumes"}
    api.create("pods", make_pod("p", spec=make_claim_volumes("data")))
    run(world, 5)
    assert api.get("persistentvolumeclaims", "data", "default")["metadata"]["annotations"]
    api.delete("nodes", "a")
    api.failing = set()
    world.start_node(make_node_boot("b", zone="b"))
    run(world, 120)
    assert get_node_and_phase(api.get("pods", "p", "default")) == ("b", "Running")
    [disk] = api.list("persistentvolumes")
    terms = disk["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert terms == [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}]


def test_controller_continues_after_an_api_error() -> None:
    world, api = start_flaky_cluster(make_node_boot("n"))
    api.failing = {"create pods"}
    world.apply(make_workload("Deployment", "web", 2))
    run(world)
    assert world.list_pods() == []
    api.failing = set()
    run(world, 90)
    assert len(world.list_pods()) == 2


def test_pending_pod_being_deleted_is_not_scheduled() -> None:
    world, api = start_flaky_cluster()
    api.create("pods", make_pod("p", finalizers=["example.com/wait"]))
    run(world)
    api.delete("pods", "p", "default")
    world.start_node(make_node_boot("n"))
    run(world, 120)
    assert (get_node_and_phase(api.get("pods", "p", "default"))[0], world.scheduler.list_pending_pods()) == ("", [])


def test_succeeded_pod_of_a_missing_node_is_garbage_collected() -> None:
    world, api = start_flaky_cluster()
    api.create("pods", make_pod("p", spec={"nodeName": "nowhere"}))
    api.patch("pods", "p", {"status": {"phase": "Succeeded"}}, "default", "status")
    api.create("pods", make_pod("q", spec={"nodeName": "late", "tolerations": [{"operator": "Exists"}]}))
    world.start_node(make_node_boot("late"))
    run(world)
    assert list_names(world.list_pods()) == ["q"]


def test_cluster_creates_its_namespaces_with_any_api_server() -> None:
    _, api = start_flaky_cluster()
    assert list_names(api.list("namespaces")) == ["default", "kube-node-lease", "kube-public", "kube-system"]
