"""The ledger in the bucket: an hour at a time, a report a day, whoever is ended in between."""

import json
from datetime import timedelta

import msgspec
import pytest

from shared.errors import Unreachable
from shared.model.action import TerminateInstances
from shared.model.cluster import Cluster
from shared.report.costs import HOUR, Ledger
from shared.report.days import Day, day
from shared.report.journal import Done, Entry, key_of
from shared.report.ledger import AT_ONCE, TODAY, keep_costs, read_ledger
from sim.faults import Call, Killed, Tap
from tests.unit.actions_world import Outside
from tests.unit.test_report_costs import claim, fleet

TICK = timedelta(minutes=5)
REPORT = "costs/2026-11-21.json"


class Billing(Outside):
    """A bucket, and a catalog that ticks."""

    def __init__(self, fleet_: Cluster | None = None) -> None:
        """Begin at eight in the morning."""
        super().__init__()
        self.fleet = fleet_ if fleet_ is not None else fleet(claim("a", self.clock.now() - HOUR))
        self.looks = 0
        self.is_down = False

    def look(self) -> Cluster:
        self.looks += 1
        if self.is_down:
            raise Unreachable("kube")
        return self.fleet

    def tick(self, tap: Tap | None = None) -> list[str]:
        return [one.message for one in keep_costs(self.world(tap=tap), self.look)]

    def run(self, duration: timedelta) -> None:
        end = self.clock.now() + duration
        while self.clock.now() < end:
            self.clock.advance(TICK)
            assert self.tick() == []

    def ledger(self) -> Ledger:
        found = read_ledger(self.bucket)
        assert found is not None
        return found

    def report(self) -> Day:
        return msgspec.json.decode(self.bucket.get(REPORT), type=Day)


def test_a_ledger_begins_with_the_hour_in_which_it_is_first_looked_for() -> None:
    some = Billing()
    some.clock.advance(timedelta(minutes=17))
    some.tick()
    assert some.ledger() == Ledger(since=some.clock.now().replace(minute=0), until=some.clock.now().replace(minute=0))
    assert some.looks == 0


def test_an_hour_is_billed_once_and_a_little_after_it_is_over() -> None:
    some = Billing()
    some.run(HOUR)
    assert (some.ledger().lives, some.looks) == ((), 0)
    some.run(TICK)
    [life] = some.ledger().lives
    assert (life.hours, some.looks) == (1.0, 1)
    some.run(HOUR - TICK)
    assert some.looks == 1


def test_at_midnight_the_day_is_reported_and_a_new_one_begins() -> None:
    some = Billing()
    some.run(timedelta(hours=18))
    report = some.report()
    assert (report.day, report.node_hours, report.usd) == ("2026-11-21", 16.0, 0.64)
    assert some.ledger().since == report.until
    [line] = [json.loads(line) for line in some.lines]
    assert line == {"service": "joiner", "costs": "2026-11-21", "usd": 0.64, "nodeHours": 16.0}


def test_who_slept_catches_up_some_hours_at_a_time() -> None:
    some = Billing()
    some.tick()
    some.clock.advance(timedelta(hours=AT_ONCE + 1, minutes=10))
    some.tick()
    assert some.ledger().until == some.ledger().since + AT_ONCE * HOUR
    some.tick()
    assert some.ledger().until == some.ledger().since + (AT_ONCE + 1) * HOUR


def test_the_journal_of_the_hour_is_read_and_of_no_other() -> None:
    some = Billing()
    some.tick()
    begin = some.clock.now()
    for minutes, function in ((30, "lifecycle"), (90, "lifecycle")):
        action = TerminateInstances(instance_ids=("i-a",), why="drained")
        ends = Entry(
            function=function,
            trigger="schedule",
            at=begin + timedelta(minutes=minutes),
            cluster="",
            done=(Done(action=action, result="done"),),
        )
        some.bucket.put(key_of(ends, "one"), msgspec.json.encode(ends))
    some.bucket.put("journal/lifecycle/2026/11/21/080001-odd.json", b"{")
    read: list[str] = []
    some.clock.advance(HOUR + TICK)
    some.tick(lambda call: read.append(call.detail) if call.method == "get" and call.when == "after" else None)
    assert [life.hours for life in some.ledger().lives] == [0.5]
    assert [key for key in read if key.startswith("journal/")] == [
        "journal/lifecycle/2026/11/21/080001-odd.json",
        "journal/lifecycle/2026/11/21/083000-one.json",
    ]


def test_killed_at_any_call_the_next_tick_leaves_the_same_report() -> None:
    whole = Billing()
    whole.run(timedelta(hours=17))
    calls = _calls_at_midnight(None)
    assert len(calls) > 5
    for number in range(len(calls)):
        some = Billing()
        some.run(timedelta(hours=16))
        some.clock.advance(TICK)
        with pytest.raises(Killed):
            some.tick(_killing(number))
        some.run(timedelta(minutes=55))
        assert some.report() == whole.report()
        assert some.ledger() == whole.ledger()


def _calls_at_midnight(tap: Tap | None) -> list[Call]:
    some = Billing()
    some.run(timedelta(hours=16))
    some.clock.advance(TICK)
    some.calls.clear()
    some.tick(tap)
    return [call for call in some.calls if call.port == "bucket"]


def _killing(number: int) -> Tap:
    seen: list[Call] = []

    def tap(call: Call) -> None:
        seen.append(call)
        if len(seen) == number + 1:
            raise Killed

    return tap


def test_a_report_that_is_there_stays_as_it_is() -> None:
    some = Billing()
    some.run(timedelta(hours=16))
    some.bucket.put(REPORT, msgspec.json.encode(day(some.ledger(), "earlier")))
    some.run(TICK)
    assert some.report().cluster == "earlier"
    assert f"{some.ledger().since:%d}" == "22"


@pytest.mark.parametrize("port", ["bucket", "kube"])
def test_what_cannot_be_read_is_told_and_billed_later(port: str) -> None:
    some = Billing()
    some.tick()
    some.clock.advance(HOUR + TICK)

    def down(call: Call) -> None:
        if call.port == "bucket" and port == "bucket":
            raise Unreachable("s3")

    some.is_down = port == "kube"
    [message] = some.tick(down)
    assert message.startswith("not billed yet: Unreachable: ")
    assert some.ledger().until == some.ledger().since


def test_a_ledger_that_cannot_be_read_is_begun_anew() -> None:
    some = Billing()
    some.bucket.put(TODAY, b"{")
    some.tick()
    assert some.ledger().since == some.clock.now()
