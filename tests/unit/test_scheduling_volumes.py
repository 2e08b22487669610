"""Volumes bind pods to places and fill nodes."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.model.labels import HOSTNAME, ZONE
from shared.model.objects import Meta
from shared.model.pods import Pod
from shared.model.requirements import Requirements
from shared.model.volumes import CSINode, PersistentVolume, StorageClass, VolumeClaim
from shared.scheduling.solve import solve
from tests.unit.catalogues import NOW, needs, node, placed, pod, sizes, world

EBS = "ebs.csi.aws.com"


def claim(name: str = "data", **fields: object) -> VolumeClaim:
    bound = (("pv.kubernetes.io/bind-completed", "yes"),) if "volume_name" in fields else ()
    return replace(VolumeClaim(meta=Meta(name=name, namespace="shop", annotations=bound)), **fields)


def volume(name: str = "pv", *terms: Requirements, **fields: object) -> PersistentVolume:
    return replace(PersistentVolume(meta=Meta(name=name), terms=terms, driver=EBS), **fields)


def storage(name: str = "gp3", *zones: str, **fields: object) -> StorageClass:
    places = tuple(needs((ZONE, "In", (zone,))) for zone in zones)
    some = StorageClass(
        meta=Meta(name=name), provisioner=EBS, binding_mode="WaitForFirstConsumer", allowed_topologies=places
    )
    return replace(some, **fields)


BOUND = claim(volume_name="pv")
IN_B = needs((ZONE, "In", ("b",)))


def user(name: str = "db", *claims: str, on: str = "") -> Pod:
    return pod(name, volume_claims=claims or ("data",), on=on)


def test_a_pod_follows_its_volume() -> None:
    placement = solve(world(user(), volume_claims=(BOUND,), volumes=(volume("pv", IN_B),), nodes=(node("in-a"),)))
    assert placement.new_nodes[0].requirements[ZONE].values == {"b"}
    here = solve(world(user(), volume_claims=(BOUND,), volumes=(volume(),), nodes=(node("in-a"),)))
    assert placed(here) == {"db": "in-a"}


@pytest.mark.parametrize(("zones", "got"), [("b", "b"), ("zc", "c")])
def test_a_volume_to_be_is_made_where_its_class_allows(zones: str, got: str) -> None:
    cluster = world(user(), volume_claims=(claim(storage_class="gp3"),), storage_classes=(storage("gp3", *zones),))
    assert solve(cluster).new_nodes[0].requirements[ZONE].values == {got}


def test_a_volume_where_no_node_can_be_is_named() -> None:
    cluster = world(user(), volume_claims=(BOUND,), volumes=(volume("pv", needs((ZONE, "In", ("z",)))),))
    assert placed(solve(cluster)) == {"db": "VolumeNotUsable"}
    assert "topology.kubernetes.io/zone In [z]" in solve(cluster).unschedulable[0].message


def test_volumes_in_different_zones_cannot_be_together() -> None:
    claims = (BOUND, claim("more", volume_name="pv2"))
    volumes = (volume("pv", IN_B), volume("pv2", needs((ZONE, "In", ("c",)))))
    placement = solve(world(user("db", "data", "more"), volume_claims=claims, volumes=volumes))
    assert placed(placement) == {"db": "VolumeNotUsable"}
    assert "exclude each other" in placement.unschedulable[0].message
    racks = (volume("pv", needs(("rack", "In", ("b",)))), volume("pv2", needs(("rack", "In", ("c",)))))
    bare = world(user("db", "data", "more"), volume_claims=claims, volumes=racks, nodes=(node("here"),))
    assert placed(solve(bare)) == {"db": "VolumeNotUsable"}
    agree = (volumes[0], volume("pv2", needs((ZONE, "In", ("c",))), IN_B))
    placement = solve(world(user("db", "data", "more"), volume_claims=claims, volumes=agree))
    assert placement.new_nodes[0].requirements[ZONE].values == {"b"}


def test_a_local_volume_does_not_bind_to_a_host() -> None:
    local = volume("pv", needs((HOSTNAME, "In", ("gone",))), is_local=True)
    assert placed(solve(world(user(), volume_claims=(BOUND,), volumes=(local,)))) == {"db": "default"}


def test_volumes_hold_for_pods_that_are_expected_on_a_node() -> None:
    cluster = world(user(), user("two"), volume_claims=(BOUND,), volumes=(volume("pv", IN_B),))
    assert sizes(solve(cluster)) == [2]


@pytest.mark.parametrize(
    ("claims", "others", "words"),
    [
        ((), {}, "does not exist: create it"),
        ((replace(BOUND, meta=replace(BOUND.meta, deleted_at=NOW)),), {}, "is being deleted"),
        ((claim(phase="Lost"),), {}, "has lost its volume"),
        ((BOUND,), {}, "PersistentVolume pv of claim data does not exist"),
        ((BOUND,), {"volumes": (volume(meta=Meta(name="pv", deleted_at=NOW)),)}, "pv of claim data is being deleted"),
        ((replace(BOUND, meta=claim().meta),), {"volumes": (volume(),)}, "is not bound yet"),
        ((claim(),), {}, "has no storageClassName"),
        ((claim(storage_class="gone"),), {}, "StorageClass gone"),
        (
            (claim(storage_class="gp3"),),
            {"storage_classes": (storage(binding_mode="Immediate"),)},
            "binds immediately and is not bound yet",
        ),
    ],
)
def test_a_volume_that_cannot_be_used_is_named(
    claims: tuple[VolumeClaim, ...], others: dict[str, Any], words: str
) -> None:
    placement = solve(world(user(), volume_claims=claims, **others))
    assert placed(placement) == {"db": "VolumeNotUsable"}
    assert words in placement.unschedulable[0].message


def _full(*, limit: int, driver: str = EBS, shares: bool = False) -> dict[str, str]:
    """Where a pod goes when another, with a volume of its own, runs on a node with a limit."""
    claims = (claim(storage_class="gp3"), claim("other", storage_class="gp3"))
    return placed(
        solve(
            world(
                user(),
                user("runs", "data" if shares else "other", on="here"),
                volume_claims=claims,
                storage_classes=(storage(provisioner=driver),),
                csi_nodes=(CSINode(meta=Meta(name="here"), limits=((EBS, limit),)),),
                nodes=(node("here"),),
            )
        )
    )


def test_a_node_takes_so_many_volumes_of_a_driver() -> None:
    assert _full(limit=2) == {"db": "here"}
    assert _full(limit=1) == {"db": "default"}
    assert _full(limit=1, driver="kubernetes.io/aws-ebs") == {"db": "default"}
    assert _full(limit=1, driver="efs.csi.aws.com") == {"db": "here"}
    assert _full(limit=1, shares=True) == {"db": "here"}


def test_volumes_of_pods_placed_just_now_count() -> None:
    claims = tuple(claim(name, volume_name=name) for name in ("v1", "v2"))
    volumes = (volume("v1"), volume("v2"), volume("v3", driver=""))
    users = (user("one", "v1"), user("two", "v2"))
    limits = (CSINode(meta=Meta(name="here"), limits=((EBS, 1),)),)
    cluster = world(*users, volume_claims=claims, volumes=volumes, csi_nodes=limits, nodes=(node("here"),))
    assert sorted(placed(solve(cluster)).values()) == ["default", "here"]


def test_volumes_of_running_pods_that_are_not_known_do_not_count() -> None:
    lost = (claim("v1", volume_name="gone"), claim("v2", storage_class="gone"))
    runs = user("runs", "v1", "v2", "v3", on="here")
    cluster = world(pod("p"), runs, volume_claims=lost, nodes=(node("here"),))
    assert placed(solve(cluster)) == {"p": "here"}
    assert placed(solve(cluster, excluded=frozenset(("here",)))) == {"p": "default", "runs": "default"}
