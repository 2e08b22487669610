"""When the pods of a node are expected to end: then the node is empty, and its removal costs no evictions.

The remaining run time of a pod follows from earlier runs of its family that lasted longer than the pod has run already.
Within an interval of the recorded run times, all run times are equally likely. A node is empty when the last of its
pods has ended, so the probability that it is empty is the product of the probabilities that each pod has ended.
activeDeadlineSeconds is an upper bound.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import accumulate
from math import prod, sqrt
from typing import Final

import msgspec

from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.savings.command_value import CommandValue
from shared.decide.disruption.savings.disruption_cost import format_amount
from shared.decide.disruption.savings.refusal import ReplacementRefusal
from shared.decide.disruption.savings.run_time_history import find_finite_family
from shared.decide.disruption.savings.savings_duration import SavingsDuration
from shared.model.core.formatting import format_count, format_elapsed, join_names
from shared.model.decisions.pod_run_time import (
    INTERVAL_ENDS_S,
    LAST_INTERVAL,
    MIN_RUN_S,
    RunTimeRecord,
    get_interval_bounds,
)
from shared.model.kubernetes.pod import Pod

MIN_RUNS: Final = 3
"""A pod has an expected end if at least this many earlier runs lasted longer than it has run."""
MAX_LISTED_FAMILIES: Final = 2
_TIMES_S: Final = (0, 5, 10, *(round(MIN_RUN_S * 2 ** (number / 8)) for number in range(2 * LAST_INTERVAL + 1)))
"""The times from now for which probabilities are computed: twice as dense as the intervals, and as long."""
_HIGH_SHARE_RATIO: Final = 0.9
_ONE_HOUR: Final = timedelta(hours=1)


class RemainingRunTime(msgspec.Struct, frozen=True, kw_only=True):
    """When a set of pods will have ended, as a distribution."""

    end_probabilities: tuple[float, ...]
    """That all pods have ended, for each time of `_TIMES_S`; never decreases."""
    run_count: float
    """The number of earlier runs that the least known pod is estimated by."""
    bound: timedelta | None
    """When all pods have reached their activeDeadlineSeconds; None: not all have one."""
    families: tuple[str, ...]
    pod_count: int


class ExpectedEnd(msgspec.Struct, frozen=True, kw_only=True):
    """When all pods of a command are expected to have ended."""

    expected: timedelta
    error: timedelta
    """Standard deviation of the end; fewer observed runs make it larger."""
    run_count: int
    families: tuple[str, ...]
    pod_count: int

    def format(self) -> str:
        """Return the expectation in words.

        >>> ExpectedEnd(expected=timedelta(minutes=12), error=timedelta(minutes=5), run_count=42,
        ...             families=("CronJob shop/report",), pod_count=2).format()
        '2 pods of CronJob shop/report are expected to end in 12m ± 5m, by 42 earlier runs'
        """
        verb = "is" if self.pod_count == 1 else "are"
        families = join_names(self.families, MAX_LISTED_FAMILIES)
        return (
            f"{format_count(self.pod_count, 'pod')} of {families} {verb} expected to end in "
            f"{format_elapsed(self.expected)} ± {format_elapsed(self.error)}, by "
            f"{format_count(self.run_count, 'earlier run')}"
        )


class RemainingRunTimes:
    """The expected ends of commands, by the recorded run times of their pods."""

    def __init__(self, records: Iterable[RunTimeRecord], now: datetime) -> None:
        """Index *records* by family."""
        self._record_by_family = {record.family: record for record in records}
        self._now = now
        self._by_node: dict[str, RemainingRunTime | None] = {}

    def estimate(self, targets: Sequence[Candidate]) -> ExpectedEnd | None:
        """Return when all pods of *targets* that need another node will have ended; None if a pod has no estimate."""
        if not self._record_by_family:
            return None
        remaining_times = []
        for target in targets:
            if target.name not in self._by_node:
                self._by_node[target.name] = self._estimate_pods(target.reschedulable_pods)
            remaining_time = self._by_node[target.name]
            if remaining_time is None:
                return None
            remaining_times.append(remaining_time)
        return summarize_end(merge_remaining_times(remaining_times)) if remaining_times else None

    def _estimate_pods(self, pods: Iterable[Pod]) -> RemainingRunTime | None:
        pods_with_records = [(pod, self._record_by_family.get(find_finite_family(pod))) for pod in pods]
        if any(record is None for _, record in pods_with_records):
            return None
        remaining_times = []
        for pod, record in pods_with_records:
            remaining_time = estimate_remaining_time(record, pod, self._now) if record is not None else None
            if remaining_time is None:
                return None
            remaining_times.append(remaining_time)
        return merge_remaining_times(remaining_times) if remaining_times else None


def estimate_remaining_time(record: RunTimeRecord, pod: Pod, now: datetime) -> RemainingRunTime | None:
    """Return the remaining run time of *pod*; None if fewer than `MIN_RUNS` earlier runs lasted longer than it has."""
    age_s = max((now - pod.started_at).total_seconds(), 0.0) if pod.started_at is not None else 0.0
    deadline = pod.active_deadline
    bound_s = None if deadline is None else max(deadline.total_seconds() - age_s, 0.0)
    cumulative_counts = _compute_cumulative_counts(record.run_counts)
    shorter_count = _count_runs_until(age_s, cumulative_counts)
    longer_count = cumulative_counts[-1] - shorter_count
    if longer_count < MIN_RUNS:
        return None
    return RemainingRunTime(
        end_probabilities=tuple(
            [
                1.0
                if bound_s is not None and time_s >= bound_s
                else (_count_runs_until(age_s + time_s, cumulative_counts) - shorter_count) / longer_count
                for time_s in _TIMES_S
            ]
        ),
        run_count=longer_count,
        bound=None if bound_s is None else timedelta(seconds=bound_s),
        families=(record.family,),
        pod_count=1,
    )


def summarize_run_times(record: RunTimeRecord) -> tuple[timedelta, timedelta, timedelta]:
    """Return the mean run time of *record*, its standard deviation, and the run time that 90% do not exceed."""
    bounds = [(*get_interval_bounds(interval), count) for interval, count in record.run_counts]
    total = sum(count for _, _, count in bounds)
    mean_s = sum(count * (start_s + end_s) / 2 for start_s, end_s, count in bounds) / total
    square_s2 = sum(count * (start_s**2 + start_s * end_s + end_s**2) / 3 for start_s, end_s, count in bounds) / total
    counted_runs, ninety_percent_s = 0, 0
    for _, end_s, count in bounds:
        counted_runs += count
        ninety_percent_s = end_s
        if counted_runs >= total * _HIGH_SHARE_RATIO:
            break
    deviation_s = sqrt(max(square_s2 - mean_s**2, 0.0))
    return timedelta(seconds=mean_s), timedelta(seconds=deviation_s), timedelta(seconds=ninety_percent_s)


def merge_remaining_times(remaining_times: Sequence[RemainingRunTime]) -> RemainingRunTime:
    """Return when the last of several pods, which end independently of each other, will have ended."""
    bounds = [remaining_time.bound for remaining_time in remaining_times]
    known_bounds = [bound for bound in bounds if bound is not None]
    return RemainingRunTime(
        end_probabilities=tuple(
            prod(probabilities)
            for probabilities in zip(*(item.end_probabilities for item in remaining_times), strict=True)
        ),
        run_count=min(remaining_time.run_count for remaining_time in remaining_times),
        bound=max(known_bounds) if len(known_bounds) == len(bounds) else None,
        families=tuple(sorted({family for item in remaining_times for family in item.families})),
        pod_count=sum(remaining_time.pod_count for remaining_time in remaining_times),
    )


def summarize_end(remaining_time: RemainingRunTime) -> ExpectedEnd:
    """Return the mean and the standard deviation of *remaining_time*.

    The deviation includes that the mean itself is estimated: its square grows by the share 1 / number of runs.
    """
    mean_s, square_s2 = 0.0, 0.0
    probabilities = remaining_time.end_probabilities
    for number in range(len(_TIMES_S) - 1):
        start_s, end_s = _TIMES_S[number], _TIMES_S[number + 1]
        open_share = max(1 - (probabilities[number] + probabilities[number + 1]) / 2, 0.0)
        mean_s += open_share * (end_s - start_s)
        square_s2 += open_share * (end_s**2 - start_s**2)
    error_s = sqrt(max(square_s2 - mean_s**2, 0.0) * (1 + 1 / remaining_time.run_count))
    expected = timedelta(seconds=round(mean_s))
    return ExpectedEnd(
        expected=expected if remaining_time.bound is None else min(expected, remaining_time.bound),
        error=timedelta(seconds=round(error_s)),
        run_count=int(remaining_time.run_count),
        families=remaining_time.families,
        pod_count=remaining_time.pod_count,
    )


def limit_to_expected_end(value: CommandValue, end: ExpectedEnd | None) -> CommandValue | ReplacementRefusal:
    """Return *value* with savings that last at most until *end*, or why it is cheaper to wait for *end*.

    Waiting until the pods have ended loses the savings of that time, moving the pods costs evictions and launches. This
    also holds after a quiet day: the age of the pods is part of the estimate, and a pod that runs longer than all
    earlier runs has none.
    """
    if end is None:
        return value
    if end.expected < value.payback_period:
        waiting_usd = value.savings_usd_per_hour * (end.expected / _ONE_HOUR)
        message = f"its {end.format()}: waiting costs {format_amount(waiting_usd)}, moving costs {value.cost.format()}"
        return ReplacementRefusal(reason="PaybackPending", message=message)
    if end.expected >= value.duration.expected:
        return value
    basis = f"its pods are expected to end by then, by {format_count(end.run_count, 'earlier run')}"
    duration = SavingsDuration(expected=end.expected, basis=basis, error=end.error)
    return msgspec.structs.replace(value, duration=duration)


@lru_cache(maxsize=1024)
def _compute_cumulative_counts(run_counts: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """Return, for the end of each interval, how many runs were not longer."""
    counts = dict(run_counts)
    return tuple(accumulate(counts.get(interval, 0) for interval in range(LAST_INTERVAL + 1)))


def _count_runs_until(time_s: float, cumulative_counts: Sequence[int]) -> float:
    """Return how many runs were not longer than *time_s*, if the run times of an interval are evenly distributed."""
    interval = bisect_right(INTERVAL_ENDS_S, time_s)
    if interval > LAST_INTERVAL:
        return cumulative_counts[-1]
    start_s, end_s = get_interval_bounds(interval)
    count_before = cumulative_counts[interval - 1] if interval else 0
    return count_before + (cumulative_counts[interval] - count_before) * (time_s - start_s) / (end_s - start_s)
