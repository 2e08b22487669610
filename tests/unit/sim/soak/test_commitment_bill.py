"""Tests of the bill of a simulated week: spot, what commitments do not cover, and the commitments, used or not."""

from datetime import UTC, datetime

import pytest

from shared.model.ec2.commitments import Commitments, ReservedInstances, SavingsPlan
from sim.cloud.cloud import Cloud
from sim.soak.commitment_bill import SAMPLES_PER_HOUR, RunningInstance, compute_bill
from sim.soak.policies import POLICIES
from sim.soak.soak_runner import list_tasks
from sim.soak.worlds.commitments import COMMITTED_WORLD, add_commitments
from sim.soak.worlds.mixed import MIXED_WORLD
from sim.soak.worlds.world_definition import with_policy
from sim.time.virtual_clock import Clock

LARGE = RunningInstance(instance_type="m6i.large", zone="us-east-1a", usd_per_hour=0.10)
PLAN = SavingsPlan(
    plan_id="plan", kind="compute", commitment_usd_per_hour=0.14, rates=(("m6i.large", 0.07), ("m6i.xlarge", 0.14))
)
COMMITMENTS = Commitments(
    reserved=(ReservedInstances(reservation_id="ri", instance_type="m6i.large", count=1, usd_per_hour=0.06),),
    plans=(PLAN,),
)


def test_bill_is_spot_and_uncovered_usage_and_the_commitments() -> None:
    [hour] = compute_bill([(0.45, (LARGE,) * 4)] * SAMPLES_PER_HOUR, COMMITMENTS)
    assert hour.spot_usd == pytest.approx(0.05)
    assert hour.uncovered_usd == pytest.approx(0.10)
    assert hour.committed_usd == pytest.approx(0.20)
    assert hour.unused_usd == pytest.approx(0.0)
    assert hour.total_usd == pytest.approx(0.35)


def test_commitments_are_paid_if_nothing_uses_them() -> None:
    [hour] = compute_bill([(0.05, ())] * SAMPLES_PER_HOUR, COMMITMENTS)
    assert hour.total_usd == pytest.approx(0.25)
    assert hour.unused_usd == pytest.approx(0.20)


def test_usage_of_an_hour_is_covered_whenever_it_runs_in_the_hour() -> None:
    half_hour = SAMPLES_PER_HOUR // 2
    samples = [(0.2, (LARGE, LARGE))] * half_hour + [(0.0, ())] * half_hour
    [hour] = compute_bill(samples, Commitments(reserved=COMMITMENTS.reserved))
    assert hour.uncovered_usd == pytest.approx(0.0)
    assert hour.total_usd == pytest.approx(0.06)


def test_an_incomplete_hour_is_not_billed() -> None:
    assert compute_bill([(0.1, (LARGE,))] * (SAMPLES_PER_HOUR + 1), COMMITMENTS)[1:] == ()


def test_commitments_of_the_world_are_proportional_to_its_size() -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    counts, plan_totals = [], []
    for size in (0.5, 1.0):
        account = Cloud(Clock(now), seed=1).commitments
        add_commitments(account, size, now)
        [reserved] = account.list_reserved(now)
        plans = account.list_plans(now, "us-east-1")
        counts.append(reserved.count)
        plan_totals.append(sum(plan.commitment_usd_per_hour for plan in plans))
        assert {plan.kind for plan in plans} == {"compute", "ec2-instance"}
    assert counts == [3, 6]
    assert plan_totals == pytest.approx([0.35, 0.70])


def test_policies_differ_in_what_they_know_and_not_in_what_is_paid() -> None:
    assert POLICIES["commitments"].build_settings() == {"commitments": "account"}
    on_demand = with_policy(COMMITTED_WORLD, "", (), POLICIES["on-demand"].excluded_capacity_type)
    assert [pool.capacity_types for pool in COMMITTED_WORLD.node_pools] == [("spot", "on-demand"), ("spot",)]
    assert [pool.capacity_types for pool in on_demand.node_pools] == [("on-demand",), ("spot",)]
    assert with_policy(MIXED_WORLD, "", ()) == MIXED_WORLD


def test_a_world_with_commitments_has_no_ideal_costs() -> None:
    policies = (POLICIES["default"],)
    tasks = list(list_tasks(["mixed", "committed"], [1], policies, days=1, size=1))
    assert [(task.world, task.policy is None) for task in tasks] == [
        ("mixed", True),
        ("mixed", False),
        ("committed", False),
    ]
