"""Schedules: windows of the calendar in which a NodePool or CapacityBuffer has other values than its spec.

`karpenter.schedule_grammar` parses the annotation joiner.dev/schedule; `state.schedules` applies it to a snapshot.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from shared.model.core.calendar.calendar_windows import CalendarWindow
from shared.model.core.units import format_instant

MAX_EDGES: Final = 100
"""Number of starts and ends of windows that are searched for the next change: seven weeks of nights."""
Amounts: TypeAlias = tuple[tuple[str, int], ...]


class ScheduledBudget(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A disruption budget of a window."""

    nodes: str
    """A count, or a percentage."""
    reasons: tuple[str, ...] | None = None
    """None: every reason."""


class ScaledWorkload(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """A workload, and its number of replicas in a window."""

    kind: str
    namespace: str
    name: str
    replicas: int = 0

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace and name."""
        return self.kind, self.namespace, self.name


class ScheduledValues(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The values that a window sets; the spec has the others."""

    replicas: int | None = None
    percentage: int | None = None
    limits: Amounts = ()
    """By resource: they replace the limits of these resources."""
    limit_usd_per_hour: str = ""
    """As in the annotation joiner.dev/limit-usd-per-hour."""
    consolidation_policy: str = ""
    consolidate_after: str = ""
    """A duration, or `Never`."""
    budgets: tuple[ScheduledBudget, ...] = ()
    """They replace all budgets."""
    paused: tuple[str, ...] = ()
    """`Launches`, and disruption reasons."""
    workloads: tuple[ScaledWorkload, ...] = ()


class ScheduleWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A window, and the values that it sets."""

    name: str
    calendar: CalendarWindow
    values: ScheduledValues


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """The windows of an object, in their order: of two windows that set the same value, the later one wins."""

    windows: tuple[ScheduleWindow, ...]

    def list_open_windows(self, at: datetime) -> tuple[ScheduleWindow, ...]:
        """Return the windows that *at* is in."""
        return tuple(window for window in self.windows if window.calendar.is_open(at))

    def compute_values(self, at: datetime) -> ScheduledValues:
        """Return the values that are in force at *at*."""
        return merge_values(window.values for window in self.list_open_windows(at))

    def find_next_change(self, at: datetime) -> datetime | None:
        """Return when other values are in force than at *at*; None if that is not foreseen."""
        values = self.compute_values(at)
        are_open = [window.calendar.is_open(at) for window in self.windows]
        edges = [window.calendar.find_next_edge(at) for window in self.windows]
        for _ in range(MAX_EDGES):
            instant = min((edge for edge in edges if edge is not None), default=None)
            if instant is None:
                return None
            for place, window in enumerate(self.windows):
                if edges[place] == instant:
                    are_open[place] = not are_open[place]
                    edges[place] = window.calendar.find_next_edge(instant)
            open_windows = (window for window, is_open in zip(self.windows, are_open, strict=True) if is_open)
            if merge_values(window.values for window in open_windows) != values:
                return instant
        return None


def merge_values(values: Iterable[ScheduledValues]) -> ScheduledValues:
    """Return all *values* together; later ones win, limits and workloads one by one."""
    merged = ScheduledValues()
    for window_values in values:
        fields = {
            field: value
            for field in ScheduledValues.__struct_fields__
            if (value := getattr(window_values, field)) not in (None, "", ())
        }
        if {"replicas", "percentage"} & fields.keys():  # a size replaces the other kind of size as well
            merged = replace(merged, replicas=None, percentage=None)
        workload_by_key = {workload.key: workload for workload in (*merged.workloads, *window_values.workloads)}
        fields |= {
            "limits": tuple(sorted({**dict(merged.limits), **dict(window_values.limits)}.items())),
            "workloads": tuple(sorted(workload_by_key.values())),
        }
        merged = replace(merged, **fields)
    return merged


def format_until(instant: datetime | None) -> str:
    """Return the end of what is in force as text."""
    return f"until {format_instant(instant)}" if instant is not None else "without an end"
