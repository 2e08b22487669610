"""Claims and volumes: where they let a pod go, and how they come to be."""

from typing import Any

import pytest

from sim.cluster.live import LiveCluster
from tests.unit.cluster_objects import ZONE, Bench, Obj, boot, live, names, pod, run, workload

EBS = "ebs.csi.aws.com"


def storage_class(mode: str = "WaitForFirstConsumer", **given: Any) -> Obj:
    metadata = {"name": given.pop("name", "gp3")}
    return {"metadata": metadata, "provisioner": EBS, "volumeBindingMode": mode, "reclaimPolicy": "Delete", **given}


def claim(name: str = "data", **given: Any) -> Obj:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8Gi"}}, "storageClassName": "gp3"}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec | given}


def volume(name: str, zone: str = "a", size: str = "10Gi", **given: Any) -> Obj:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "storageClassName": "gp3",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "csi": {"driver": EBS, "volumeHandle": f"vol-{name}"},
    }
    return {"metadata": {"name": name}, "spec": spec | given}


def uses(*claims: str) -> Obj:
    return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]}


def two_zones() -> Bench:
    bench = Bench()
    bench.node("n-a", zone="a")
    bench.node("n-b", zone="b")
    return bench


def cluster() -> LiveCluster:
    return live(boot("n-a", zone="a"), boot("n-b", zone="b"))


def test_a_bound_volume_draws_the_pod_to_its_zone() -> None:
    bench = two_zones()
    bench.api.create("persistentvolumes", volume("pv", "b"))
    bench.api.create("persistentvolumeclaims", claim(volumeName="pv"))
    bench.pod("p", spec=uses("data"))
    bench.pod("impossible", spec=uses("data") | {"nodeSelector": {ZONE: "a"}})
    bench.settle()
    assert bench.node_of("p") == "n-b"
    assert bench.refusal("impossible") == (
        "0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, "
        "1 node(s) didn't match Pod's node affinity/selector."
    )


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ([], 'persistentvolumeclaim "data" not found'),
        ([("persistentvolumeclaims", claim(volumeName="pv"))], 'persistentvolume "pv" not found'),
        ([("persistentvolumeclaims", claim())], "pod has unbound immediate PersistentVolumeClaims"),
        (
            [("storageclasses.storage.k8s.io", storage_class("Immediate")), ("persistentvolumeclaims", claim())],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
    ],
)
def test_a_claim_that_is_not_ready_stops_the_pod_before_any_node_is_asked(
    objects: list[tuple[str, Obj]], said: str
) -> None:
    bench = two_zones()
    for resource, obj in objects:
        bench.api.create(resource, obj)
    bench.pod("p", spec=uses("data"))
    bench.settle()
    assert bench.message("p") == (
        f"0/2 nodes are available: {said}. preemption: 0/2 nodes are available: "
        "2 Preemption is not helpful for scheduling."
    )


