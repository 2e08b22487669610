"""EventBridge Scheduler and the schedules of EventBridge's rules: they ring by the clock."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec

from sim.lambdas.schedule import instants
from sim.sandboxes.deliveries import Deliveries, Target


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """What rings: ``rate(…)`` or ``cron(…)``, in UTC."""

    name: str
    expression: str
    targets: tuple[Target, ...]


class Schedules:
    """Rings what there is; `look` has to be called now and then."""

    def __init__(
        self, schedules: Callable[[], Iterable[Schedule]], deliveries: Deliveries, clock: Callable[[], datetime]
    ) -> None:
        """Ask *schedules* what there is, each time; a rate counts from when a schedule is first seen."""
        self._schedules, self._deliveries, self._clock = schedules, deliveries, clock
        self._next: dict[Schedule, datetime] = {}

    def look(self) -> None:
        """Ring what is due; what was due several times since the last look rings once."""
        now = self._clock()
        self._next = {one: self._next.get(one) or _after(one, now) for one in self._schedules()}
        for one, due in self._next.items():
            if due <= now:
                self._next[one] = _beyond(one, due, now)
                self._ring(one, now)

    def ring(self, expression: str = "") -> None:
        """Ring everything once, now, whatever the clock says; or only what rings by *expression*."""
        for one in sorted(self._schedules(), key=lambda one: one.name):
            if expression in ("", one.expression):
                self._ring(one, self._clock())

    def _ring(self, schedule: Schedule, now: datetime) -> None:
        event = {"detail-type": "Scheduled Event", "source": "aws.events", "time": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
        for target in schedule.targets:
            self._deliveries.send(target, msgspec.json.encode(event).decode(), f"schedule {schedule.name}")


def _beyond(schedule: Schedule, due: datetime, now: datetime) -> datetime:
    """Answer the first instant after *now* that *schedule*, which was *due*, rings at: a rate keeps its step."""
    while due <= now:
        due = _after(schedule, due)
    return due


def _after(schedule: Schedule, start: datetime) -> datetime:
    """Answer when *schedule* rings next after *start*; if it never does again: as late as there is."""
    return next(instants(schedule.expression, start), datetime.max.replace(tzinfo=UTC))
