"""Laws of the expected end of finite pods, and a hold-out test of the commands that it refuses."""

from datetime import UTC, datetime, timedelta
from math import exp, log
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.disruption.savings.command_value import CommandValue
from shared.decide.disruption.savings.disruption_cost import DisruptionCost
from shared.decide.disruption.savings.refusal import ReplacementRefusal
from shared.decide.disruption.savings.remaining_run_time import (
    RemainingRunTime,
    estimate_remaining_time,
    limit_to_expected_end,
    merge_remaining_times,
    summarize_end,
)
from shared.decide.disruption.savings.run_time_history import update_run_times
from shared.decide.disruption.savings.savings_duration import SavingsDuration
from shared.model.core.metadata import ObjectMeta
from shared.model.decisions.pod_run_time import LAST_INTERVAL, EndedRun, RunTimeRecord
from shared.model.kubernetes.pod import Pod, PodSpec
from sim.cloud.seeded_random import draw_fraction

NOW: Final = datetime(2026, 11, 21, 12, tzinfo=UTC)
ONE_HOUR: Final = timedelta(hours=1)
SAVINGS_USD_PER_HOUR: Final = 0.2
run_counts = st.dictionaries(st.integers(0, LAST_INTERVAL), st.integers(1, 60), min_size=1, max_size=6)
ages = st.timedeltas(timedelta(), timedelta(hours=60))
deadlines = st.none() | st.timedeltas(timedelta(), timedelta(hours=80))


def make_running_pod(age: timedelta, deadline: timedelta | None = None) -> Pod:
    meta = ObjectMeta(name="p", namespace="shop", uid="p")
    return Pod(meta=meta, spec=PodSpec(), started_at=NOW - age, restart_policy="Never", active_deadline=deadline)


def make_record(counts: dict[int, int]) -> RunTimeRecord:
    return RunTimeRecord(family="Job shop/p", run_counts=tuple(sorted(counts.items())), last_seen_at=NOW)


def estimate(counts: dict[int, int], age: timedelta, deadline: timedelta | None = None) -> RemainingRunTime | None:
    return estimate_remaining_time(make_record(counts), make_running_pod(age, deadline), NOW)


@given(counts=run_counts, age=ages, deadline=deadlines)
def test_expected_end_is_never_in_the_past_nor_after_the_deadline(
    counts: dict[int, int], age: timedelta, deadline: timedelta | None
) -> None:
    remaining_time = estimate(counts, age, deadline)
    assert remaining_time == estimate(dict(reversed(counts.items())), age, deadline)
    if remaining_time is None:
        return
    assert list(remaining_time.end_probabilities) == sorted(remaining_time.end_probabilities)
    assert remaining_time.end_probabilities[-1] == pytest.approx(1)
    end = summarize_end(remaining_time)
    assert end.expected >= timedelta()
    assert end.error >= timedelta()
    if deadline is not None:
        assert end.expected <= max(deadline - age, timedelta())


@given(counts=run_counts, age=ages, factor=st.integers(2, 50))
def test_more_runs_of_the_same_distribution_have_a_smaller_error(
    counts: dict[int, int], age: timedelta, factor: int
) -> None:
    rough, precise = estimate(counts, age), estimate({number: factor * count for number, count in counts.items()}, age)
    if rough is None:
        return
    assert precise is not None
    rough_end, precise_end = summarize_end(rough), summarize_end(precise)
    assert abs(rough_end.expected - precise_end.expected) <= timedelta(seconds=1)
    assert precise_end.error <= rough_end.error
    assert (
        rough_end.error == timedelta() or precise_end.error < rough_end.error or rough_end.error < timedelta(seconds=90)
    )


@given(parts=st.lists(st.tuples(run_counts, ages), min_size=1, max_size=4))
def test_last_pod_never_ends_before_any_of_the_pods(parts: list[tuple[dict[int, int], timedelta]]) -> None:
    remaining_times = [item for counts, age in parts if (item := estimate(counts, age)) is not None]
    if not remaining_times:
        return
    merged = summarize_end(merge_remaining_times(remaining_times))
    assert merged == summarize_end(merge_remaining_times(remaining_times[::-1]))
    assert all(merged.expected >= summarize_end(item).expected - timedelta(seconds=1) for item in remaining_times)


