"""Schedules of EventBridge Scheduler and of EventBridge rules: fire them when they are due."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec

from sim.lambda_processes.event_sources.event_deliveries import DeliveryTarget, EventDeliveries
from sim.lambda_runtime.schedule_expressions import list_firing_times


class EventSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule: ``rate(…)`` or ``cron(…)``, in UTC."""

    name: str
    expression: str
    targets: tuple[DeliveryTarget, ...]


class ScheduleRunner:
    """Fires the existing schedules; call `tick` regularly."""

    def __init__(
        self,
        list_schedules: Callable[[], Iterable[EventSchedule]],
        deliveries: EventDeliveries,
        clock: Callable[[], datetime],
    ) -> None:
        """Read the current schedules from *list_schedules* each time.

        A rate counts from when a schedule is first seen.
        """
        self._list_schedules, self._deliveries, self._clock = list_schedules, deliveries, clock
        self._next_time_by_schedule: dict[EventSchedule, datetime] = {}

    def tick(self) -> None:
        """Fire the due schedules; a schedule that was due several times since the last tick fires once."""
        now = self._clock()
        self._next_time_by_schedule = {
            schedule: self._next_time_by_schedule.get(schedule) or _compute_next_time(schedule, now)
            for schedule in self._list_schedules()
        }
        for schedule, due_time in self._next_time_by_schedule.items():
            if due_time <= now:
                self._next_time_by_schedule[schedule] = _compute_following_time(schedule, due_time, now)
                self._fire(schedule, now)

    def fire_all(self, expression: str = "") -> None:
        """Fire all schedules once, now, regardless of the time; with *expression*, only those that have it."""
        for schedule in sorted(self._list_schedules(), key=lambda schedule: schedule.name):
            if expression in ("", schedule.expression):
                self._fire(schedule, self._clock())

    def _fire(self, schedule: EventSchedule, now: datetime) -> None:
        event = {"detail-type": "Scheduled Event", "source": "aws.events", "time": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
        for target in schedule.targets:
            self._deliveries.add(target, msgspec.json.encode(event).decode(), f"schedule {schedule.name}")


def _compute_following_time(schedule: EventSchedule, due_time: datetime, now: datetime) -> datetime:
    """Return the first firing time of *schedule* after *now*, starting at *due_time*: a rate keeps its phase."""
    while due_time <= now:
        due_time = _compute_next_time(schedule, due_time)
    return due_time


def _compute_next_time(schedule: EventSchedule, start: datetime) -> datetime:
    """Return the next firing time of *schedule* after *start*; if there is none, the latest possible time."""
    return next(list_firing_times(schedule.expression, start), datetime.max.replace(tzinfo=UTC))
