"""Tests of cluster snapshots."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from shared.errors import Expired, Fault, NotFound, Throttled, Unreachable
from shared.model.cloud_provider.instance_type import Catalog, InstanceType, Offering, UnavailableOffering
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.core.requirements import Requirements
from shared.model.core.resources import build_resources
from shared.model.ec2.fleet import FleetRequest
from shared.model.ec2.instance import Instance
from shared.ports.world import World
from shared.store.catalog import build_catalog_key
from shared.store.catalog_format import encode_catalog
from shared.take.snapshot import (
    FULL_REQUEST,
    PLANNING_REQUEST,
    SnapshotRequest,
    refresh_snapshot,
    take_snapshot,
    take_trigger_snapshot,
)
from sim.world.memory_ports import MemoryBucket, MemoryTable
from tests.support.snapshot_world import (
    FACTS,
    NOW,
    Lists,
    Machines,
    Plane,
    compute_snapshot_digest,
    make_node_pool,
    make_object,
    make_pod,
    make_world,
)

PODS_REQUEST = SnapshotRequest(lists=("pods",))
AN_INSTANCE = Instance(
    instance_id="i-1",
    instance_type="m5.large",
    zone="a",
    subnet_id="s",
    image_id="ami-1",
    state="running",
    launched_at=NOW,
    capacity_type="spot",
)
OFFERING = Offering(zone="a", capacity_type="spot", price_usd_per_hour=0.1, zone_id="az1")
TYPE = InstanceType(
    name="m5.large",
    requirements=Requirements(),
    capacity=build_resources({"cpu": 2000}),
    overhead=build_resources({"cpu": 70}),
    offerings=(OFFERING,),
)


def make_catalog(hours_ago: int) -> Catalog:
    return Catalog(region="us-east-1", instance_types=(TYPE,), priced_at=NOW - timedelta(hours=hours_ago))


def make_bucket(*catalogues: Catalog) -> MemoryBucket:
    bucket = MemoryBucket()
    for catalog in catalogues:
        bucket.put(build_catalog_key(catalog), encode_catalog(catalog))
    return bucket


def test_all_list_pages_are_read() -> None:
    kube = Lists({"Pod": [make_pod(f"pod-{number}") for number in range(7)]}, per_page=3)
    assert [pod.meta.name for pod in take_snapshot(make_world(kube), PODS_REQUEST).pods] == [
        f"pod-{number}" for number in range(7)
    ]
    assert kube.limits == {500}


def test_nodes_are_listed_before_pods_and_ended_pods_are_excluded() -> None:
    kube = Lists({})
    take_snapshot(make_world(kube))
    assert kube.requested_kinds[:3] == ["Node", "NodeClaim", "Pod"]
    assert len(kube.requested_kinds) == 13
    assert kube.selectors["Pod"] == "status.phase!=Succeeded,status.phase!=Failed"
    assert kube.selectors["Node"] == ""


def test_only_requested_kinds_are_listed() -> None:
    kube = Lists({"EC2NodeClass": [make_object("default")], "Pod": [make_pod("cart")]})
    request = SnapshotRequest(lists=("node_classes",))
    cluster = take_snapshot(make_world(kube, ec2=Machines(Unreachable("down")), eks=Plane(None)), request)
    assert kube.requested_kinds == ["EC2NodeClass"]
    assert [node_class.name for node_class in cluster.node_classes] == ["default"]
    assert (cluster.pods, cluster.instances, cluster.facts, cluster.catalog) == ((), None, None, None)
    assert cluster.problems == ()


def test_expired_list_is_read_again_from_the_beginning() -> None:
    kube = Lists({"Pod": [make_pod(name) for name in "abcd"]}, per_page=2)
    kube.expirations["Pod"] = 1
    assert [pod.meta.name for pod in take_snapshot(make_world(kube), PODS_REQUEST).pods] == list("abcd")


def test_list_that_expires_twice_raises_expired() -> None:
    kube = Lists({"Pod": [make_pod(name) for name in "abcd"]}, per_page=2)
    kube.expirations["Pod"] = 2
    with pytest.raises(Expired):
        take_snapshot(make_world(kube), PODS_REQUEST)


def make_ready_node_class(status: str = "True") -> dict[str, Any]:
    return make_object("default", spec={}, status={"conditions": [{"type": "Ready", "status": status}]})


@pytest.mark.parametrize("fault", [Unreachable("down"), Throttled("later"), NotFound("no such thing")])
def test_failed_list_fails_the_whole_snapshot(fault: Fault) -> None:
    kube = Lists({})
    kube.faults["Pod"] = fault
    with pytest.raises(type(fault)):
        take_snapshot(make_world(kube), PODS_REQUEST)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b'{"items": 1}', b"[]", b'"no"'])
def test_invalid_list_response_raises_unreachable(body: bytes) -> None:
    kube = Lists({})
    kube.bodies["Node"] = body
    with pytest.raises(Unreachable, match="the list of Node"):
        take_snapshot(make_world(kube), SnapshotRequest(lists=("nodes",)))


def test_missing_crd_is_reported_and_other_kinds_are_read() -> None:
    kube = Lists({"Pod": [make_pod("cart")]})
    kube.faults["NodePool"] = NotFound("404")
    kube.faults["EC2NodeClass"] = NotFound("404")
    cluster = take_snapshot(make_world(kube, bucket=make_bucket(make_catalog(0))))
    assert [problem.name for problem in cluster.problems] == [
        "ec2nodeclasses.karpenter.k8s.aws",
        "nodepools.karpenter.sh",
    ]
    assert "nodepools.karpenter.sh is not installed" in cluster.problems[1].message
    assert cluster.node_pools == ()
    assert len(cluster.pods) == 1


def test_instances_are_none_if_nodeclaims_cannot_be_listed() -> None:
    kube = Lists({})
    seeing = make_world(kube, ec2=Machines((AN_INSTANCE,)))
    assert take_snapshot(seeing).instances == (AN_INSTANCE,)
    kube.faults["NodeClaim"] = NotFound("404")
    assert take_snapshot(seeing).instances is None
    assert take_snapshot(seeing, PLANNING_REQUEST).instances is None


@pytest.mark.parametrize(
    ("blind", "place", "word"),
    [
        (make_world(ec2=Machines(Throttled("RequestLimitExceeded"))), "instances", "RequestLimitExceeded"),
        (make_world(eks=Plane(None)), "facts", "NotFound"),
        (
            make_world(Lists({"EC2NodeClass": [make_ready_node_class()]})),
            "catalog",
            "invoke the function catalog",
        ),
    ],
)
def test_missing_aws_data_is_none_and_reported(blind: World, place: str, word: str) -> None:
    cluster = take_snapshot(blind)
    assert getattr(cluster, place) is None
    assert any(word in problem.message for problem in cluster.problems)


def test_missing_catalog_is_not_reported_without_node_classes() -> None:
    cluster = take_snapshot(make_world())
    assert (cluster.catalog, cluster.problems) == (None, ())


def test_unreadable_bucket_is_reported() -> None:
    class Shut(MemoryBucket):
        def list_keys(self, prefix: str) -> tuple[str, ...]:
            raise Unreachable(prefix)

    cluster = take_snapshot(make_world(bucket=Shut()))
    assert cluster.catalog is None
    assert [(problem.kind, problem.name) for problem in cluster.problems] == [("Catalogue", "catalogue/")]


def test_snapshot_contains_instances_cluster_facts_and_catalog() -> None:
    cluster = take_snapshot(make_world(ec2=Machines((AN_INSTANCE,)), bucket=make_bucket(make_catalog(0))))
    assert cluster.instances == (AN_INSTANCE,)
    assert cluster.facts == FACTS
    assert cluster.catalog is not None
    assert cluster.problems == ()
    assert cluster.taken_at == NOW


def test_newest_catalog_is_used() -> None:
    bucket = make_bucket(make_catalog(2), make_catalog(1), make_catalog(3))
    bucket.put("catalogue/readme.txt", b"zzz")
    catalog = take_snapshot(make_world(bucket=bucket)).catalog
    assert catalog is not None
    assert catalog.priced_at == NOW - timedelta(hours=1)


def test_truncated_catalog_is_reported_and_the_previous_one_is_used() -> None:
    newest = make_catalog(0)
    bucket = make_bucket(newest, make_catalog(1))
    bucket.put(build_catalog_key(newest), encode_catalog(newest)[:-20])
    cluster = take_snapshot(make_world(bucket=bucket))
    assert cluster.catalog is not None
    assert cluster.catalog.priced_at == NOW - timedelta(hours=1)
    assert [(problem.kind, problem.name) for problem in cluster.problems] == [("Catalogue", build_catalog_key(newest))]


def test_catalog_deleted_while_listing_is_skipped() -> None:
    class Moving(MemoryBucket):
        def list_keys(self, prefix: str) -> tuple[str, ...]:
            return (*super().list_keys(prefix), "catalogue/20991231T000000Z.json")

    bucket = Moving()
    bucket.put(build_catalog_key(make_catalog(0)), encode_catalog(make_catalog(0)))
    cluster = take_snapshot(make_world(bucket=bucket))
    assert cluster.catalog is not None
    assert cluster.problems == ()


def make_unavailable_offering(name: str, until: timedelta) -> UnavailableOffering:
    return UnavailableOffering(capacity_type="spot", instance_type=name, until=NOW + until)


def test_unavailable_offerings_last_until_they_expire() -> None:
    table = MemoryTable()
    soon, long_ago = (
        make_unavailable_offering("b", timedelta(minutes=3)),
        make_unavailable_offering("a", -timedelta(minutes=3)),
    )
    sooner, other_offering = (
        make_unavailable_offering("b", timedelta(minutes=2)),
        make_unavailable_offering("c", timedelta(minutes=1)),
    )
    for name, offerings in (("first", (soon, long_ago)), ("second", (sooner, other_offering))):
        table.write("unavailable", name, msgspec.json.encode(offerings).decode(), version=0)
    assert take_snapshot(make_world(table=table)).unavailable == (soon, other_offering)


def make_launch_group(name: str) -> LaunchGroup:
    request = FleetRequest(
        client_token=name, capacity=1, capacity_type="spot", allocation_strategy="lowest-price", configs=()
    )
    return LaunchGroup(name=name, claims=(f"{name}-1",), request=request, templates=(), created_at=NOW)


def test_launch_groups_are_sorted_and_expired_groups_are_ignored() -> None:
    table = MemoryTable()
    for name, lasts in (("b", 1), ("a", 1), ("c", -1)):
        body = msgspec.json.encode(make_launch_group(name)).decode()
        table.write("launch-group", name, body, version=0, expires_at=NOW + timedelta(hours=lasts))
    assert take_snapshot(make_world(table=table)).launch_groups == (make_launch_group("a"), make_launch_group("b"))


def test_unreadable_row_is_reported() -> None:
    table = MemoryTable()
    table.write("unavailable", "one", '{"until": 3}', version=0)
    table.write("launch-group", "two", "{", version=0)
    cluster = take_snapshot(make_world(table=table, bucket=make_bucket(make_catalog(0))))
    assert [(problem.kind, problem.name) for problem in cluster.problems] == [
        ("launch-group", "two"),
        ("unavailable", "one"),
    ]


def test_refresh_lists_only_nodeclaims_and_keeps_the_rest() -> None:
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    objects = {
        "Pod": [make_pod("cart")],
        "NodePool": [make_node_pool()],
        "NodeClaim": [make_object("one", spec={"nodeClassRef": ref})],
    }
    first = take_snapshot(make_world(Lists(objects)), FULL_REQUEST)
    later = NOW + timedelta(seconds=9)
    changed = Lists({"NodeClaim": [make_object("two", spec={"nodeClassRef": ref})]})
    second = refresh_snapshot(make_world(changed, clock=lambda: later), first)
    assert [claim.name for claim in second.node_claims] == ["two"]
    assert changed.requested_kinds == ["NodeClaim"]
    assert (second.pods, second.node_pools, second.facts) == (first.pods, first.node_pools, first.facts)
    assert second.taken_at == later
    assert second.problems == first.problems


def test_snapshot_digest_depends_on_all_listed_objects() -> None:
    objects = {"NodePool": [make_node_pool(requirements=[{"key": "a", "operator": "In", "values": list("vwxyz")}])]}
    first_snapshot, second_snapshot = (
        take_snapshot(make_world(Lists(objects))),
        take_snapshot(make_world(Lists(objects))),
    )
    empty_snapshot = take_snapshot(make_world(Lists({})))
    assert (
        compute_snapshot_digest(first_snapshot)
        == compute_snapshot_digest(second_snapshot)
        != compute_snapshot_digest(empty_snapshot)
    )


def test_catalog_is_not_missed_before_the_first_node_class_is_ready() -> None:
    cluster = take_snapshot(make_world(Lists({"EC2NodeClass": [make_ready_node_class("False")]})))
    assert cluster.catalog is None
    assert not [problem for problem in cluster.problems if problem.kind == "Catalogue"]


def test_schedules_are_applied_at_the_time_of_each_read() -> None:
    start = NOW.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    pool = make_node_pool()
    schedule = f"peak: 0 {start.hour} * * * 1h limits.cpu=7"
    pool["metadata"]["annotations"] = {"joiner.dev/schedule": schedule}
    now = NOW
    world = msgspec.structs.replace(make_world(Lists({"NodePool": [pool]})), clock=lambda: now)
    request = SnapshotRequest(lists=("node_pools",))
    before = take_snapshot(world, request)
    now = start
    snapshots = (take_snapshot(world, request), refresh_snapshot(world, before, SnapshotRequest(lists=())))
    limits = [snapshot.node_pools[0].limits for snapshot in (before, *snapshots)]
    assert [limit and limit["cpu"] for limit in limits] == [None, 7000, 7000]


def test_trigger_snapshot_has_the_replicas_of_the_schedule() -> None:
    pool = make_node_pool()
    pool["metadata"]["annotations"] = {"joiner.dev/schedule": "always: @hourly 1h replicas=4"}
    pool["spec"]["replicas"] = 0
    cluster = take_trigger_snapshot(make_world(Lists({"NodePool": [pool]})), ("node_pools",))
    assert cluster.node_pools[0].replicas == 4
