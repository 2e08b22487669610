"""What moves in the cluster goes on when the API server does not answer for a while."""

from datetime import timedelta

from sim.cluster.stages import START_SECONDS
from tests.unit.cluster_objects import ZONE, Obj, boot, flaky, names, pod, run, workload
from tests.unit.test_cluster_volumes import claim, storage_class, uses


def phase(obj: Obj) -> tuple[str, str]:
    return obj["spec"].get("nodeName", ""), obj["status"]["phase"]


def test_a_kubelet_registers_when_it_can() -> None:
    world, api = flaky()
    api.failing = {"create nodes"}
    world.start_node(boot("n", late_resources={"gpu.example.com/x": "1"}))
    run(world)
    assert api.list("nodes") == []
    api.failing = {"patch nodes"}
    run(world)
    assert api.get("nodes", "n")["status"]["conditions"][-1]["status"] == "False"
    api.failing = set()
    run(world, 120)
    found = api.get("nodes", "n")
    assert (found["status"]["conditions"][-1]["status"], found["spec"]["taints"]) == ("True", [])
    assert found["status"]["allocatable"]["gpu.example.com/x"] == "1"


def test_a_node_that_is_deleted_while_it_starts_stays_away() -> None:
    world, api = flaky()
    world.start_node(boot("n", ready_after=timedelta(seconds=30)))
    run(world, 25)
    assert world.kubelet.is_running("n")
    api.delete("nodes", "n")
    run(world, 120)
    assert api.list("nodes") == []


def test_a_machine_that_stops_while_it_starts_never_becomes_ready() -> None:
    world, api = flaky()
    world.start_node(boot("n", ready_after=timedelta(seconds=30), volume_limit=5))
    run(world, 25)
    world.stop_node("n", gone=False)
    run(world, 35)
    assert api.get("nodes", "n")["status"]["conditions"][-1]["status"] == "False"


def test_a_restarted_machine_keeps_its_csi_node() -> None:
    world, api = flaky(boot("n", volume_limit=5))
    world.stop_node("n", gone=False)
    world.start_node(boot("n", volume_limit=5))
    run(world, 120)
    assert len(api.list("csinodes.storage.k8s.io")) == 1


def test_pods_are_bound_started_and_removed_late_but_surely() -> None:
    world, api = flaky(boot("n"))
    api.failing = {"bind pods"}
    api.create("pods", pod("p", annotations={START_SECONDS: "1"}))
    run(world)
    assert phase(api.get("pods", "p", "default")) == ("", "Pending")
    api.failing = {"patch pods"}
    run(world)
    assert phase(api.get("pods", "p", "default")) == ("n", "Pending")
    api.failing = set()
    run(world)
    assert phase(api.get("pods", "p", "default")) == ("n", "Running")
    api.delete("pods", "p", "default")
    api.failing = {"delete pods"}
    run(world)
    assert len(world.pods()) == 1
    api.failing = set()
    run(world, 5)
    assert world.pods() == []


def test_a_refusal_that_could_not_be_written_is_written_later() -> None:
    world, api = flaky()
    api.failing = {"patch pods"}
    api.create("pods", pod("p"))
    api.create("pods", pod("gated", spec={"schedulingGates": [{"name": "g"}]}))
    run(world)
    assert "conditions" not in api.get("pods", "p", "default")["status"]
    api.failing = set()
    run(world)
    assert api.get("pods", "p", "default")["status"]["conditions"][0]["reason"] == "Unschedulable"


def test_a_pod_whose_disk_is_ready_is_bound_when_it_can_be() -> None:
    world, api = flaky(boot("n"))
    api.create("storageclasses.storage.k8s.io", storage_class())
    api.create("persistentvolumeclaims", claim())
    api.failing = {"bind pods"}
    api.create("pods", pod("p", spec=uses("data")))
    run(world)
    assert phase(api.get("pods", "p", "default")) == ("", "Pending")
    api.failing = set()
    run(world)
    assert phase(api.get("pods", "p", "default")) == ("n", "Running")


def test_a_node_that_goes_while_a_disk_is_made_does_not_take_the_pod_with_it() -> None:
    world, api = flaky(boot("a", zone="a"))
    api.create("storageclasses.storage.k8s.io", storage_class())
    api.create("persistentvolumeclaims", claim())
    api.failing = {"create persistentvolumes"}
    api.create("pods", pod("p", spec=uses("data")))
    run(world, 5)
    assert api.get("persistentvolumeclaims", "data", "default")["metadata"]["annotations"]
    api.delete("nodes", "a")
    api.failing = set()
    world.start_node(boot("b", zone="b"))
    run(world, 120)
    assert phase(api.get("pods", "p", "default")) == ("b", "Running")
    [disk] = api.list("persistentvolumes")
    terms = disk["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert terms == [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}]


def test_a_controller_goes_on_after_a_fault() -> None:
    world, api = flaky(boot("n"))
    api.failing = {"create pods"}
    world.apply(workload("Deployment", "web", 2))
    run(world)
    assert world.pods() == []
    api.failing = set()
    run(world, 90)
    assert len(world.pods()) == 2


def test_a_pending_pod_that_waits_for_its_finalizer_is_not_scheduled() -> None:
    world, api = flaky()
    api.create("pods", pod("p", finalizers=["example.com/wait"]))
    run(world)
    api.delete("pods", "p", "default")
    world.start_node(boot("n"))
    run(world, 120)
    assert (phase(api.get("pods", "p", "default"))[0], world.scheduler.pending()) == ("", [])


def test_a_finished_pod_of_a_lost_node_is_collected_as_it_is() -> None:
    world, api = flaky()
    api.create("pods", pod("p", spec={"nodeName": "nowhere"}))
    api.patch("pods", "p", {"status": {"phase": "Succeeded"}}, "default", "status")
    api.create("pods", pod("q", spec={"nodeName": "late", "tolerations": [{"operator": "Exists"}]}))
    world.start_node(boot("late"))
    run(world)
    assert names(world.pods()) == ["q"]


def test_a_cluster_has_its_namespaces_whoever_made_the_server() -> None:
    _, api = flaky()
    assert names(api.list("namespaces")) == ["default", "kube-node-lease", "kube-public", "kube-system"]
