"""Which windows of schedules are open in a snapshot, and what changes next."""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from shared.model.cluster import ClusterSnapshot
from shared.model.core.units import format_instant
from shared.model.karpenter.schedule import Schedule
from shared.model.karpenter.schedules.schedule_grammar import format_values


class ScheduleStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The schedule of an object: what is in force now and next."""

    kind: str
    name: str
    windows: tuple[str, ...]
    """Names of the open windows, in the order of the schedule."""
    values: str
    """What they set, as in the schedule; "" if the spec applies."""
    changes_at: datetime | None
    """When the values change next; None if that is not foreseen."""
    next_windows: tuple[str, ...] = ()
    """Names of the windows that are open after the change."""
    next_values: str = ""

    def describe(self) -> str:
        """Return what is in force now and next, as one sentence."""
        now_text = _describe_values(self.windows, self.values)
        if self.changes_at is None:
            return f"{self.kind} {self.name}: {now_text}"
        next_text = _describe_values(self.next_windows, self.next_values)
        return f"{self.kind} {self.name}: {now_text}; from {format_instant(self.changes_at)}: {next_text}"


def list_schedule_statuses(cluster: ClusterSnapshot) -> tuple[ScheduleStatus, ...]:
    """Return the status of each schedule, NodePools first, sorted by name."""
    return tuple(
        _build_status(kind, name, schedule, cluster.taken_at) for kind, name, schedule in _iterate_schedules(cluster)
    )


def _iterate_schedules(cluster: ClusterSnapshot) -> Iterator[tuple[str, str, Schedule]]:
    for pool in sorted(cluster.node_pools, key=lambda pool: pool.name):
        if pool.schedule is not None:
            yield "NodePool", pool.name, pool.schedule
    for buffer in sorted(cluster.capacity_buffers, key=lambda buffer: buffer.name):
        if buffer.schedule is not None:
            yield "CapacityBuffer", buffer.name, buffer.schedule


def _build_status(kind: str, name: str, schedule: Schedule, at: datetime) -> ScheduleStatus:
    changes_at = schedule.find_next_change(at)
    return ScheduleStatus(
        kind=kind,
        name=name,
        windows=_list_names(schedule, at),
        values=format_values(schedule.compute_values(at)),
        changes_at=changes_at,
        next_windows=_list_names(schedule, changes_at) if changes_at is not None else (),
        next_values=format_values(schedule.compute_values(changes_at)) if changes_at is not None else "",
    )


def _list_names(schedule: Schedule, at: datetime) -> tuple[str, ...]:
    return tuple(window.name for window in schedule.list_open_windows(at))


def _describe_values(windows: tuple[str, ...], values: str) -> str:
    return f"{', '.join(windows)} ({values})" if values else "as in its spec"
