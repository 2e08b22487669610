"""What a NodePool with limits has promised: to whom, for how long, and what is left."""

from datetime import timedelta

import msgspec
import pytest

from shared.launch.groups import LaunchPlan, Terms, plan_launches
from shared.launch.ledger import HELD_FOR, UNSEEN_FOR, Book, Hold, accounts, largest
from shared.model.cluster import Cluster, LaunchGroup
from shared.model.ec2 import FleetInstance, FleetResult
from shared.model.nodepools import NodePool
from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.objects import Meta
from shared.model.resources import Resources, parse_resources
from tests.unit.launch_cases import NOW, claim, cluster

EACH = parse_resources({"cpu": "4", "memory": "16Gi"})


def pool(limits: dict[str, str] | None) -> NodePool:
    amounts = parse_resources(limits) if limits is not None else None
    return NodePool(meta=Meta(name="default"), node_class=NodeClassRef(name="default"), limits=amounts)


def world(*claims: NodeClaim, limits: dict[str, str] | None, **more: object) -> Cluster:
    return cluster(*claims, node_pools=(pool(limits),), **more)


def hold(*names: str, group: str = "g", each: Resources = EACH, after: timedelta = HELD_FOR) -> Hold:
    return Hold(group=group, claims=names, each=each, until=NOW + after)


def book(*holds: Hold) -> Book:
    return Book(pool="default", version=3, holds=holds)


def group(*names: str, instances: int | None = None, name: str = "g") -> LaunchGroup:
    [launch] = plan_launches(cluster(*map(claim, names))).launches
    started = tuple(
        FleetInstance(
            instance_id=f"i-{number}",
            instance_type="m5.xlarge",
            zone="us-east-1a",
            subnet_id="subnet-a",
            image_id="ami-amd64",
            capacity_type="spot",
        )
        for number in range(instances or 0)
    )
    result = FleetResult(fleet_id="f", instances=started) if instances is not None else None
    return msgspec.structs.replace(launch.group, name=name, result=result)


def launched(plan: LaunchPlan) -> list[str]:
    return sorted(name for one in plan.launches for name in one.group.claims)


def room(cluster_: Cluster, *holds: Hold) -> int:
    """Answer how many more claims of 4 vCPUs have room."""
    some = [claim(f"new-{number}") for number in range(9)]
    return accounts(cluster_, [book(*holds)])["default"].take(some, EACH)[0]


@pytest.mark.parametrize(
    ("limits", "count", "short"),
    [
        ({"cpu": "12"}, 3, "cpu"),
        ({"cpu": "15", "memory": "32Gi"}, 2, "memory"),
        ({"nodes": "1"}, 1, "nodes"),
        ({"nodes": "0"}, 0, "nodes"),
        ({"nvidia.com/gpu": "0"}, 5, ""),
        ({"cpu": "3"}, 0, "cpu"),
    ],
)
def test_so_many_claims_have_room(limits: dict[str, str], count: int, short: str) -> None:
    some = [claim(name) for name in "abcde"]
    zero = {name: 0 for name in limits if limits[name] == "0"}
    one = msgspec.structs.replace(
        pool(limits), limits=Resources(amounts=tuple(sorted((dict(parse_resources(limits).amounts) | zero).items())))
    )
    account = accounts(cluster(node_pools=(one,)), [])["default"]
    assert account.take(some, EACH)[:2] == (count, short)


def test_a_pool_without_limits_has_no_account() -> None:
    assert accounts(world(limits=None), []) == {}


