"""Tests of volume claims and volumes: where they allow a pod to run, and how they are provisioned."""

from typing import Any

import pytest

from sim.cluster.cluster import SimulatedCluster
from tests.support.cluster_objects import (
    ZONE,
    Bench,
    Obj,
    list_names,
    make_node_boot,
    make_pod,
    make_workload,
    run,
    start_cluster,
)

EBS = "ebs.csi.aws.com"


def make_storage_class(mode: str = "WaitForFirstConsumer", **fields: Any) -> Obj:
    metadata = {"name": fields.pop("name", "gp3")}
    return {"metadata": metadata, "provisioner": EBS, "volumeBindingMode": mode, "reclaimPolicy": "Delete", **fields}


def make_claim(name: str = "data", **spec_fields: Any) -> Obj:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8Gi"}}, "storageClassName": "gp3"}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec | spec_fields}


def make_volume(name: str, zone: str = "a", size: str = "10Gi", **spec_fields: Any) -> Obj:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": size},
        "storageClassName": "gp3",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "csi": {"driver": EBS, "volumeHandle": f"vol-{name}"},
    }
    return {"metadata": {"name": name}, "spec": spec | spec_fields}


def make_claim_volumes(*claims: str) -> Obj:
    return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]}


def make_two_zone_bench() -> Bench:
    bench = Bench()
    bench.create_node("n-a", zone="a")
    bench.create_node("n-b", zone="b")
    return bench


def start_two_zone_cluster() -> SimulatedCluster:
    return start_cluster(make_node_boot("n-a", zone="a"), make_node_boot("n-b", zone="b"))


def test_pod_with_a_bound_volume_is_scheduled_to_the_volume_zone() -> None:
    bench = make_two_zone_bench()
    bench.api.create("persistentvolumes", make_volume("pv", "b"))
    bench.api.create("persistentvolumeclaims", make_claim(volumeName="pv"))
    bench.create_pod("p", spec=make_claim_volumes("data"))
    bench.create_pod("impossible", spec=make_claim_volumes("data") | {"nodeSelector": {ZONE: "a"}})
    bench.advance_seconds()
    assert bench.get_node_name("p") == "n-b"
    assert bench.get_filter_message("impossible") == (
        "0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, "
        "1 node(s) didn't match Pod's node affinity/selector."
    )


