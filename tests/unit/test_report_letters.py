"""Who is told of costs, and how often."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count, islice

import msgspec
import pytest

from shared.errors import Forbidden, Unreachable
from shared.ports import World
from shared.report.costs import HOUR, Ledger
from shared.report.days import day
from shared.report.ledger import PREFIX
from shared.report.letters import KIND, LATE, NAME, TELLING, tell_costs
from sim.faults import Call, Killed, Tap, tapped_world
from sim.memory import MemoryBucket, MemoryTable, MemoryTopic
from tests.unit.actions_world import Outside

MORNING = datetime(2026, 11, 22, 8, tzinfo=UTC)
DAY = timedelta(days=1)


class Desk:
    """A bucket with reports, a table, a topic, and whoever tells; a clock that stands."""

    def __init__(self, *days: int) -> None:
        """Begin with reports of *days* of November."""
        self.table, self.bucket, self.topic = MemoryTable(), MemoryBucket(), MemoryTopic()
        self.now, self._outside = MORNING, Outside()
        self.calls: list[Call] = []
        self.tap: Tap = self.calls.append
        self.bucket.put(f"{PREFIX}today.json", b"{}")
        self.report(*days)

    def report(self, *days: int) -> None:
        for number in days:
            begin = datetime(2026, 11, number, tzinfo=UTC)
            one = day(Ledger(since=begin, until=begin + 24 * HOUR), "prod")
            self.bucket.put(f"{PREFIX}{one.day}.json", msgspec.json.encode(one))

    def world(self) -> World:
        ports = {"table": self.table, "bucket": self.bucket, "topic": self.topic}
        world = msgspec.structs.replace(self._outside.world(), **ports, clock=lambda: self.now)
        return tapped_world(world, self._call)

    def _call(self, call: Call) -> None:
        self.tap(call)

    def tell(self, **later: float) -> list[str]:
        """Answer what went wrong."""
        self.now += timedelta(**later)
        return [one.message for one in tell_costs(self.world())]

    def told(self) -> list[str]:
        """Answer of which days, in order."""
        return [subject.rpartition(" ")[2] for subject, _ in self.topic.said]


def failing(method: str, error: Callable[[], BaseException], when: str = "before") -> Tap:
    def tap(call: Call) -> None:
        if (call.method, call.when) == (method, when):
            raise error()

    return tap


def test_a_day_is_told_once_however_often_one_asks() -> None:
    desk = Desk(20, 21)
    for _ in range(3):
        assert desk.tell(minutes=5) == []
    assert desk.told() == ["2026-11-21"]
    assert "as much as on the day before" in desk.topic.said[0][1]


def test_once_it_is_told_a_cycle_makes_one_call_and_without_a_topic_none() -> None:
    desk = Desk(21)
    desk.tell()
    desk.calls.clear()
    desk.tell(minutes=5)
    assert [(one.port, one.method) for one in desk.calls if one.when == "before"] == [("table", "read")]
    desk.calls.clear()
    assert tell_costs(msgspec.structs.replace(desk.world(), topic=None)) == ()
    assert desk.calls == []


def test_before_there_is_a_report_nobody_is_told() -> None:
    desk = Desk()
    assert (desk.tell(), desk.told()) == ([], [])
    desk.report(21)
    assert (desk.tell(minutes=5), desk.told()) == ([], ["2026-11-21"])


def test_whoever_is_told_for_the_first_time_hears_of_yesterday_only() -> None:
    desk = Desk(18, 19, 20, 21)
    desk.tell()
    desk.tell(minutes=5)
    assert desk.told() == ["2026-11-21"]


def test_days_that_were_missed_are_told_one_after_the_other() -> None:
    desk = Desk(21)
    desk.tell()
    desk.report(22, 23, 24)
    desk.now += 3 * DAY
    for _ in range(5):
        desk.tell(minutes=5)
    assert desk.told() == ["2026-11-21", "2026-11-22", "2026-11-23", "2026-11-24"]


def test_what_is_older_than_a_week_is_not_told_any_more() -> None:
    desk = Desk(12, 13, 14)
    desk.now = MORNING - 7 * DAY
    desk.tell()
    desk.report(15, 16, 20, 21)
    desk.now = MORNING + timedelta(hours=1)
    desk.tell()
    desk.tell(minutes=5)
    assert desk.now - (MORNING - 7 * DAY) > LATE
    assert desk.told() == ["2026-11-14", "2026-11-21"]


@pytest.mark.parametrize(
    "place", ["table.read after", "bucket.keys after", "topic.publish before", "table.write after"]
)
def test_of_two_at_once_one_tells(place: str) -> None:
    desk = Desk(21)

    def tap(call: Call) -> None:
        if f"{call.port}.{call.method} {call.when}" == place:
            desk.tap = desk.calls.append
            tell_costs(desk.world())

    desk.tap = tap
    desk.tell()
    assert desk.told() == ["2026-11-21"]


def places() -> list[tuple[str, int]]:
    """Answer every call that is made where a day is told, before it and behind it, by its number."""
    desk = Desk(20, 21)
    desk.tell()
    return [(f"{one.port}.{one.method} {one.when}", number) for number, one in enumerate(desk.calls)]


@pytest.mark.parametrize(("place", "number"), places())
def test_whoever_dies_anywhere_leaves_it_to_the_next_who_tells_it(place: str, number: int) -> None:
    desk, left = Desk(20, 21), count()

    def tap(call: Call) -> None:
        del call
        if next(left) == number:
            raise Killed

    desk.tap = tap
    with pytest.raises(Killed):
        desk.tell()
    desk.tap = desk.calls.append
    desk.tell()
    desk.tell(minutes=5)
    desk.tell(minutes=5)
    calls = [name for name, _ in places()]
    is_unnoted = calls.index("topic.publish after") <= number < len(calls) - 1
    assert desk.told() == ["2026-11-21"] * (2 if is_unnoted else 1), place


def test_what_sns_refuses_is_named_and_tried_again_by_one_at_a_time() -> None:
    desk = Desk(21)
    desk.tap = failing("publish", lambda: Forbidden("kms:GenerateDataKey"))
    assert desk.tell() == ["not told yet: Forbidden: kms:GenerateDataKey"]
    assert desk.tell(minutes=4) == []
    assert desk.tell(minutes=1) == ["not told yet: Forbidden: kms:GenerateDataKey"]
    desk.tap = desk.calls.append
    desk.tell(seconds=TELLING.total_seconds())
    desk.tell(minutes=5)
    assert desk.told() == ["2026-11-21"]


def test_what_cannot_be_told_for_a_week_is_left_to_the_bucket() -> None:
    desk = Desk(21)
    desk.tap = failing("publish", lambda: Forbidden("no"))
    for number in islice(count(22), 9):
        desk.tell()
        desk.report(number)
        desk.now += DAY
    desk.tap = desk.calls.append
    desk.tell()
    desk.tell(minutes=5)
    assert desk.told() == ["2026-11-30"]


def test_a_table_that_does_not_answer_is_named() -> None:
    desk = Desk(21)
    desk.tap = failing("read", lambda: Unreachable("dynamodb"))
    assert desk.tell() == ["not told yet: Unreachable: dynamodb"]


def test_a_report_that_is_none_is_named_once_and_the_next_is_told() -> None:
    desk = Desk(20)
    desk.bucket.put(f"{PREFIX}2026-11-21.json", b"[]")
    assert desk.tell() == ["not told: costs/2026-11-21.json is no report of a day"]
    assert desk.tell(minutes=5) == []
    desk.report(22)
    assert desk.tell(days=1) == []
    assert desk.told() == ["2026-11-22"]
    assert "no report of the day before" in desk.topic.said[0][1]


def test_a_row_that_cannot_be_read_is_written_anew() -> None:
    desk = Desk(21)
    desk.table.write(KIND, NAME, "[]", version=0)
    desk.tell()
    desk.tell(minutes=5)
    assert desk.told() == ["2026-11-21"]
