"""The launch circuit breaker: limits per minute and per hour, which claims are held back, and for how long."""

from datetime import timedelta

import msgspec
import pytest

from shared.cycles.setup.options_from_settings import build_launch_policy
from shared.decide.launch.fleets.circuit_breaker import (
    EARLY_ENDS_WINDOW,
    CircuitBreaker,
    CircuitBreakerLimits,
    count_started,
)
from shared.decide.launch.fleets.fleet_result import BREAKER_OPEN_REASON, report_breaker_trip, report_unlaunchable
from shared.decide.launch.fleets.launch_planning import LaunchPlan, LaunchPolicy
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.core.labels import EARLY_ENDS
from shared.model.core.metadata import ObjectMeta
from shared.model.decisions.action import PatchStatus, PublishEvent
from shared.model.ec2.fleet import FleetInstance, FleetResult
from shared.model.karpenter.node_claim import NodeClassRef
from shared.model.karpenter.node_pool import NodePool
from shared.settings import Settings
from tests.support.launch_cases import NOW, make_claim, make_cluster
from tests.support.snapshot_decisions import plan_launches

NO_LIMITS = CircuitBreakerLimits()
CHEAPEST_USD_PER_HOUR = 0.03
"""USD per hour of the cheapest spot offering that `claim` may be launched with: m5.large in us-east-1a."""


def make_limits(**limits: float) -> CircuitBreakerLimits:
    return msgspec.structs.replace(NO_LIMITS, **limits)


