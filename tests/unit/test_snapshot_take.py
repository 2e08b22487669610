"""One look at the world."""

from datetime import timedelta

import msgspec
import pytest

from shared.errors import Expired, Fault, Gone, Throttled, Unreachable
from shared.model.catalogue import Catalogue, InstanceType, Offering, UnavailableOffering
from shared.model.cluster import LaunchGroup
from shared.model.ec2 import FleetRequest, Instance
from shared.model.requirements import Requirements
from shared.model.resources import resources
from shared.ports import World
from shared.snapshot.catalogue import encode_catalogue, key_of
from shared.snapshot.digest import snapshot_digest
from shared.snapshot.take import EVERYTHING, NODE_CLASSES, PLANNING, Wanted, retake, take
from sim.memory import MemoryBucket, MemoryTable
from tests.unit.snapshot_world import FACTS, NOW, Lists, Machines, Plane, a_pod, a_pool, named, world

PODS = Wanted(lists=("pods",))
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
    capacity=resources({"cpu": 2000}),
    overhead=resources({"cpu": 70}),
    offerings=(OFFERING,),
)


def catalogue(hours_ago: int) -> Catalogue:
    return Catalogue(region="us-east-1", instance_types=(TYPE,), priced_at=NOW - timedelta(hours=hours_ago))


def kept(*catalogues: Catalogue) -> MemoryBucket:
    bucket = MemoryBucket()
    for one in catalogues:
        bucket.put(key_of(one), encode_catalogue(one))
    return bucket


def test_all_pages_are_read() -> None:
    kube = Lists({"Pod": [a_pod(f"pod-{number}") for number in range(7)]}, per_page=3)
    assert [pod.meta.name for pod in take(world(kube), PODS).pods] == [f"pod-{number}" for number in range(7)]
    assert kube.limits == {500}


def test_machines_are_read_before_pods_and_ended_pods_not_at_all() -> None:
    kube = Lists({})
    take(world(kube))
    assert kube.asked[:3] == ["Node", "NodeClaim", "Pod"]
    assert len(kube.asked) == 13
    assert kube.selectors["Pod"] == "status.phase!=Succeeded,status.phase!=Failed"
    assert kube.selectors["Node"] == ""


def test_only_what_is_wanted_is_read() -> None:
    kube = Lists({"EC2NodeClass": [named("default")], "Pod": [a_pod("cart")]})
    cluster = take(world(kube, ec2=Machines(Unreachable("down")), eks=Plane(None)), NODE_CLASSES)
    assert kube.asked == ["EC2NodeClass"]
    assert [one.name for one in cluster.node_classes] == ["default"]
    assert (cluster.pods, cluster.instances, cluster.facts, cluster.catalogue) == ((), None, None, None)
    assert cluster.problems == ()


def test_a_list_that_expires_is_read_again_from_the_beginning() -> None:
    kube = Lists({"Pod": [a_pod(name) for name in "abcd"]}, per_page=2)
    kube.expirations["Pod"] = 1
    assert [pod.meta.name for pod in take(world(kube), PODS).pods] == list("abcd")


def test_a_list_that_expires_twice_is_a_fault() -> None:
    kube = Lists({"Pod": [a_pod(name) for name in "abcd"]}, per_page=2)
    kube.expirations["Pod"] = 2
    with pytest.raises(Expired):
        take(world(kube), PODS)


@pytest.mark.parametrize("fault", [Unreachable("down"), Throttled("later"), Gone("no such thing")])
def test_there_is_no_half_of_a_snapshot(fault: Fault) -> None:
    kube = Lists({})
    kube.faults["Pod"] = fault
    with pytest.raises(type(fault)):
        take(world(kube), PODS)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b'{"items": 1}', b"[]", b'"no"'])
def test_what_is_no_list_is_no_answer(body: bytes) -> None:
    kube = Lists({})
    kube.bodies["Node"] = body
    with pytest.raises(Unreachable, match="the list of Node"):
        take(world(kube), Wanted(lists=("nodes",)))


def test_a_missing_definition_is_named_and_the_rest_is_read() -> None:
    kube = Lists({"Pod": [a_pod("cart")]})
    kube.faults["NodePool"] = Gone("404")
    kube.faults["EC2NodeClass"] = Gone("404")
    cluster = take(world(kube, bucket=kept(catalogue(0))))
    assert [problem.name for problem in cluster.problems] == [
        "ec2nodeclasses.karpenter.k8s.aws",
        "nodepools.karpenter.sh",
    ]
    assert "nodepools.karpenter.sh is not installed" in cluster.problems[1].message
    assert cluster.node_pools == ()
    assert len(cluster.pods) == 1


def test_without_a_list_of_claims_no_instance_looks_like_nobodys() -> None:
    kube = Lists({})
    seeing = world(kube, ec2=Machines((AN_INSTANCE,)))
    assert take(seeing).instances == (AN_INSTANCE,)
    kube.faults["NodeClaim"] = Gone("404")
    assert take(seeing).instances is None
    assert take(seeing, PLANNING).instances is None


@pytest.mark.parametrize(
    ("blind", "place", "word"),
    [
        (world(ec2=Machines(Throttled("RequestLimitExceeded"))), "instances", "RequestLimitExceeded"),
        (world(eks=Plane(None)), "facts", "Gone"),
        (world(Lists({"EC2NodeClass": [named("default", spec={})]})), "catalogue", "run the catalog function"),
    ],
)
def test_what_aws_does_not_answer_is_none_and_named(blind: World, place: str, word: str) -> None:
    cluster = take(blind)
    assert getattr(cluster, place) is None
    assert any(word in problem.message for problem in cluster.problems)


