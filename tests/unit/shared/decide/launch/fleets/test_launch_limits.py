"""Limit reservations of a NodePool: which claims hold them, for how long, and how much is left."""

from datetime import timedelta

import msgspec
import pytest

from shared.decide.launch.fleets.launch_limits import (
    MAX_LIST_AGE,
    RESERVATION_TTL,
    build_limit_accounts,
    compute_maximum,
)
from shared.decide.launch.fleets.launch_planning import LaunchPlan, LaunchPolicy
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.cloud_provider.limit_reservation import LimitReservation, LimitReservations
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import ObjectMeta
from shared.model.core.resources import Resources, parse_resources
from shared.model.ec2.fleet import FleetInstance, FleetResult
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.karpenter.node_pool import NodePool
from shared.state.cluster_state import ClusterState
from tests.support.launch_cases import NOW, make_claim, make_cluster
from tests.support.snapshot_decisions import plan_launches

CAPACITY_PER_CLAIM = parse_resources({"cpu": "4", "memory": "16Gi"})


def make_limited_pool(limits: dict[str, str] | None) -> NodePool:
    amounts = parse_resources(limits) if limits is not None else None
    return NodePool(meta=ObjectMeta(name="default"), node_class=NodeClassRef(name="default"), limits=amounts)


def build_limited_cluster(*claims: NodeClaim, limits: dict[str, str] | None, **fields: object) -> ClusterSnapshot:
    return make_cluster(*claims, node_pools=(make_limited_pool(limits),), **fields)


def make_limit_reservation(
    *names: str, group: str = "g", capacity: Resources = CAPACITY_PER_CLAIM, after: timedelta = RESERVATION_TTL
) -> LimitReservation:
    return LimitReservation(group=group, claims=names, max_capacity_per_claim=capacity, until=NOW + after)


def build_pool_reservations(*holds: LimitReservation) -> LimitReservations:
    return LimitReservations(pool="default", version=3, holds=holds)


def build_launch_group(*names: str, instances: int | None = None, name: str = "g") -> LaunchGroup:
    [launch] = plan_launches(make_cluster(*map(make_claim, names))).launches
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


def list_launched_claims(plan: LaunchPlan) -> list[str]:
    return sorted(name for launch in plan.launches for name in launch.group.claims)


def count_room(cluster_: ClusterSnapshot, *holds: LimitReservation) -> int:
    """Return how many more claims of 4 vCPUs fit within the limits."""
    claims = [make_claim(f"new-{number}") for number in range(9)]
    return build_limit_accounts(ClusterState(cluster_), [build_pool_reservations(*holds)])[
        "default"
    ].count_within_limits(claims, CAPACITY_PER_CLAIM)[0]


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
def test_node_claims_are_counted_within_the_node_pool_limits(limits: dict[str, str], count: int, short: str) -> None:
    claims = [make_claim(name) for name in "abcde"]
    zero = {name: 0 for name in limits if limits[name] == "0"}
    limited_pool = msgspec.structs.replace(
        make_limited_pool(limits),
        limits=Resources(amounts=tuple(sorted((dict(parse_resources(limits).amounts) | zero).items()))),
    )
    account = build_limit_accounts(ClusterState(make_cluster(node_pools=(limited_pool,))), [])["default"]
    assert account.count_within_limits(claims, CAPACITY_PER_CLAIM)[:2] == (count, short)


def test_node_pool_without_limits_has_no_limit_account() -> None:
    assert build_limit_accounts(ClusterState(build_limited_cluster(limits=None)), []) == {}


@pytest.mark.parametrize(
    ("claims", "groups", "holds", "expected_room"),
    [
        ((), (), (), 4),
        ((make_claim("a"),), (), (make_limit_reservation("a"),), 3),
        ((), (), (make_limit_reservation("a"),), 3),
        ((), (), (make_limit_reservation("a", after=timedelta()),), 4),
        (
            (make_claim("a", provider_id="aws:///z/i-0", capacity=CAPACITY_PER_CLAIM),),
            (),
            (make_limit_reservation("a"),),
            3,
        ),
        ((make_claim("a"),), (build_launch_group("a", instances=1),), (make_limit_reservation("a"),), 3),
        ((make_claim("a"),), (build_launch_group("a", instances=0),), (make_limit_reservation("a"),), 4),
        ((), (build_launch_group("a", instances=1),), (make_limit_reservation("a"),), 3),
        (
            (),
            (build_launch_group("a", instances=1),),
            (make_limit_reservation("a", after=RESERVATION_TTL - MAX_LIST_AGE),),
            4,
        ),
        ((), (build_launch_group("a"),), (make_limit_reservation("a"),), 3),
        ((make_claim("a"), make_claim("b")), (), (make_limit_reservation("a", "b"),), 2),
        ((make_claim("a"),), (), (make_limit_reservation("a", group="g"), make_limit_reservation("a", group="h")), 3),
    ],
    ids=[
        "no reservations",
        "unlaunched NodeClaim",
        "deleted NodeClaim without a launch result",
        "deleted NodeClaim after the reservation expired",
        "launched NodeClaim counts once",
        "fleet result not yet written to the NodeClaim",
        "fleet result without an instance",
        "launched NodeClaim missing from a possibly stale list",
        "orphaned instance after the list is current",
        "deleted NodeClaim with an open launch",
        "two NodeClaims",
        "two reservations of one NodeClaim count once",
    ],
)
def test_reserved_limit_capacity_is_not_given_to_other_node_claims(
    claims: tuple[NodeClaim, ...],
    groups: tuple[LaunchGroup, ...],
    holds: tuple[LimitReservation, ...],
    expected_room: int,
) -> None:
    assert (
        count_room(build_limited_cluster(*claims, limits={"cpu": "16"}, launch_groups=groups), *holds) == expected_room
    )


