"""Schedules that ring by the clock, and what becomes of what nobody takes."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from sim.sandboxes.bus import Bus, Rule
from sim.sandboxes.deliveries import Deliveries, Target, Undelivered
from sim.sandboxes.schedules import Schedule, Schedules
from sim.sandboxes.workers import Workers

MINUTE = timedelta(minutes=1)
START = datetime(2026, 11, 22, 7, 58, 30, tzinfo=UTC)


class Wires:
    """Remembers what was delivered; *refusals* come first."""

    def __init__(self) -> None:
        """Refuse nothing."""
        self.refusals = 0
        self.delivered: list[tuple[str, str]] = []
        self.tries = 0
        self.buried: list[tuple[str, str]] = []

    def deliver(self, target: Target, event: str, by: str) -> None:
        del target
        self.tries += 1
        if self.refusals:
            self.refusals -= 1
            raise Undelivered("not now")
        self.delivered.append((by, event))

    def bury(self, target: Target, event: str, why: str) -> None:
        del event
        self.buried.append((target.dead_letters_arn, why))


class Desk:
    """Schedules on a clock that is moved by hand."""

    def __init__(self) -> None:
        """Begin half a minute before the second last minute of an hour."""
        self.now, self.wires, self.workers = START, Wires(), Workers(1)
        self.there: list[Schedule] = []
        self.rules: list[Rule] = []
        self.deliveries = Deliveries(self.wires, self.workers, lambda: self.now)
        self.schedules = Schedules(lambda: self.there, self.deliveries, lambda: self.now)
        self.bus = Bus(lambda: self.rules, self.deliveries, lambda: self.now, account="1", region="here")

    def passes(self, duration: timedelta, step: timedelta = timedelta(seconds=10)) -> None:
        end = self.now + duration
        while self.now <= end:
            self.schedules.look()
            self.deliveries.look()
            self._settle()
            self.now += step
        self.now = end

    def _settle(self) -> None:
        """Wait for the worker: it is one, so that what is asked last is done last."""
        done = threading.Event()
        self.workers.start(done.set)
        assert done.wait(600)


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.workers.end()
    assert not made.workers.broken


def schedule(expression: str, **target: object) -> Schedule:
    return Schedule(name="tick", expression=expression, targets=(Target(arn="arn:tiny", **target),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expression", "rings"), [("rate(1 minute)", 10), ("rate(5 minutes)", 2), ("cron(0 8 * * ? *)", 1)]
)
def test_a_schedule_rings_when_it_is_due(desk: Desk, expression: str, rings: int) -> None:
    desk.there = [schedule(expression, input='{"source": "schedule"}')]
    desk.passes(10 * MINUTE)
    assert desk.wires.delivered == [("schedule tick", '{"source": "schedule"}')] * rings


def test_without_an_input_the_event_says_that_it_is_a_schedules(desk: Desk) -> None:
    desk.there = [schedule("rate(1 minute)")]
    desk.passes(MINUTE)
    [(_, event)] = desk.wires.delivered
    assert '"detail-type":"Scheduled Event"' in event


def test_everything_may_be_rung_by_hand(desk: Desk) -> None:
    desk.there = [schedule("rate(1 hour)")]
    desk.passes(timedelta(seconds=10))
    desk.schedules.ring()
    desk.passes(timedelta(seconds=10))
    assert len(desk.wires.delivered) == 1


def test_a_schedule_that_is_gone_rings_no_more(desk: Desk) -> None:
    desk.there = [schedule("rate(1 minute)")]
    desk.passes(MINUTE)
    desk.there = []
    desk.passes(5 * MINUTE)
    assert len(desk.wires.delivered) == 1


def test_one_that_ends_rings_no_more(desk: Desk) -> None:
    desk.there = [schedule("cron(0 8 * * ? 2026-2026)"), schedule("cron(0 8 * * ? 2025)")]
    desk.passes(10 * MINUTE)
    assert len(desk.wires.delivered) == 1


def test_a_schedule_that_nobody_looked_at_for_long_rings_once(desk: Desk) -> None:
    desk.there = [schedule("rate(1 minute)")]
    desk.passes(timedelta(seconds=10))
    desk.now += 5 * MINUTE
    desk.passes(timedelta(seconds=10))
    assert len(desk.wires.delivered) == 1


def test_an_event_goes_to_whoever_waits_for_its_like(desk: Desk) -> None:
    desk.rules = [
        Rule(name="spot", pattern='{"source": ["aws.ec2"]}', targets=(Target(arn="arn:queue"),)),
        Rule(name="health", pattern='{"source": ["aws.health"]}', targets=(Target(arn="arn:queue"),)),
    ]
    desk.bus.put({"source": "aws.ec2", "detail": {"instance-id": "i-1"}})
    desk.passes(timedelta(seconds=10))
    [(by, event)] = desk.wires.delivered
    assert by == "rule spot"
    assert '"instance-id": "i-1"' in event
    assert '"time": "2026-11-22T07:58:30Z"' in event


@pytest.mark.parametrize(
    ("target", "tries"),
    [({"attempts": 1}, 1), ({"attempts": 4}, 4), ({"max_age": timedelta(seconds=60)}, 6)],
    ids=["never again", "three times", "for a minute"],
)
def test_what_is_not_taken_is_offered_again_and_then_buried(desk: Desk, target: dict[str, object], tries: int) -> None:
    desk.wires.refusals = 1000
    desk.there = [schedule("cron(59 7 * * ? *)", dead_letters_arn="arn:dead", **target)]
    desk.passes(10 * MINUTE, timedelta(seconds=1))
    assert desk.wires.tries == tries
    assert desk.wires.buried == [("arn:dead", "not now")]


def test_what_is_taken_in_the_end_is_not_buried(desk: Desk) -> None:
    desk.wires.refusals = 2
    desk.there = [schedule("cron(59 7 * * ? *)", attempts=4)]
    desk.passes(2 * MINUTE)
    assert len(desk.wires.delivered) == 1
    assert not desk.wires.buried
