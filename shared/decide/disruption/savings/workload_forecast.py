"""Demand forecast of each NodePool, and how long savings last by it: until the removed capacity is needed again."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from math import isqrt
from typing import Final

import msgspec

from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.savings.savings_duration import MAX_SAVINGS_DURATION, SavingsDuration
from shared.decide.disruption.savings.workload_history import compute_hour_of_week
from shared.model.core.formatting import format_count
from shared.model.core.resources import CPU, MEMORY
from shared.model.decisions.workload_history import (
    HOURS_PER_WEEK,
    TENTHS_RATIO,
    DemandForecast,
    HourlyDemand,
    ObservedWorkload,
    WorkloadHistory,
    WorkloadRecord,
)
from shared.model.kubernetes.pod_classes import is_reschedulable
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode

FORECAST_HOURS: Final = 24
MIN_KNOWN_PERCENT: Final = 50
"""A NodePool has a forecast if the history knows workloads with at least this share of its requests."""
_ONE_HOUR: Final = timedelta(hours=1)
_HOURS_PER_DAY: Final = 24


class ReplicaEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Replicas of one workload in one hour, in tenths."""

    mean: int
    error: int
    weeks: int
    """0: the hour is unknown, and the workload is expected to stay as it is."""


def estimate_demand(
    history: WorkloadHistory, observed_workloads: Iterable[ObservedWorkload], now: datetime
) -> tuple[DemandForecast, ...]:
    """Return the forecast of each NodePool for the next 24 full hours, sorted by name.

    A workload is expected to have the replicas of the same hour in previous weeks. In the first week, those of the same
    hour of the last observed day; without any, its current replicas.
    """
    current = {workload.name: workload for workload in observed_workloads}
    record_by_name = {name: _build_unknown_record(workload) for name, workload in current.items()} | {
        record.name: record for record in history.workloads
    }
    records_by_pool: dict[str, list[WorkloadRecord]] = {}
    for _, record in sorted(record_by_name.items()):
        if record.pool:
            records_by_pool.setdefault(record.pool, []).append(record)
    forecasts = (
        _estimate_pool_demand(pool, records, current, now) for pool, records in sorted(records_by_pool.items())
    )
    return tuple(forecast for forecast in forecasts if forecast is not None)


class ForecastDurations:
    """How long the savings of commands last by the forecasts of their NodePools."""

    def __init__(self, forecasts: Iterable[DemandForecast], cluster_state: ClusterState) -> None:
        """Sum the capacity of each NodePool that has a forecast."""
        self._forecast_by_pool = {forecast.pool: forecast for forecast in forecasts}
        self._now = cluster_state.taken_at
        self._capacity_by_node = {
            state.name: _compute_capacity(state)
            for state in cluster_state.nodes
            if state.pool in self._forecast_by_pool and not state.is_marked_for_deletion()
        }
        self._capacity_by_pool = dict.fromkeys(self._forecast_by_pool, (0, 0))
        for state in cluster_state.nodes:
            cpu_milli, memory_bytes = self._capacity_by_node.get(state.name, (0, 0))
            if state.pool in self._capacity_by_pool:
                pool_cpu_milli, pool_memory_bytes = self._capacity_by_pool[state.pool]
                self._capacity_by_pool[state.pool] = (pool_cpu_milli + cpu_milli, pool_memory_bytes + memory_bytes)

    def estimate(self, targets: Sequence[Candidate], removed_share: float) -> SavingsDuration | None:
        """Return how long *targets* are not needed; None without a forecast for each of their NodePools.

        *removed_share*: the part of their capacity that is not replaced, estimated by price. The capacity is needed
        again in the first hour in which the forecast, less its error, exceeds the capacity that is left. The error of
        the duration is the time by which it is shorter if demand is higher than the forecast by its error.
        """
        durations = []
        for pool in sorted({target.pool.name for target in targets}):
            forecast = self._forecast_by_pool.get(pool)
            if forecast is None:
                return None
            capacities = [
                self._capacity_by_node.get(target.name, (0, 0)) for target in targets if target.pool.name == pool
            ]
            cpu_milli, memory_bytes = self._capacity_by_pool[pool]
            remaining_capacity = (
                cpu_milli - int(removed_share * sum(capacity[0] for capacity in capacities)),
                memory_bytes - int(removed_share * sum(capacity[1] for capacity in capacities)),
            )
            durations.append(_estimate_pool_duration(forecast, remaining_capacity, self._now))
        return min(durations, key=lambda duration: duration.expected, default=None)