@pytest.mark.parametrize(
    ("claims", "groups", "holds", "left"),
    [
        ((), (), (), 4),
        ((claim("a"),), (), (hold("a"),), 3),
        ((), (), (hold("a"),), 3),
        ((), (), (hold("a", after=timedelta()),), 4),
        ((claim("a", provider_id="aws:///z/i-0", capacity=EACH),), (), (hold("a"),), 3),
        ((claim("a"),), (group("a", instances=1),), (hold("a"),), 3),
        ((claim("a"),), (group("a", instances=0),), (hold("a"),), 4),
        ((), (group("a", instances=1),), (hold("a"),), 3),
        ((), (group("a", instances=1),), (hold("a", after=HELD_FOR - UNSEEN_FOR),), 4),
        ((), (group("a"),), (hold("a"),), 3),
        ((claim("a"), claim("b")), (), (hold("a", "b"),), 2),
        ((claim("a"),), (), (hold("a", group="g"), hold("a", group="h")), 3),
    ],
    ids=[
        "nothing is promised",
        "a claim without instance",
        "a claim that is gone, nobody knows what became of its launch",
        "the same, later",
        "a claim with its instance counts with that, once",
        "EC2 has answered, the claim was not told yet",
        "EC2 had nothing for it",
        "it has its instance, and may be younger than the list of claims",
        "the same, later: its instance has nobody and will be ended",
        "a claim that is gone while its launch is open",
        "two claims",
        "two promises to one claim are one",
    ],
)
def test_what_is_promised_is_not_promised_again(
    claims: tuple[NodeClaim, ...], groups: tuple[LaunchGroup, ...], holds: tuple[Hold, ...], left: int
) -> None:
    assert room(world(*claims, limits={"cpu": "16"}, launch_groups=groups), *holds) == left


def test_a_launch_that_the_book_does_not_speak_of_counts_with_the_largest_it_may_become() -> None:
    assert room(world(claim("a"), limits={"cpu": "16"}, launch_groups=(group("a"),))) == 3


def test_whoever_gets_a_new_promise_loses_the_old_one() -> None:
    account = accounts(world(claim("a"), limits={"cpu": "4"}), [book(hold("a"))])["default"]
    assert account.take([claim("a")], EACH) == (1, "", False)


def test_waiting_helps_only_where_the_room_is_held_for_claims_that_are_gone() -> None:
    asked = [claim("b")]
    gone = accounts(world(limits={"cpu": "4"}), [book(hold("a"))])["default"]
    there = accounts(world(claim("a"), limits={"cpu": "4"}), [book(hold("a"))])["default"]
    assert gone.take(asked, EACH) == (0, "cpu", True)
    assert there.take(asked, EACH) == (0, "cpu", False)


def test_a_plan_launches_as_many_as_the_limit_has_room_for_and_writes_that_down() -> None:
    some = [claim(name) for name in "abc"]
    plan = plan_launches(world(*some, limits={"cpu": "8"}), Terms(books=(book(hold("x", after=timedelta())),)))
    assert launched(plan) == ["a", "b"]
    [one] = plan.unlaunchable
    assert (one.claim.name, one.reason, one.final) == ("c", "LimitExceeded", True)
    assert one.message == "NodePool default would exceed its limit of cpu"
    [written] = plan.books
    assert (written.pool, written.version) == ("default", 3)
    [promised] = written.holds
    assert promised.group == plan.launches[0].group.name
    assert promised.claims == ("a", "b")
    assert promised.each["cpu"] == 4000


def test_two_kinds_of_claims_share_one_limit() -> None:
    some = [claim("a"), claim("b", cpu="3"), claim("c", cpu="3")]
    plan = plan_launches(world(*some, limits={"cpu": "8"}), Terms())
    assert launched(plan) == ["a", "b"]
    [written] = plan.books
    assert len(written.holds) == 2


def test_nothing_is_written_down_where_nothing_is_launched() -> None:
    plan = plan_launches(world(claim("a"), limits={"cpu": "1"}), Terms(books=(book(hold("b")),)))
    assert (plan.launches, plan.books) == ((), ())


def test_the_largest_is_taken_of_each_resource() -> None:
    some = (parse_resources({"cpu": "4", "memory": "1Gi"}), parse_resources({"cpu": "2", "memory": "8Gi"}))
    assert largest(some) == parse_resources({"cpu": "4", "memory": "8Gi"})