def test_a_claim_that_is_being_deleted_is_no_claim() -> None:
    bench = two_zones()
    doomed = claim()
    doomed["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
    bench.api.create("persistentvolumeclaims", doomed)
    bench.api.delete("persistentvolumeclaims", "data", "default")
    bench.pod("p", spec=uses("data"))
    bench.settle()
    assert 'persistentvolumeclaim "data" is being deleted' in bench.message("p")


@pytest.mark.parametrize(
    "given",
    [
        {"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["c"]}]}]},
        {"provisioner": "kubernetes.io/no-provisioner"},
    ],
)
def test_a_claim_that_can_be_bound_nowhere_says_so(given: Obj) -> None:
    bench = two_zones()
    bench.api.create("storageclasses.storage.k8s.io", storage_class(**given))
    bench.api.create("persistentvolumeclaims", claim())
    bench.pod("p", spec=uses("data"))
    bench.settle()
    assert bench.refusal("p").endswith("2 node(s) didn't find available persistent volumes to bind.")


def test_a_node_takes_only_so_many_volumes() -> None:
    bench = Bench()
    bench.node("n-a")
    bench.api.create("storageclasses.storage.k8s.io", storage_class())
    driver = {"name": EBS, "nodeID": "i-1", "allocatable": {"count": 1}}
    bench.api.create("csinodes.storage.k8s.io", {"metadata": {"name": "n-a"}, "spec": {"drivers": [driver]}})
    for name in ("one", "two"):
        bench.api.create("persistentvolumes", volume(name))
        bench.api.create("persistentvolumeclaims", claim(name, volumeName=name))
    bench.pod("p1", on="n-a", spec=uses("one"))
    bench.pod("shares", spec=uses("one"))
    bench.pod("p2", spec=uses("two"))
    bench.settle()
    assert bench.refusal("p2").endswith("1 node(s) exceed max volume count.")


def test_a_limit_counts_disks_that_are_not_made_yet_and_nodes_without_a_limit_take_all() -> None:
    bench = two_zones()
    bench.api.create("storageclasses.storage.k8s.io", storage_class())
    for node, count in (("n-a", {"count": 1}), ("n-b", {})):
        driver = {"name": EBS, "nodeID": node, "allocatable": count}
        bench.api.create("csinodes.storage.k8s.io", {"metadata": {"name": node}, "spec": {"drivers": [driver]}})
    for name in ("one", "two"):
        bench.api.create("persistentvolumeclaims", claim(name))
    bench.pod("p", spec=uses("one", "two"))
    bench.settle()
    claims = bench.api.list("persistentvolumeclaims")
    assert [each["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] for each in claims] == ["n-b", "n-b"]


def test_a_claim_that_was_promised_to_a_node_goes_nowhere_else() -> None:
    bench = two_zones()
    bench.api.create("storageclasses.storage.k8s.io", storage_class())
    promised = claim()
    promised["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": "n-b"}
    bench.api.create("persistentvolumeclaims", promised)
    bench.pod("p", spec=uses("data") | {"nodeSelector": {ZONE: "a"}})
    bench.settle()
    assert "1 node(s) didn't find available persistent volumes to bind" in bench.message("p")


def test_the_binder_leaves_alone_what_it_cannot_bind() -> None:
    world = cluster()
    world.api.create("storageclasses.storage.k8s.io", storage_class("Immediate"))
    taken = {"namespace": "default", "name": "another", "uid": "another"}
    world.api.create("persistentvolumes", volume("taken", claimRef=taken))
    for name, target in (("first", "missing"), ("second", "taken")):
        world.api.create("persistentvolumeclaims", claim(name, volumeName=target))
    doomed = claim("doomed")
    doomed["metadata"]["finalizers"] = ["example.com/wait"]
    world.api.create("persistentvolumeclaims", doomed)
    world.api.delete("persistentvolumeclaims", "doomed", "default")
    run(world)
    phases = [each["status"]["phase"] for each in world.api.list("persistentvolumeclaims")]
    assert phases == ["Pending", "Pending", "Pending"]


def test_the_first_consumer_decides_where_its_disk_is_made() -> None:
    world = cluster()
    world.api.create("storageclasses.storage.k8s.io", storage_class())
    world.api.create("persistentvolumeclaims", claim())
    run(world)
    assert world.api.list("persistentvolumes") == []
    world.api.create("pods", pod("p", spec=uses("data") | {"nodeSelector": {ZONE: "b"}}))
    run(world)
    [disk] = world.api.list("persistentvolumes")
    [expression] = disk["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"]
    assert expression == {"key": ZONE, "operator": "In", "values": ["b"]}
    found = world.api.get("pods", "p", "default")
    assert (found["spec"]["nodeName"], found["status"]["phase"]) == ("n-b", "Running")
    assert world.api.get("persistentvolumeclaims", "data", "default")["status"]["phase"] == "Bound"


def test_a_disk_stays_where_it_is_when_its_pod_moves() -> None:
    world = cluster()
    world.api.create("storageclasses.storage.k8s.io", storage_class())
    template = claim("data")
    world.apply(workload("StatefulSet", "db", 1, volumeClaimTemplates=[template]))
    run(world)
    before = world.api.get("pods", "db-0", "default")["spec"]["nodeName"]
    world.api.patch("nodes", before, {"spec": {"unschedulable": True}})
    world.api.delete("pods", "db-0", "default")
    run(world)
    moved = world.api.get("pods", "db-0", "default")
    assert moved["spec"].get("nodeName") is None
    world.api.patch("nodes", before, {"spec": {"unschedulable": False}})
    run(world)
    assert world.api.get("pods", "db-0", "default")["spec"]["nodeName"] == before


def test_an_available_volume_is_used_before_one_is_made() -> None:
    world = cluster()
    world.api.create("storageclasses.storage.k8s.io", storage_class())
    for name, size in (("large", "100Gi"), ("small", "1Gi"), ("right", "10Gi")):
        world.api.create("persistentvolumes", volume(name, "b", size))
    world.api.create("persistentvolumeclaims", claim())
    world.api.create("pods", pod("p", spec=uses("data") | {"nodeSelector": {ZONE: "b"}}))
    run(world)
    assert world.api.get("persistentvolumeclaims", "data", "default")["spec"]["volumeName"] == "right"
    assert world.api.get("pods", "p", "default")["spec"]["nodeName"] == "n-b"


def test_an_immediate_claim_is_provisioned_in_an_allowed_zone_without_a_pod() -> None:
    world = cluster()
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]
    world.api.create("storageclasses.storage.k8s.io", storage_class("Immediate", allowedTopologies=allowed))
    world.api.create("persistentvolumeclaims", claim())
    run(world)
    [disk] = world.api.list("persistentvolumes")
    terms = disk["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == ["b"]
    assert disk["status"]["phase"] == "Bound"


@pytest.mark.parametrize(("policy", "left"), [("Delete", []), ("Retain", ["Released"])])
def test_what_becomes_of_a_disk_is_the_policy_of_its_class(policy: str, left: list[str]) -> None:
    world = cluster()
    world.api.create("storageclasses.storage.k8s.io", storage_class("Immediate", reclaimPolicy=policy))
    world.api.create("persistentvolumeclaims", claim())
    run(world)
    world.api.delete("persistentvolumeclaims", "data", "default")
    run(world)
    assert [disk["status"]["phase"] for disk in world.api.list("persistentvolumes")] == left


def test_an_ephemeral_volume_is_claimed_for_its_pod_and_goes_with_it() -> None:
    world = cluster()
    world.api.create("storageclasses.storage.k8s.io", storage_class())
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim()["spec"]}}}
    world.api.create("pods", pod("p", spec={"volumes": [scratch]}))
    run(world)
    assert names(world.api.list("persistentvolumeclaims")) == ["p-scratch"]
    assert world.api.get("pods", "p", "default")["status"]["phase"] == "Running"
    world.api.delete("pods", "p", "default")
    run(world)
    assert world.api.list("persistentvolumeclaims") == []
    assert world.api.list("persistentvolumes") == []


def test_a_volume_is_attached_where_its_pod_runs_and_detached_some_seconds_after() -> None:
    world = cluster()
    world.api.create("persistentvolumes", volume("pv", "b"))
    world.api.create("persistentvolumeclaims", claim(volumeName="pv"))
    world.api.create("pods", pod("p", spec=uses("data")))
    run(world)
    [attachment] = world.api.list("volumeattachments.storage.k8s.io")
    assert (attachment["spec"]["nodeName"], attachment["status"]["attached"]) == ("n-b", True)
    world.api.delete("pods", "p", "default", grace_period_seconds=1)
    run(world, 3)
    assert world.pods() == []
    assert len(world.api.list("volumeattachments.storage.k8s.io")) == 1
    run(world, 10)
    assert world.api.list("volumeattachments.storage.k8s.io") == []


def test_a_pod_that_is_deleted_while_its_disk_is_made_gives_its_place_back() -> None:
    world = cluster()
    world.api.create("storageclasses.storage.k8s.io", storage_class())
    world.api.create("persistentvolumeclaims", claim())
    world.api.create("pods", pod("p", cpu="3", spec=uses("data")))
    run(world, 1)
    world.api.delete("pods", "p", "default")
    for number in range(2):
        world.api.create("pods", pod(f"next-{number}", cpu="3"))
    run(world)
    assert {p["spec"].get("nodeName") for p in world.pods()} == {"n-a", "n-b"}