def test_a_catalogue_that_would_be_for_nobody_is_not_missed() -> None:
    cluster = take(world())
    assert (cluster.catalogue, cluster.problems) == (None, ())


def test_a_bucket_that_cannot_be_read_is_named() -> None:
    class Shut(MemoryBucket):
        def keys(self, prefix: str) -> tuple[str, ...]:
            raise Unreachable(prefix)

    cluster = take(world(bucket=Shut()))
    assert cluster.catalogue is None
    assert [(problem.kind, problem.name) for problem in cluster.problems] == [("Catalogue", "catalogue/")]


def test_what_aws_answers_is_in_the_cluster() -> None:
    cluster = take(world(ec2=Machines((AN_INSTANCE,)), bucket=kept(catalogue(0))))
    assert cluster.instances == (AN_INSTANCE,)
    assert cluster.facts == FACTS
    assert cluster.catalogue is not None
    assert cluster.problems == ()
    assert cluster.taken_at == NOW


def test_the_newest_catalogue_counts() -> None:
    bucket = kept(catalogue(2), catalogue(1), catalogue(3))
    bucket.put("catalogue/readme.txt", b"zzz")
    found = take(world(bucket=bucket)).catalogue
    assert found is not None
    assert found.priced_at == NOW - timedelta(hours=1)


def test_a_catalogue_that_is_only_half_there_is_named_and_the_one_before_it_is_used() -> None:
    newest = catalogue(0)
    bucket = kept(newest, catalogue(1))
    bucket.put(key_of(newest), encode_catalogue(newest)[:-20])
    cluster = take(world(bucket=bucket))
    assert cluster.catalogue is not None
    assert cluster.catalogue.priced_at == NOW - timedelta(hours=1)
    assert [(problem.kind, problem.name) for problem in cluster.problems] == [("Catalogue", key_of(newest))]


def test_a_catalogue_that_is_removed_meanwhile_is_passed_over() -> None:
    class Moving(MemoryBucket):
        def keys(self, prefix: str) -> tuple[str, ...]:
            return (*super().keys(prefix), "catalogue/20991231T000000Z.json")

    bucket = Moving()
    bucket.put(key_of(catalogue(0)), encode_catalogue(catalogue(0)))
    cluster = take(world(bucket=bucket))
    assert cluster.catalogue is not None
    assert cluster.problems == ()


def refused(name: str, until: timedelta) -> UnavailableOffering:
    return UnavailableOffering(capacity_type="spot", instance_type=name, until=NOW + until)


def test_offerings_stay_unavailable_until_their_time_is_over() -> None:
    table = MemoryTable()
    soon, long_ago = refused("b", timedelta(minutes=3)), refused("a", -timedelta(minutes=3))
    sooner, other = refused("b", timedelta(minutes=2)), refused("c", timedelta(minutes=1))
    for name, some in (("first", (soon, long_ago)), ("second", (sooner, other))):
        table.write("unavailable", name, msgspec.json.encode(some).decode(), version=0)
    assert take(world(table=table)).unavailable == (soon, other)


def a_group(name: str) -> LaunchGroup:
    request = FleetRequest(
        client_token=name, capacity=1, capacity_type="spot", allocation_strategy="lowest-price", configs=()
    )
    return LaunchGroup(name=name, claims=(f"{name}-1",), request=request, templates=(), created_at=NOW)


def test_launch_groups_are_read_in_order_and_those_that_expired_are_over() -> None:
    table = MemoryTable()
    for name, lasts in (("b", 1), ("a", 1), ("c", -1)):
        body = msgspec.json.encode(a_group(name)).decode()
        table.write("launch-group", name, body, version=0, expires_at=NOW + timedelta(hours=lasts))
    assert take(world(table=table)).launch_groups == (a_group("a"), a_group("b"))


def test_a_row_that_cannot_be_read_is_named() -> None:
    table = MemoryTable()
    table.write("unavailable", "one", '{"until": 3}', version=0)
    table.write("launch-group", "two", "{", version=0)
    cluster = take(world(table=table, bucket=kept(catalogue(0))))
    assert [(problem.kind, problem.name) for problem in cluster.problems] == [
        ("launch-group", "two"),
        ("unavailable", "one"),
    ]


def test_a_second_look_reads_the_claims_anew_and_keeps_the_rest() -> None:
    ref = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    objects = {"Pod": [a_pod("cart")], "NodePool": [a_pool()], "NodeClaim": [named("one", spec={"nodeClassRef": ref})]}
    first = take(world(Lists(objects)), EVERYTHING)
    later = NOW + timedelta(seconds=9)
    changed = Lists({"NodeClaim": [named("two", spec={"nodeClassRef": ref})]})
    second = retake(world(changed, clock=lambda: later), first)
    assert [claim.name for claim in second.node_claims] == ["two"]
    assert changed.asked == ["NodeClaim"]
    assert (second.pods, second.node_pools, second.facts) == (first.pods, first.node_pools, first.facts)
    assert second.taken_at == later
    assert second.problems == first.problems


def test_a_digest_stands_for_all_that_is_seen() -> None:
    objects = {"NodePool": [a_pool(requirements=[{"key": "a", "operator": "In", "values": list("vwxyz")}])]}
    one, same = take(world(Lists(objects))), take(world(Lists(objects)))
    other = take(world(Lists({})))
    assert snapshot_digest(one) == snapshot_digest(same) != snapshot_digest(other)