@pytest.mark.parametrize(
    ("objects", "expected_reason"),
    [
        ([], 'persistentvolumeclaim "data" not found'),
        ([("persistentvolumeclaims", make_claim(volumeName="pv"))], 'persistentvolume "pv" not found'),
        ([("persistentvolumeclaims", make_claim())], "pod has unbound immediate PersistentVolumeClaims"),
        (
            [
                ("storageclasses.storage.k8s.io", make_storage_class("Immediate")),
                ("persistentvolumeclaims", make_claim()),
            ],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
    ],
)
def test_unbound_immediate_or_missing_volume_claim_makes_the_pod_unschedulable(
    objects: list[tuple[str, Obj]], expected_reason: str
) -> None:
    bench = make_two_zone_bench()
    for resource, obj in objects:
        bench.api.create(resource, obj)
    bench.create_pod("p", spec=make_claim_volumes("data"))
    bench.advance_seconds()
    assert bench.get_scheduling_message("p") == (
        f"0/2 nodes are available: {expected_reason}. preemption: 0/2 nodes are available: "
        "2 Preemption is not helpful for scheduling."
    )


def test_volume_claim_being_deleted_makes_the_pod_unschedulable() -> None:
    bench = make_two_zone_bench()
    doomed = make_claim()
    doomed["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
    bench.api.create("persistentvolumeclaims", doomed)
    bench.api.delete("persistentvolumeclaims", "data", "default")
    bench.create_pod("p", spec=make_claim_volumes("data"))
    bench.advance_seconds()
    assert 'persistentvolumeclaim "data" is being deleted' in bench.get_scheduling_message("p")


@pytest.mark.parametrize(
    "class_fields",
    [
        {"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["c"]}]}]},
        {"provisioner": "kubernetes.io/no-provisioner"},
    ],
)
def test_volume_claim_without_an_available_volume_makes_the_pod_unschedulable(class_fields: Obj) -> None:
    bench = make_two_zone_bench()
    bench.api.create("storageclasses.storage.k8s.io", make_storage_class(**class_fields))
    bench.api.create("persistentvolumeclaims", make_claim())
    bench.create_pod("p", spec=make_claim_volumes("data"))
    bench.advance_seconds()
    assert bench.get_filter_message("p").endswith("2 node(s) didn't find available persistent volumes to bind.")


def test_node_volume_limit_makes_the_pod_unschedulable() -> None:
    bench = Bench()
    bench.create_node("n-a")
    bench.api.create("storageclasses.storage.k8s.io", make_storage_class())
    driver = {"name": EBS, "nodeID": "i-1", "allocatable": {"count": 1}}
    bench.api.create("csinodes.storage.k8s.io", {"metadata": {"name": "n-a"}, "spec": {"drivers": [driver]}})
    for name in ("one", "two"):
        bench.api.create("persistentvolumes", make_volume(name))
        bench.api.create("persistentvolumeclaims", make_claim(name, volumeName=name))
    bench.create_pod("p1", on="n-a", spec=make_claim_volumes("one"))
    bench.create_pod("shares", spec=make_claim_volumes("one"))
    bench.create_pod("p2", spec=make_claim_volumes("two"))
    bench.advance_seconds()
    assert bench.get_filter_message("p2").endswith("1 node(s) exceed max volume count.")


def test_volume_limit_includes_unprovisioned_claims_and_is_optional_per_node() -> None:
    bench = make_two_zone_bench()
    bench.api.create("storageclasses.storage.k8s.io", make_storage_class())
    for node, count in (("n-a", {"count": 1}), ("n-b", {})):
        driver = {"name": EBS, "nodeID": node, "allocatable": count}
        bench.api.create("csinodes.storage.k8s.io", {"metadata": {"name": node}, "spec": {"drivers": [driver]}})
    for name in ("one", "two"):
        bench.api.create("persistentvolumeclaims", make_claim(name))
    bench.create_pod("p", spec=make_claim_volumes("one", "two"))
    bench.advance_seconds()
    claims = bench.api.list("persistentvolumeclaims")
    assert [
        volume_claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] for volume_claim in claims
    ] == ["n-b", "n-b"]


def test_volume_claim_with_a_selected_node_is_bound_only_there() -> None:
    bench = make_two_zone_bench()
    bench.api.create("storageclasses.storage.k8s.io", make_storage_class())
    promised = make_claim()
    promised["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": "n-b"}
    bench.api.create("persistentvolumeclaims", promised)
    bench.create_pod("p", spec=make_claim_volumes("data") | {"nodeSelector": {ZONE: "a"}})
    bench.advance_seconds()
    assert "1 node(s) didn't find available persistent volumes to bind" in bench.get_scheduling_message("p")


def test_volume_binder_ignores_unbindable_claims() -> None:
    world = start_two_zone_cluster()
    world.api.create("storageclasses.storage.k8s.io", make_storage_class("Immediate"))
    claim_ref = {"namespace": "default", "name": "another", "uid": "another"}
    world.api.create("persistentvolumes", make_volume("taken", claimRef=claim_ref))
    for name, target in (("first", "missing"), ("second", "taken")):
        world.api.create("persistentvolumeclaims", make_claim(name, volumeName=target))
    doomed = make_claim("doomed")
    doomed["metadata"]["finalizers"] = ["example.com/wait"]
    world.api.create("persistentvolumeclaims", doomed)
    world.api.delete("persistentvolumeclaims", "doomed", "default")
    run(world)
    phases = [volume_claim["status"]["phase"] for volume_claim in world.api.list("persistentvolumeclaims")]
    assert phases == ["Pending", "Pending", "Pending"]


def test_first_consumer_determines_the_zone_of_its_volume() -> None:
    world = start_two_zone_cluster()
    world.api.create("storageclasses.storage.k8s.io", make_storage_class())
    world.api.create("persistentvolumeclaims", make_claim())
    run(world)
    assert world.api.list("persistentvolumes") == []
    world.api.create("pods", make_pod("p", spec=make_claim_volumes("data") | {"nodeSelector": {ZONE: "b"}}))
    run(world)
    [disk] = world.api.list("persistentvolumes")
    [expression] = disk["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"]
    assert expression == {"key": ZONE, "operator": "In", "values": ["b"]}
    stored_pod = world.api.get("pods", "p", "default")
    assert (stored_pod["spec"]["nodeName"], stored_pod["status"]["phase"]) == ("n-b", "Running")
    assert world.api.get("persistentvolumeclaims", "data", "default")["status"]["phase"] == "Bound"


def test_statefulset_pod_stays_in_the_zone_of_its_volume() -> None:
    world = start_two_zone_cluster()
    world.api.create("storageclasses.storage.k8s.io", make_storage_class())
    template = make_claim("data")
    world.apply(make_workload("StatefulSet", "db", 1, volumeClaimTemplates=[template]))
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


def test_available_volume_is_used_before_a_new_one_is_provisioned() -> None:
    world = start_two_zone_cluster()
    world.api.create("storageclasses.storage.k8s.io", make_storage_class())
    for name, size in (("large", "100Gi"), ("small", "1Gi"), ("right", "10Gi")):
        world.api.create("persistentvolumes", make_volume(name, "b", size))
    world.api.create("persistentvolumeclaims", make_claim())
    world.api.create("pods", make_pod("p", spec=make_claim_volumes("data") | {"nodeSelector": {ZONE: "b"}}))
    run(world)
    assert world.api.get("persistentvolumeclaims", "data", "default")["spec"]["volumeName"] == "right"
    assert world.api.get("pods", "p", "default")["spec"]["nodeName"] == "n-b"


def test_immediate_claim_is_provisioned_in_an_allowed_zone_without_a_pod() -> None:
    world = start_two_zone_cluster()
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}]
    world.api.create("storageclasses.storage.k8s.io", make_storage_class("Immediate", allowedTopologies=allowed))
    world.api.create("persistentvolumeclaims", make_claim())
    run(world)
    [disk] = world.api.list("persistentvolumes")
    terms = disk["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"][0]["values"] == ["b"]
    assert disk["status"]["phase"] == "Bound"


