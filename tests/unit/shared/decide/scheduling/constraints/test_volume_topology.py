"""Volumes restrict where pods can run and count against the volume limits of nodes."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.model.core.labels import HOSTNAME, ZONE
from shared.model.core.metadata import ObjectMeta
from shared.model.core.requirements import Requirements
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.volumes import CSINode, PersistentVolume, StorageClass, VolumeClaim
from tests.support.catalogues import (
    NOW,
    count_pods_per_new_node,
    locate_pods,
    make_cluster_snapshot,
    make_node,
    make_pod,
    make_requirements,
)
from tests.support.snapshot_decisions import solve

EBS = "ebs.csi.aws.com"


def make_volume_claim(name: str = "data", **fields: object) -> VolumeClaim:
    bound = (("pv.kubernetes.io/bind-completed", "yes"),) if "volume_name" in fields else ()
    return replace(VolumeClaim(meta=ObjectMeta(name=name, namespace="shop", annotations=bound)), **fields)


def make_volume(name: str = "pv", *terms: Requirements, **fields: object) -> PersistentVolume:
    return replace(PersistentVolume(meta=ObjectMeta(name=name), terms=terms, driver=EBS), **fields)


def make_storage_class(name: str = "gp3", *zones: str, **fields: object) -> StorageClass:
    places = tuple(make_requirements((ZONE, "In", (zone,))) for zone in zones)
    storage_class = StorageClass(
        meta=ObjectMeta(name=name), provisioner=EBS, binding_mode="WaitForFirstConsumer", allowed_topologies=places
    )
    return replace(storage_class, **fields)


BOUND = make_volume_claim(volume_name="pv")
IN_B = make_requirements((ZONE, "In", ("b",)))


def make_volume_pod(name: str = "db", *claims: str, on: str = "") -> Pod:
    return make_pod(name, volume_claims=claims or ("data",), on=on)


def test_pod_is_scheduled_in_the_zone_of_its_volume() -> None:
    placement = solve(
        make_cluster_snapshot(
            make_volume_pod(), volume_claims=(BOUND,), volumes=(make_volume("pv", IN_B),), nodes=(make_node("in-a"),)
        )
    )
    assert placement.new_nodes[0].requirements[ZONE].values == {"b"}
    second_placement = solve(
        make_cluster_snapshot(
            make_volume_pod(), volume_claims=(BOUND,), volumes=(make_volume(),), nodes=(make_node("in-a"),)
        )
    )
    assert locate_pods(second_placement) == {"db": "in-a"}


@pytest.mark.parametrize(("zones", "expected_zone"), [("b", "b"), ("zc", "c")])
def test_unbound_volume_is_scheduled_in_a_zone_that_its_storage_class_allows(zones: str, expected_zone: str) -> None:
    cluster = make_cluster_snapshot(
        make_volume_pod(),
        volume_claims=(make_volume_claim(storage_class="gp3"),),
        storage_classes=(make_storage_class("gp3", *zones),),
    )
    assert solve(cluster).new_nodes[0].requirements[ZONE].values == {expected_zone}


def test_volume_in_a_zone_without_nodes_is_reported() -> None:
    cluster = make_cluster_snapshot(
        make_volume_pod(), volume_claims=(BOUND,), volumes=(make_volume("pv", make_requirements((ZONE, "In", ("z",)))),)
    )
    assert locate_pods(solve(cluster)) == {"db": "VolumeNotUsable"}
    assert "topology.kubernetes.io/zone In [z]" in solve(cluster).unschedulable[0].message


def test_pod_with_volumes_in_different_zones_is_unschedulable() -> None:
    claims = (BOUND, make_volume_claim("more", volume_name="pv2"))
    volumes = (make_volume("pv", IN_B), make_volume("pv2", make_requirements((ZONE, "In", ("c",)))))
    placement = solve(
        make_cluster_snapshot(make_volume_pod("db", "data", "more"), volume_claims=claims, volumes=volumes)
    )
    assert locate_pods(placement) == {"db": "VolumeNotUsable"}
    assert "in different zones" in placement.unschedulable[0].message
    racks = (
        make_volume("pv", make_requirements(("rack", "In", ("b",)))),
        make_volume("pv2", make_requirements(("rack", "In", ("c",)))),
    )
    bare = make_cluster_snapshot(
        make_volume_pod("db", "data", "more"), volume_claims=claims, volumes=racks, nodes=(make_node("here"),)
    )
    assert locate_pods(solve(bare)) == {"db": "VolumeNotUsable"}
    agree = (volumes[0], make_volume("pv2", make_requirements((ZONE, "In", ("c",))), IN_B))
    placement = solve(make_cluster_snapshot(make_volume_pod("db", "data", "more"), volume_claims=claims, volumes=agree))
    assert placement.new_nodes[0].requirements[ZONE].values == {"b"}


def test_hostname_affinity_of_a_local_volume_is_ignored() -> None:
    local = make_volume("pv", make_requirements((HOSTNAME, "In", ("gone",))), is_local=True)
    assert locate_pods(solve(make_cluster_snapshot(make_volume_pod(), volume_claims=(BOUND,), volumes=(local,)))) == {
        "db": "default"
    }


def test_volume_zone_holds_for_all_pods_of_a_new_node() -> None:
    cluster = make_cluster_snapshot(
        make_volume_pod(), make_volume_pod("two"), volume_claims=(BOUND,), volumes=(make_volume("pv", IN_B),)
    )
    assert count_pods_per_new_node(solve(cluster)) == [2]


@pytest.mark.parametrize(
    ("claims", "other_objects", "words"),
    [
        ((), {}, "does not exist: create it"),
        ((replace(BOUND, meta=replace(BOUND.meta, deleted_at=NOW)),), {}, "is being deleted"),
        ((make_volume_claim(phase="Lost"),), {}, "has lost its PersistentVolume"),
        ((BOUND,), {}, "PersistentVolume pv of claim data does not exist"),
        (
            (BOUND,),
            {"volumes": (make_volume(meta=ObjectMeta(name="pv", deleted_at=NOW)),)},
            "pv of claim data is being deleted",
        ),
        ((replace(BOUND, meta=make_volume_claim().meta),), {"volumes": (make_volume(),)}, "is not bound yet"),
        ((make_volume_claim(),), {}, "has no storageClassName"),
        ((make_volume_claim(storage_class="gone"),), {}, "StorageClass gone"),
        (
            (make_volume_claim(storage_class="gp3"),),
            {"storage_classes": (make_storage_class(binding_mode="Immediate"),)},
            "binds immediately and is not bound yet",
        ),
    ],
)
def test_unusable_volume_is_reported_with_its_reason(
    claims: tuple[VolumeClaim, ...], other_objects: dict[str, Any], words: str
) -> None:
    placement = solve(make_cluster_snapshot(make_volume_pod(), volume_claims=claims, **other_objects))
    assert locate_pods(placement) == {"db": "VolumeNotUsable"}
    assert words in placement.unschedulable[0].message


def _place_with_volume_limit(*, limit: int, driver: str = EBS, shares: bool = False) -> dict[str, str]:
    """Return where a pod is placed when another pod with its own volume runs on a node with a volume limit."""
    claims = (make_volume_claim(storage_class="gp3"), make_volume_claim("other", storage_class="gp3"))
    return locate_pods(
        solve(
            make_cluster_snapshot(
                make_volume_pod(),
                make_volume_pod("runs", "data" if shares else "other", on="here"),
                volume_claims=claims,
                storage_classes=(make_storage_class(provisioner=driver),),
                csi_nodes=(CSINode(meta=ObjectMeta(name="here"), limits=((EBS, limit),)),),
                nodes=(make_node("here"),),
            )
        )
    )


def test_node_accepts_volumes_up_to_the_limit_of_its_csi_driver() -> None:
    assert _place_with_volume_limit(limit=2) == {"db": "here"}
    assert _place_with_volume_limit(limit=1) == {"db": "default"}
    assert _place_with_volume_limit(limit=1, driver="kubernetes.io/aws-ebs") == {"db": "default"}
    assert _place_with_volume_limit(limit=1, driver="efs.csi.aws.com") == {"db": "here"}
    assert _place_with_volume_limit(limit=1, shares=True) == {"db": "here"}


def test_volumes_of_pods_placed_in_the_same_run_count_against_the_limit() -> None:
    claims = tuple(make_volume_claim(name, volume_name=name) for name in ("v1", "v2"))
    volumes = (make_volume("v1"), make_volume("v2"), make_volume("v3", driver=""))
    users = (make_volume_pod("one", "v1"), make_volume_pod("two", "v2"))
    limits = (CSINode(meta=ObjectMeta(name="here"), limits=((EBS, 1),)),)
    cluster = make_cluster_snapshot(
        *users, volume_claims=claims, volumes=volumes, csi_nodes=limits, nodes=(make_node("here"),)
    )
    assert sorted(locate_pods(solve(cluster)).values()) == ["default", "here"]


def test_unresolved_volumes_of_running_pods_do_not_count_against_the_limit() -> None:
    broken_claims = (make_volume_claim("v1", volume_name="gone"), make_volume_claim("v2", storage_class="gone"))
    runs = make_volume_pod("runs", "v1", "v2", "v3", on="here")
    cluster = make_cluster_snapshot(make_pod("p"), runs, volume_claims=broken_claims, nodes=(make_node("here"),))
    assert locate_pods(solve(cluster)) == {"p": "here"}
    assert locate_pods(solve(cluster, excluded=frozenset(("here",)))) == {"p": "default", "runs": "default"}