def build_launch_group(count: int, *, instances: int | None = None) -> LaunchGroup:
    [launch] = plan_launches(make_cluster(*(make_claim(f"c{number}") for number in range(count)))).launches
    fleet_instances = tuple(
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
    result = FleetResult(fleet_id="f", instances=fleet_instances) if instances is not None else None
    return msgspec.structs.replace(launch.group, result=result)


def plan_with_limits(count: int, limits: CircuitBreakerLimits, *groups: LaunchGroup) -> LaunchPlan:
    claims = [make_claim(f"n{number:03}") for number in range(count)]
    return plan_launches(make_cluster(*claims, launch_groups=groups), LaunchPolicy(circuit_breaker_limits=limits))


def count_launched(plan: LaunchPlan) -> int:
    return sum(launch.group.request.capacity for launch in plan.launches)


def test_circuit_breaker_counts_launched_instances_or_the_cheapest_possible_offering() -> None:
    for launch_group, nodes, usd in (
        (build_launch_group(3), 3, 3 * CHEAPEST_USD_PER_HOUR),
        (build_launch_group(3, instances=2), 2, 2 * 0.06),
        (build_launch_group(3, instances=0), 0, 0.0),
    ):
        count, price = count_started(launch_group)
        assert (count, round(price, 9)) == (nodes, round(usd, 9))


@pytest.mark.parametrize(
    ("limits", "count", "fuse"),
    [
        (NO_LIMITS, 9, None),
        (make_limits(nodes_per_minute=9), 9, None),
        (make_limits(nodes_per_minute=4), 4, "nodes_per_minute"),
        (make_limits(pool_nodes_per_minute=5), 5, "pool_nodes_per_minute"),
        (make_limits(usd_per_hour=0.07), 2, "usd_per_hour"),
        (make_limits(pool_usd_per_hour=0.09), 3, "pool_usd_per_hour"),
        (make_limits(nodes_per_minute=4, pool_usd_per_hour=0.07), 2, "pool_usd_per_hour"),
    ],
)
def test_circuit_breaker_allows_launches_up_to_its_limits(
    limits: CircuitBreakerLimits, count: int, fuse: str | None
) -> None:
    plan = plan_with_limits(9, limits)
    assert count_launched(plan) == count
    assert [unlaunchable_claim.reason for unlaunchable_claim in plan.unlaunchable] == [BREAKER_OPEN_REASON] * (
        9 - count
    )
    assert (fuse in [trip.limit_name for trip in plan.trips]) is (fuse is not None)


@pytest.mark.parametrize(
    ("age", "limits", "count"),
    [
        (59, make_limits(nodes_per_minute=4), 1),
        (60, make_limits(nodes_per_minute=4), 2),
        (3599, make_limits(usd_per_hour=4 * CHEAPEST_USD_PER_HOUR), 1),
        (3600, make_limits(usd_per_hour=4 * CHEAPEST_USD_PER_HOUR), 2),
    ],
)
def test_circuit_breaker_resets_when_launches_leave_the_time_window(
    age: int, limits: CircuitBreakerLimits, count: int
) -> None:
    before = msgspec.structs.replace(build_launch_group(3), created_at=NOW - timedelta(seconds=age))
    assert count_launched(plan_with_limits(2, limits, before)) == count


def test_circuit_breaker_limit_of_one_node_pool_does_not_affect_another() -> None:
    breaker = CircuitBreaker((), NOW, make_limits(pool_nodes_per_minute=2))
    assert breaker.admit_launches("a", 3, 1.0) == (2, breaker.trips["a", "pool_nodes_per_minute"].message)
    assert breaker.admit_launches("b", 2, 1.0) == (2, "")


def test_instances_without_a_price_do_not_count_against_cost_limits() -> None:
    assert CircuitBreaker((), NOW, make_limits(usd_per_hour=1)).admit_launches("a", 9, 0.0) == (9, "")


def test_circuit_breaker_trip_is_reported_once_per_node_pool_and_node_claim() -> None:
    plan = plan_with_limits(3, make_limits(pool_nodes_per_minute=1))
    [trip] = plan.trips
    [event] = report_breaker_trip(trip, make_cluster())
    assert isinstance(event, PublishEvent)
    assert (event.kind, event.name, event.type, event.reason) == ("NodePool", "default", "Warning", BREAKER_OPEN_REASON)
    assert "raise launch-pool-nodes-per-minute" in event.message
    actions = [
        action for unlaunchable_claim in plan.unlaunchable for action in report_unlaunchable(unlaunchable_claim, NOW)
    ]
    assert [type(planned_action) for planned_action in actions] == [PatchStatus, PatchStatus]


@pytest.mark.parametrize(
    ("usd_per_instance", "pool_count", "cluster_count"), [(0.19, 100, 200), (2.5, 100, 200), (98.0, 2, 5)]
)
def test_default_limits_allow_200_nodes_per_minute_and_500_usd_per_hour(
    usd_per_instance: float, pool_count: int, cluster_count: int
) -> None:
    limits = build_launch_policy(Settings(cluster_name="demo", region="r")).circuit_breaker_limits
    breaker = CircuitBreaker((), NOW, limits)
    counts = [breaker.admit_launches(node_pool, 1000, usd_per_instance)[0] for node_pool in "abc"]
    assert counts == [pool_count, pool_count, cluster_count - 2 * pool_count]


@pytest.mark.parametrize(
    ("ages", "admitted_count"),
    [((), 2), ((1, 2), 2), ((1, 2, 3), 0), ((1, 2, EARLY_ENDS_WINDOW.total_seconds()), 2)],
)
def test_instances_that_ec2_ended_early_open_the_breaker_of_their_node_pool(
    ages: tuple[float, ...], admitted_count: int
) -> None:
    ends = {f"i-{age}": NOW - timedelta(seconds=age) for age in ages}
    text = msgspec.json.encode(ends).decode()
    pool = NodePool(
        meta=ObjectMeta(name="default", annotations=((EARLY_ENDS, text),)), node_class=NodeClassRef(name="default")
    )
    breaker = CircuitBreaker((), NOW, NO_LIMITS, (pool,))
    count, message = breaker.admit_launches("default", 2, CHEAPEST_USD_PER_HOUR)
    assert count == admitted_count
    assert ("EC2 ended 3 instances of NodePool default" in message) == (admitted_count == 0)
    assert len(breaker.trips) == (admitted_count == 0)
    assert breaker.admit_launches("other", 2, CHEAPEST_USD_PER_HOUR) == (2, "")