def _estimate_pool_duration(forecast: DemandForecast, capacity: tuple[int, int], now: datetime) -> SavingsDuration:
    expected = _find_duration(forecast, capacity, now, -1)
    error = max(expected - _find_duration(forecast, capacity, now, 1), timedelta())
    weeks_text = (
        f"replicas of {format_count(forecast.weeks, 'week')}" if forecast.weeks else "replicas of the last days"
    )
    needed_at = now + expected
    return SavingsDuration(
        expected=expected,
        basis=f"NodePool {forecast.pool} needs the capacity again {needed_at:%A %H:%M} UTC by {weeks_text}",
        error=error,
    )


def _find_duration(forecast: DemandForecast, capacity: tuple[int, int], now: datetime, error_sign: int) -> timedelta:
    """Return the time until the demand, with its error added or subtracted, exceeds *capacity*; at most a day."""
    for number, hour in enumerate(forecast.hours):
        if (
            hour.cpu_milli + error_sign * hour.cpu_error_milli > capacity[0]
            or hour.memory_bytes + error_sign * hour.memory_error_bytes > capacity[1]
        ):
            return min(max(forecast.starts_at + number * _ONE_HOUR - now, timedelta()), MAX_SAVINGS_DURATION)
    return MAX_SAVINGS_DURATION


def _compute_capacity(state: StateNode) -> tuple[int, int]:
    """Return CPU and memory of *state* for the pods of workloads: without DaemonSet pods and static pods."""
    allocatable = state.compute_allocatable()
    fixed_pods = [pod for pod in state.pods if not is_reschedulable(pod) and not pod.is_terminal()]
    return (
        allocatable[CPU] - sum(pod.spec.requests[CPU] for pod in fixed_pods),
        allocatable[MEMORY] - sum(pod.spec.requests[MEMORY] for pod in fixed_pods),
    )


def _estimate_pool_demand(
    pool: str, records: Sequence[WorkloadRecord], current: Mapping[str, ObservedWorkload], now: datetime
) -> DemandForecast | None:
    starts_at = now.replace(minute=0, second=0, microsecond=0) + _ONE_HOUR
    slots = [compute_hour_of_week(starts_at + number * _ONE_HOUR) for number in range(FORECAST_HOURS)]
    hours, weighted_weeks, known_requests, total = [], 0, 0, 0
    for slot in slots:
        estimates = [(record, _estimate_replicas(record, current.get(record.name), slot)) for record in records]
        hours.append(_sum_estimates(estimates))
        for record, estimate in estimates:
            requests = max(estimate.mean * record.cpu_milli, 1)
            total += requests
            known_requests += requests if estimate.weeks else 0
            weighted_weeks += requests * record.weeks[slot]
    if not total or known_requests * 100 < total * MIN_KNOWN_PERCENT:
        return None
    return DemandForecast(pool=pool, starts_at=starts_at, hours=tuple(hours), weeks=weighted_weeks // total)


def estimate_record_replicas(record: WorkloadRecord, slot: int) -> ReplicaEstimate | None:
    """Return the replicas of *record* in hour *slot* of the week; None if no day is known at that hour."""
    for days in range(HOURS_PER_WEEK // _HOURS_PER_DAY):
        place = (slot - days * _HOURS_PER_DAY) % HOURS_PER_WEEK
        if record.weeks[place]:
            return ReplicaEstimate(mean=record.means[place], error=record.errors[place], weeks=record.weeks[place])
    return None


def _estimate_replicas(record: WorkloadRecord, workload: ObservedWorkload | None, slot: int) -> ReplicaEstimate:
    estimate = estimate_record_replicas(record, slot)
    if estimate is not None:
        return estimate
    return ReplicaEstimate(mean=TENTHS_RATIO * workload.replicas if workload is not None else 0, error=0, weeks=0)


def _sum_estimates(estimates: Sequence[tuple[WorkloadRecord, ReplicaEstimate]]) -> HourlyDemand:
    """Return the sum of the demands; the errors of workloads are independent of each other."""
    return HourlyDemand(
        cpu_milli=sum(estimate.mean * record.cpu_milli for record, estimate in estimates) // TENTHS_RATIO,
        memory_bytes=sum(estimate.mean * record.memory_bytes for record, estimate in estimates) // TENTHS_RATIO,
        cpu_error_milli=isqrt(sum((estimate.error * record.cpu_milli) ** 2 for record, estimate in estimates))
        // TENTHS_RATIO,
        memory_error_bytes=isqrt(sum((estimate.error * record.memory_bytes) ** 2 for record, estimate in estimates))
        // TENTHS_RATIO,
    )


def _build_unknown_record(workload: ObservedWorkload) -> WorkloadRecord:
    return WorkloadRecord(
        name=workload.name,
        pool=workload.pool,
        cpu_milli=workload.cpu_milli // workload.replicas,
        memory_bytes=workload.memory_bytes // workload.replicas,
    )