@given(counts=run_counts, age=ages, evictions_usd=st.floats(0, 5), quiet=st.timedeltas(timedelta(), timedelta(days=1)))
def test_expected_end_only_ever_refuses_commands(
    counts: dict[int, int], age: timedelta, evictions_usd: float, quiet: timedelta
) -> None:
    remaining_time = estimate(counts, age)
    value = make_value(evictions_usd, quiet)
    limited = limit_to_expected_end(value, None if remaining_time is None else summarize_end(remaining_time))
    if isinstance(limited, CommandValue):
        assert limited.is_worthwhile() == value.is_worthwhile()
        assert limited.duration.expected <= value.duration.expected
        assert replace(limited, duration=value.duration) == value
    else:
        assert evictions_usd > 0


def make_value(evictions_usd: float, quiet: timedelta) -> CommandValue:
    return CommandValue(
        savings_usd_per_hour=SAVINGS_USD_PER_HOUR,
        duration=SavingsDuration(expected=quiet, basis="quiet"),
        cost=DisruptionCost(evictions=1, evictions_usd=evictions_usd),
    )


def draw_run_time(kind: str, seed: int, number: int) -> timedelta:
    """Return a run time of 5m to 10h: of two kinds of input, memoryless, or with a long tail (log-normal)."""
    first, second = (1 - draw_fraction(seed, kind, number, part) for part in range(2))
    match kind:
        case "two kinds":
            minutes = 10 * (0.8 + 0.4 * first) if second < 0.6 else 120 * (0.8 + 0.4 * first)
        case "memoryless":
            minutes = -40 * log(first)
        case _:
            minutes = 30 * exp(1.2 * (sum(1 - draw_fraction(seed, kind, number, part) for part in range(12)) - 6))
    return min(max(minutes, 1.0), 600.0) * timedelta(minutes=1)


def learn(kind: str, seed: int, count: int) -> RunTimeRecord:
    runs = [
        EndedRun(family="Job shop/p", run_time=draw_run_time(kind, seed, number), last_seen_at=NOW)
        for number in range(count)
    ]
    [record] = update_run_times((), runs, None, NOW)
    return record


@pytest.mark.parametrize("kind", ["two kinds", "memoryless", "long tail"])
@pytest.mark.parametrize("price", [0.1, 0.2, 0.3])
def test_commands_that_the_expected_end_refuses_would_not_have_paid(kind: str, price: float) -> None:
    """Learn from 150 runs. Of 600 other runs, at several ages, the refused commands together lose money.

    Moving the pod costs the price, and saves the node until the pod would have ended.
    """
    record = learn(kind, seed=1, count=150)
    refused_gain, refused_count, allowed_gain, allowed_count = 0.0, 0, 0.0, 0
    for number in range(600):
        run_time = draw_run_time(kind, 2, number)
        for age in (timedelta(minutes=minutes) for minutes in (1, 5, 20, 60, 110)):
            remaining_time = estimate_remaining_time(record, make_running_pod(age), NOW)
            if age >= run_time or remaining_time is None:
                continue
            gain = SAVINGS_USD_PER_HOUR * ((run_time - age) / ONE_HOUR) - price
            outcome = limit_to_expected_end(make_value(price, timedelta(days=1)), summarize_end(remaining_time))
            if isinstance(outcome, ReplacementRefusal):
                refused_gain, refused_count = refused_gain + gain, refused_count + 1
            else:
                allowed_gain, allowed_count = allowed_gain + gain, allowed_count + 1
    assert refused_count + allowed_count > 300
    assert refused_count or price < 0.2
    assert refused_gain <= 0.02 * price * refused_count, f"{refused_count} refused commands would gain {refused_gain}"
    assert allowed_gain >= -0.02 * price * allowed_count, f"{allowed_count} commands lose {-allowed_gain}"


@pytest.mark.parametrize("kind", ["two kinds", "memoryless", "long tail"])
def test_expected_end_is_right_on_average(kind: str) -> None:
    """For runs that were not learned from, the mean remaining time differs little from the expected one."""
    record = learn(kind, seed=3, count=200)
    for age in (timedelta(minutes=1), timedelta(minutes=20)):
        remaining_time = estimate_remaining_time(record, make_running_pod(age), NOW)
        assert remaining_time is not None
        end = summarize_end(remaining_time)
        actual = [draw_run_time(kind, 4, number) - age for number in range(2000)]
        remaining_times = [remaining for remaining in actual if remaining > timedelta()]
        mean = sum(remaining_times, timedelta()) / len(remaining_times)
        assert abs(mean - end.expected) <= 0.15 * mean + 2 * end.error / remaining_time.run_count**0.5
