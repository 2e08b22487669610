"""The history of each workload's replicas by hour of the week, and the demand that it predicts.

Replicas are counted in tenths, so that the stored document has only integers.
"""

from datetime import datetime
from typing import Final

import msgspec

from shared.model.decisions.pod_run_time import RunTimeRecord

HOURS_PER_WEEK: Final = 168
TENTHS_RATIO: Final = 10
"""Replicas are stored in tenths."""
_NO_HOURS: Final = (0,) * HOURS_PER_WEEK


class ObservedWorkload(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """A workload as one snapshot shows it."""

    name: str
    """With its kind and namespace: ``Deployment shop/web``."""
    pool: str
    """The NodePool of most of its pods."""
    replicas: int
    cpu_milli: int
    """Of all its pods."""
    memory_bytes: int


class WorkloadRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The history of one workload; each tuple has one number for each hour of the week, from Monday 00:00 UTC."""

    name: str
    pool: str
    cpu_milli: int
    """Of one replica, at the last observation with replicas."""
    memory_bytes: int
    means: tuple[int, ...] = _NO_HOURS
    """Exponentially weighted mean of its replicas, in tenths."""
    errors: tuple[int, ...] = _NO_HOURS
    """Exponentially weighted mean absolute error of these means, in tenths."""
    weeks: tuple[int, ...] = _NO_HOURS
    """Number of weeks in which the hour was observed."""
    current_total: int = 0
    """Sum of its replicas in the observations of the current hour."""

    @property
    def size(self) -> int:
        """Its largest mean CPU requests, in millicores and tenths of replicas: the smallest workloads are dropped."""
        return max(*self.means, self.current_total) * max(self.cpu_milli, 1)


class WorkloadHistory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The histories of all workloads, sorted by name."""

    workloads: tuple[WorkloadRecord, ...] = ()
    updated_at: datetime | None = None
    observation_count: int = 0
    """Number of observations in the current hour."""
    dropped_count: int = 0
    """Number of small workloads that did not fit into the stored document."""
    run_times: tuple[RunTimeRecord, ...] = ()
    """How long finite pods run, sorted by family; complete until `updated_at`."""


class HourlyDemand(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Expected requests in one hour, with their typical error."""

    cpu_milli: int
    memory_bytes: int
    cpu_error_milli: int
    memory_error_bytes: int


class DemandForecast(msgspec.Struct, frozen=True, kw_only=True):
    """The expected requests of a NodePool's workloads in the next hours."""

    pool: str
    starts_at: datetime
    """The beginning of the first hour."""
    hours: tuple[HourlyDemand, ...]
    weeks: int
    """In how many weeks the hours were observed, weighted by requests and rounded down."""