def test_launch_without_a_reservation_counts_with_its_largest_instance_type() -> None:
    assert (
        count_room(
            build_limited_cluster(make_claim("a"), limits={"cpu": "16"}, launch_groups=(build_launch_group("a"),))
        )
        == 3
    )


def test_new_limit_reservation_replaces_the_previous_one_of_the_node_claim() -> None:
    account = build_limit_accounts(
        ClusterState(build_limited_cluster(make_claim("a"), limits={"cpu": "4"})),
        [build_pool_reservations(make_limit_reservation("a"))],
    )["default"]
    assert account.count_within_limits([make_claim("a")], CAPACITY_PER_CLAIM) == (1, "", False)


def test_waiting_for_limits_is_useful_only_when_reservations_belong_to_deleted_node_claims() -> None:
    claims = [make_claim("b")]
    account_without_claim = build_limit_accounts(
        ClusterState(build_limited_cluster(limits={"cpu": "4"})), [build_pool_reservations(make_limit_reservation("a"))]
    )["default"]
    account_with_claim = build_limit_accounts(
        ClusterState(build_limited_cluster(make_claim("a"), limits={"cpu": "4"})),
        [build_pool_reservations(make_limit_reservation("a"))],
    )["default"]
    assert account_without_claim.count_within_limits(claims, CAPACITY_PER_CLAIM) == (0, "cpu", True)
    assert account_with_claim.count_within_limits(claims, CAPACITY_PER_CLAIM) == (0, "cpu", False)


def test_plan_launches_node_claims_within_the_limit_and_reserves_it() -> None:
    claims = [make_claim(name) for name in "abc"]
    plan = plan_launches(
        build_limited_cluster(*claims, limits={"cpu": "8"}),
        LaunchPolicy(limit_reservations=(build_pool_reservations(make_limit_reservation("x", after=timedelta())),)),
    )
    assert list_launched_claims(plan) == ["a", "b"]
    [unlaunchable_claim] = plan.unlaunchable
    assert (unlaunchable_claim.claim.name, unlaunchable_claim.reason, unlaunchable_claim.final) == (
        "c",
        "LimitExceeded",
        True,
    )
    assert unlaunchable_claim.message == "NodePool default would exceed its limit of cpu"
    [limit_reservations] = plan.limit_reservations
    assert (limit_reservations.pool, limit_reservations.version) == ("default", 3)
    [promised] = limit_reservations.holds
    assert promised.group == plan.launches[0].group.name
    assert promised.claims == ("a", "b")
    assert promised.max_capacity_per_claim["cpu"] == 4000


def test_node_claims_of_different_launch_groups_share_one_limit() -> None:
    claims = [make_claim("a"), make_claim("b", cpu="3"), make_claim("c", cpu="3")]
    plan = plan_launches(build_limited_cluster(*claims, limits={"cpu": "8"}), LaunchPolicy())
    assert list_launched_claims(plan) == ["a", "b"]
    [limit_reservations] = plan.limit_reservations
    assert len(limit_reservations.holds) == 2


def test_no_limit_reservation_is_written_without_launches() -> None:
    plan = plan_launches(
        build_limited_cluster(make_claim("a"), limits={"cpu": "1"}),
        LaunchPolicy(limit_reservations=(build_pool_reservations(make_limit_reservation("b")),)),
    )
    assert (plan.launches, plan.limit_reservations) == ((), ())


def test_maximum_of_resources_is_computed_per_resource() -> None:
    amounts = (parse_resources({"cpu": "4", "memory": "1Gi"}), parse_resources({"cpu": "2", "memory": "8Gi"}))
    assert compute_maximum(amounts) == parse_resources({"cpu": "4", "memory": "8Gi"})
