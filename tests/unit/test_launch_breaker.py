"""The launch breaker: what may be started in a minute and in an hour, who is held back, and for how long."""

from datetime import timedelta

import msgspec
import pytest

from shared.launch.breaker import Breaker, Fuses, started
from shared.launch.groups import LaunchPlan, Terms, plan_launches
from shared.launch.outcome import BREAKER_OPEN, blown, given_up
from shared.model.action import PatchStatus, PublishEvent
from shared.model.cluster import LaunchGroup
from shared.model.ec2 import FleetInstance, FleetResult
from tests.unit.launch_cases import NOW, claim, cluster

OPEN = Fuses(nodes_per_minute=0, usd_per_hour=0, pool_nodes_per_minute=0, pool_usd_per_hour=0)
CHEAPEST = 0.03
"""Of the spot offerings that `claim` may be launched with: m5.large in us-east-1a."""


def fuses(**some: float) -> Fuses:
    return msgspec.structs.replace(OPEN, **some)


def group(count: int, *, instances: int | None = None) -> LaunchGroup:
    [launch] = plan_launches(cluster(*(claim(f"c{number}") for number in range(count)))).launches
    given = tuple(
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
    result = FleetResult(fleet_id="f", instances=given) if instances is not None else None
    return msgspec.structs.replace(launch.group, result=result)


def planned(count: int, some: Fuses, *groups: LaunchGroup) -> LaunchPlan:
    claims = [claim(f"n{number:03}") for number in range(count)]
    return plan_launches(cluster(*claims, launch_groups=groups), Terms(fuses=some))


def number_launched(plan: LaunchPlan) -> int:
    return sum(one.group.request.capacity for one in plan.launches)


def test_a_launch_counts_with_what_ec2_chose_or_may_choose() -> None:
    for one, nodes, usd in (
        (group(3), 3, 3 * CHEAPEST),
        (group(3, instances=2), 2, 2 * 0.06),
        (group(3, instances=0), 0, 0.0),
    ):
        count, price = started(one)
        assert (count, round(price, 9)) == (nodes, round(usd, 9))


@pytest.mark.parametrize(
    ("some", "count", "fuse"),
    [
        (OPEN, 9, None),
        (fuses(nodes_per_minute=9), 9, None),
        (fuses(nodes_per_minute=4), 4, "nodes_per_minute"),
        (fuses(pool_nodes_per_minute=5), 5, "pool_nodes_per_minute"),
        (fuses(usd_per_hour=0.07), 2, "usd_per_hour"),
        (fuses(pool_usd_per_hour=0.09), 3, "pool_usd_per_hour"),
        (fuses(nodes_per_minute=4, pool_usd_per_hour=0.07), 2, "pool_usd_per_hour"),
    ],
)
def test_a_fuse_lets_so_many_through(some: Fuses, count: int, fuse: str | None) -> None:
    plan = planned(9, some)
    assert number_launched(plan) == count
    assert [one.reason for one in plan.unlaunchable] == [BREAKER_OPEN] * (9 - count)
    assert (fuse in [trip.fuse for trip in plan.trips]) is (fuse is not None)


@pytest.mark.parametrize(
    ("age", "some", "count"),
    [
        (59, fuses(nodes_per_minute=4), 1),
        (60, fuses(nodes_per_minute=4), 2),
        (3599, fuses(usd_per_hour=4 * CHEAPEST), 1),
        (3600, fuses(usd_per_hour=4 * CHEAPEST), 2),
    ],
)
def test_it_closes_by_itself_when_launches_leave_the_window(age: int, some: Fuses, count: int) -> None:
    before = msgspec.structs.replace(group(3), created_at=NOW - timedelta(seconds=age))
    assert number_launched(planned(2, some, before)) == count


def test_one_pool_does_not_blow_anothers_fuse() -> None:
    breaker = Breaker((), NOW, fuses(pool_nodes_per_minute=2))
    assert breaker.take("a", 3, 1.0) == (2, breaker.trips["a", "pool_nodes_per_minute"].message)
    assert breaker.take("b", 2, 1.0) == (2, "")


def test_what_costs_nothing_blows_no_fuse_of_money() -> None:
    assert Breaker((), NOW, fuses(usd_per_hour=1)).take("a", 9, 0.0) == (9, "")


def test_a_pool_is_told_once_and_each_claim_once() -> None:
    plan = planned(3, fuses(pool_nodes_per_minute=1))
    [trip] = plan.trips
    [event] = blown(trip, cluster())
    assert isinstance(event, PublishEvent)
    assert (event.kind, event.name, event.type, event.reason) == ("NodePool", "default", "Warning", BREAKER_OPEN)
    assert "raise joiner:launch-pool-nodes-per-minute" in event.message
    told = [action for one in plan.unlaunchable for action in given_up(one, NOW)]
    assert [type(one) for one in told] == [PatchStatus, PatchStatus]


def test_the_defaults_let_a_thousand_nodes_through_and_not_ten_thousand_dollars() -> None:
    assert Breaker((), NOW, Fuses()).take("a", 1000, 0.19)[0] == 1000
    assert Breaker((), NOW, Fuses()).take("a", 1000, 98.0)[0] == 10