@pytest.mark.parametrize(("policy", "remaining_phases"), [("Delete", []), ("Retain", ["Released"])])
def test_reclaim_policy_determines_whether_the_volume_is_deleted(policy: str, remaining_phases: list[str]) -> None:
    world = start_two_zone_cluster()
    world.api.create("storageclasses.storage.k8s.io", make_storage_class("Immediate", reclaimPolicy=policy))
    world.api.create("persistentvolumeclaims", make_claim())
    run(world)
    world.api.delete("persistentvolumeclaims", "data", "default")
    run(world)
    assert [disk["status"]["phase"] for disk in world.api.list("persistentvolumes")] == remaining_phases


def test_ephemeral_volume_claim_is_created_and_deleted_with_its_pod() -> None:
    world = start_two_zone_cluster()
    world.api.create("storageclasses.storage.k8s.io", make_storage_class())
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": make_claim()["spec"]}}}
    world.api.create("pods", make_pod("p", spec={"volumes": [scratch]}))
    run(world)
    assert list_names(world.api.list("persistentvolumeclaims")) == ["p-scratch"]
    assert world.api.get("pods", "p", "default")["status"]["phase"] == "Running"
    world.api.delete("pods", "p", "default")
    run(world)
    assert world.api.list("persistentvolumeclaims") == []
    assert world.api.list("persistentvolumes") == []


def test_volume_is_attached_to_its_pod_node_and_detached_after_a_delay() -> None:
    world = start_two_zone_cluster()
    world.api.create("persistentvolumes", make_volume("pv", "b"))
    world.api.create("persistentvolumeclaims", make_claim(volumeName="pv"))
    world.api.create("pods", make_pod("p", spec=make_claim_volumes("data")))
    run(world)
    [attachment] = world.api.list("volumeattachments.storage.k8s.io")
    assert (attachment["spec"]["nodeName"], attachment["status"]["attached"]) == ("n-b", True)
    world.api.delete("pods", "p", "default", grace_period_seconds=1)
    run(world, 3)
    assert world.list_pods() == []
    assert len(world.api.list("volumeattachments.storage.k8s.io")) == 1
    run(world, 10)
    assert world.api.list("volumeattachments.storage.k8s.io") == []


def test_pod_deleted_during_provisioning_releases_its_node_capacity() -> None:
    world = start_two_zone_cluster()
    world.api.create("storageclasses.storage.k8s.io", make_storage_class())
    world.api.create("persistentvolumeclaims", make_claim())
    world.api.create("pods", make_pod("p", cpu="3", spec=make_claim_volumes("data")))
    run(world, 1)
    world.api.delete("pods", "p", "default")
    for number in range(2):
        world.api.create("pods", make_pod(f"next-{number}", cpu="3"))
    run(world)
    assert {p["spec"].get("nodeName") for p in world.list_pods()} == {"n-a", "n-b"}
