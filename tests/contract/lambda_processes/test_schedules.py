"""Schedules that fire by the clock, and retries of events that no target accepts."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from sim.lambda_processes.event_sources.event_bus import DefaultEventBus, EventBusRule
from sim.lambda_processes.event_sources.event_deliveries import DeliveryTarget, EventDeliveries, Undelivered
from sim.lambda_processes.event_sources.schedules import EventSchedule, ScheduleRunner
from sim.lambda_processes.workers import WorkerPool

ONE_MINUTE = timedelta(minutes=1)
START = datetime(2026, 11, 22, 7, 58, 30, tzinfo=UTC)


class Wires:
    """Records deliveries, after *refusals* refused ones."""

    def __init__(self) -> None:
        """Refuse nothing."""
        self.refusals = 0
        self.delivered: list[tuple[str, str]] = []
        self.tries = 0
        self.dead_letters: list[tuple[str, str]] = []

    def deliver_event(self, target: DeliveryTarget, event: str, source: str) -> None:
        del target
        self.tries += 1
        if self.refusals:
            self.refusals -= 1
            raise Undelivered("not now")
        self.delivered.append((source, event))

    def send_to_dead_letter_queue(self, target: DeliveryTarget, event: str, reason: str) -> None:
        del event
        self.dead_letters.append((target.dead_letter_arn, reason))


class ClockedSchedules:
    """Schedules on a clock that the test advances."""

    def __init__(self) -> None:
        """Begin 90 seconds before a full hour."""
        self.now, self.wires, self.workers = START, Wires(), WorkerPool(1)
        self.current_schedules: list[EventSchedule] = []
        self.rules: list[EventBusRule] = []
        self.deliveries = EventDeliveries(self.wires, self.workers, lambda: self.now)
        self.schedules = ScheduleRunner(lambda: self.current_schedules, self.deliveries, lambda: self.now)
        self.bus = DefaultEventBus(lambda: self.rules, self.deliveries, lambda: self.now, account="1", region="here")

    def advance(self, duration: timedelta, step: timedelta = timedelta(seconds=10)) -> None:
        end = self.now + duration
        while self.now <= end:
            self.schedules.tick()
            self.deliveries.tick()
            self._wait_for_worker()
            self.now += step
        self.now = end

    def _wait_for_worker(self) -> None:
        """Wait for the worker: there is only one, so the last submitted task is done last."""
        worker_finished = threading.Event()
        self.workers.submit(worker_finished.set)
        assert worker_finished.wait(600)


@pytest.fixture
def desk() -> Iterator[ClockedSchedules]:
    clocked_schedules = ClockedSchedules()
    yield clocked_schedules
    clocked_schedules.workers.shut_down()
    assert not clocked_schedules.workers.errors


def make_schedule(expression: str, **target: object) -> EventSchedule:
    return EventSchedule(name="tick", expression=expression, targets=(DeliveryTarget(arn="arn:tiny", **target),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expression", "rings"), [("rate(1 minute)", 10), ("rate(5 minutes)", 2), ("cron(0 8 * * ? *)", 1)]
)
def test_schedule_fires_when_it_is_due(desk: ClockedSchedules, expression: str, rings: int) -> None:
    desk.current_schedules = [make_schedule(expression, input='{"source": "schedule"}')]
    desk.advance(10 * ONE_MINUTE)
    assert desk.wires.delivered == [("schedule tick", '{"source": "schedule"}')] * rings


def test_schedule_without_an_input_sends_a_scheduled_event(desk: ClockedSchedules) -> None:
    desk.current_schedules = [make_schedule("rate(1 minute)")]
    desk.advance(ONE_MINUTE)
    [(_, event)] = desk.wires.delivered
    assert '"detail-type":"Scheduled Event"' in event


def test_all_schedules_can_be_fired_manually(desk: ClockedSchedules) -> None:
    desk.current_schedules = [make_schedule("rate(1 hour)")]
    desk.advance(timedelta(seconds=10))
    desk.schedules.fire_all()
    desk.advance(timedelta(seconds=10))
    assert len(desk.wires.delivered) == 1


def test_deleted_schedule_no_longer_fires(desk: ClockedSchedules) -> None:
    desk.current_schedules = [make_schedule("rate(1 minute)")]
    desk.advance(ONE_MINUTE)
    desk.current_schedules = []
    desk.advance(5 * ONE_MINUTE)
    assert len(desk.wires.delivered) == 1


def test_schedule_whose_expression_has_ended_no_longer_fires(desk: ClockedSchedules) -> None:
    desk.current_schedules = [make_schedule("cron(0 8 * * ? 2026-2026)"), make_schedule("cron(0 8 * * ? 2025)")]
    desk.advance(10 * ONE_MINUTE)
    assert len(desk.wires.delivered) == 1


def test_overdue_schedule_fires_only_once(desk: ClockedSchedules) -> None:
    desk.current_schedules = [make_schedule("rate(1 minute)")]
    desk.advance(timedelta(seconds=10))
    desk.now += 5 * ONE_MINUTE
    desk.advance(timedelta(seconds=10))
    assert len(desk.wires.delivered) == 1


def test_event_is_delivered_to_rules_with_a_matching_pattern(desk: ClockedSchedules) -> None:
    desk.rules = [
        EventBusRule(name="spot", pattern='{"source": ["aws.ec2"]}', targets=(DeliveryTarget(arn="arn:queue"),)),
        EventBusRule(name="health", pattern='{"source": ["aws.health"]}', targets=(DeliveryTarget(arn="arn:queue"),)),
    ]
    desk.bus.put_event({"source": "aws.ec2", "detail": {"instance-id": "i-1"}})
    desk.advance(timedelta(seconds=10))
    [(source, event)] = desk.wires.delivered
    assert source == "rule spot"
    assert '"instance-id": "i-1"' in event
    assert '"time": "2026-11-22T07:58:30Z"' in event


@pytest.mark.parametrize(
    ("target", "tries"),
    [({"max_attempts": 1}, 1), ({"max_attempts": 4}, 4), ({"max_age": timedelta(seconds=60)}, 6)],
    ids=["no retries", "three retries", "maximum age one minute"],
)
def test_rejected_event_is_retried_and_then_becomes_a_dead_letter(
    desk: ClockedSchedules, target: dict[str, object], tries: int
) -> None:
    desk.wires.refusals = 1000
    desk.current_schedules = [make_schedule("cron(59 7 * * ? *)", dead_letter_arn="arn:dead", **target)]
    desk.advance(10 * ONE_MINUTE, timedelta(seconds=1))
    assert desk.wires.tries == tries
    assert desk.wires.dead_letters == [("arn:dead", "not now")]


def test_event_accepted_after_retries_does_not_become_a_dead_letter(desk: ClockedSchedules) -> None:
    desk.wires.refusals = 2
    desk.current_schedules = [make_schedule("cron(59 7 * * ? *)", max_attempts=4)]
    desk.advance(2 * ONE_MINUTE)
    assert len(desk.wires.delivered) == 1
    assert not desk.wires.dead_letters
