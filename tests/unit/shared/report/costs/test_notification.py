"""Cost notifications: which reports are published, and how often."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count, islice

import msgspec
import pytest

from shared.errors import Forbidden, Unreachable
from shared.ports.world import World
from shared.report.costs.cost_ledger import ONE_HOUR, CostLedger
from shared.report.costs.daily_report import build_daily_report
from shared.report.costs.ledger_store import COSTS_PREFIX
from shared.report.costs.notification import MAX_REPORT_AGE, PUBLISH_TIMEOUT, ROW_KIND, ROW_NAME, publish_cost_report
from sim.fault_tap import Killed, PortCall, Tap, tap_world
from sim.world.memory_ports import MemoryBucket, MemoryTable, MemoryTopic
from tests.support.actions_world import Outside

MORNING = datetime(2026, 11, 22, 8, tzinfo=UTC)
ONE_DAY = timedelta(days=1)


class Desk:
    """A bucket with reports, a table, a topic, and a clock that only moves when it is set."""

    def __init__(self, *days: int) -> None:
        """Start with reports of *days* of November."""
        self.table, self.bucket, self.topic = MemoryTable(), MemoryBucket(), MemoryTopic()
        self.now, self._outside = MORNING, Outside()
        self.calls: list[PortCall] = []
        self.tap: Tap = self.calls.append
        self.bucket.put(f"{COSTS_PREFIX}today.json", b"{}")
        self.put_reports(*days)

    def put_reports(self, *days: int) -> None:
        for number in days:
            begin = datetime(2026, 11, number, tzinfo=UTC)
            report = build_daily_report(CostLedger(since=begin, until=begin + 24 * ONE_HOUR), "prod")
            self.bucket.put(f"{COSTS_PREFIX}{report.day}.json", msgspec.json.encode(report))

    def build_world(self) -> World:
        ports = {"table": self.table, "bucket": self.bucket, "topic": self.topic}
        world = msgspec.structs.replace(self._outside.build_world(), **ports, clock=lambda: self.now)
        return tap_world(world, self._call)

    def _call(self, call: PortCall) -> None:
        self.tap(call)

    def publish(self, **later: float) -> list[str]:
        """Advance the clock, publish the next report and return the messages of the problems."""
        self.now += timedelta(**later)
        return [problem.message for problem in publish_cost_report(self.build_world())]

    def list_published_days(self) -> list[str]:
        """Return the days of the published reports, in order."""
        return [subject.rpartition(" ")[2] for subject, _ in self.topic.published_messages]


def make_failing_tap(method: str, error: Callable[[], BaseException], when: str = "before") -> Tap:
    def raise_error(call: PortCall) -> None:
        if (call.method, call.phase) == (method, when):
            raise error()

    return raise_error


def test_daily_report_is_published_once() -> None:
    desk = Desk(20, 21)
    for _ in range(3):
        assert desk.publish(minutes=5) == []
    assert desk.list_published_days() == ["2026-11-21"]
    assert "the same as on the previous day" in desk.topic.published_messages[0][1]


def test_published_report_costs_one_table_read_per_cycle() -> None:
    desk = Desk(21)
    desk.publish()
    desk.calls.clear()
    desk.publish(minutes=5)
    assert [(call.port, call.method) for call in desk.calls if call.phase == "before"] == [("table", "read")]
    desk.calls.clear()
    assert publish_cost_report(msgspec.structs.replace(desk.build_world(), topic=None)) == ()
    assert desk.calls == []


def test_no_notification_is_published_without_a_report() -> None:
    desk = Desk()
    assert (desk.publish(), desk.list_published_days()) == ([], [])
    desk.put_reports(21)
    assert (desk.publish(minutes=5), desk.list_published_days()) == ([], ["2026-11-21"])


def test_first_notification_covers_only_the_previous_day() -> None:
    desk = Desk(18, 19, 20, 21)
    desk.publish()
    desk.publish(minutes=5)
    assert desk.list_published_days() == ["2026-11-21"]


def test_missed_daily_reports_are_published_in_order() -> None:
    desk = Desk(21)
    desk.publish()
    desk.put_reports(22, 23, 24)
    desk.now += 3 * ONE_DAY
    for _ in range(5):
        desk.publish(minutes=5)
    assert desk.list_published_days() == ["2026-11-21", "2026-11-22", "2026-11-23", "2026-11-24"]


def test_reports_older_than_a_week_are_not_published() -> None:
    desk = Desk(12, 13, 14)
    desk.now = MORNING - 7 * ONE_DAY
    desk.publish()
    desk.put_reports(15, 16, 20, 21)
    desk.now = MORNING + timedelta(hours=1)
    desk.publish()
    desk.publish(minutes=5)
    assert desk.now - (MORNING - 7 * ONE_DAY) > MAX_REPORT_AGE
    assert desk.list_published_days() == ["2026-11-14", "2026-11-21"]


@pytest.mark.parametrize(
    "place", ["table.read after", "bucket.list_keys after", "topic.publish before", "table.write after"]
)
def test_concurrent_publishers_publish_one_notification(place: str) -> None:
    desk = Desk(21)

    def publish_concurrently(call: PortCall) -> None:
        if f"{call.port}.{call.method} {call.phase}" == place:
            desk.tap = desk.calls.append
            publish_cost_report(desk.build_world())

    desk.tap = publish_concurrently
    desk.publish()
    assert desk.list_published_days() == ["2026-11-21"]


def list_call_points() -> list[tuple[str, int]]:
    """Return the name and the number of every call before, during and after a report is published."""
    desk = Desk(20, 21)
    desk.publish()
    return [(f"{call.port}.{call.method} {call.phase}", number) for number, call in enumerate(desk.calls)]


@pytest.mark.parametrize(("place", "number"), list_call_points())
def test_report_is_published_after_a_crash_at_any_call(place: str, number: int) -> None:
    desk, call_numbers = Desk(20, 21), count()

    def kill_at_number(call: PortCall) -> None:
        del call
        if next(call_numbers) == number:
            raise Killed

    desk.tap = kill_at_number
    with pytest.raises(Killed):
        desk.publish()
    desk.tap = desk.calls.append
    desk.publish()
    desk.publish(minutes=5)
    desk.publish(minutes=5)
    calls = [name for name, _ in list_call_points()]
    is_unnoted = calls.index("topic.publish after") <= number < len(calls) - 1
    assert desk.list_published_days() == ["2026-11-21"] * (2 if is_unnoted else 1), place


def test_failed_publish_is_reported_and_retried_after_a_timeout() -> None:
    desk = Desk(21)
    desk.tap = make_failing_tap("publish", lambda: Forbidden("kms:GenerateDataKey"))
    assert desk.publish() == ["not sent yet: Forbidden: kms:GenerateDataKey"]
    assert desk.publish(minutes=4) == []
    assert desk.publish(minutes=1) == ["not sent yet: Forbidden: kms:GenerateDataKey"]
    desk.tap = desk.calls.append
    desk.publish(seconds=PUBLISH_TIMEOUT.total_seconds())
    desk.publish(minutes=5)
    assert desk.list_published_days() == ["2026-11-21"]


def test_reports_that_failed_for_a_week_are_not_published_later() -> None:
    desk = Desk(21)
    desk.tap = make_failing_tap("publish", lambda: Forbidden("no"))
    for number in islice(count(22), 9):
        desk.publish()
        desk.put_reports(number)
        desk.now += ONE_DAY
    desk.tap = desk.calls.append
    desk.publish()
    desk.publish(minutes=5)
    assert desk.list_published_days() == ["2026-11-30"]


def test_unreachable_table_is_reported() -> None:
    desk = Desk(21)
    desk.tap = make_failing_tap("read", lambda: Unreachable("dynamodb"))
    assert desk.publish() == ["not sent yet: Unreachable: dynamodb"]


def test_invalid_report_is_reported_once_and_the_next_report_is_published() -> None:
    desk = Desk(20)
    desk.bucket.put(f"{COSTS_PREFIX}2026-11-21.json", b"[]")
    assert desk.publish() == ["not sent: costs/2026-11-21.json is not a daily report"]
    assert desk.publish(minutes=5) == []
    desk.put_reports(22)
    assert desk.publish(days=1) == []
    assert desk.list_published_days() == ["2026-11-22"]
    assert "no report for the previous day" in desk.topic.published_messages[0][1]


def test_unreadable_notification_row_is_rewritten() -> None:
    desk = Desk(21)
    desk.table.write(ROW_KIND, ROW_NAME, "[]", version=0)
    desk.publish()
    desk.publish(minutes=5)
    assert desk.list_published_days() == ["2026-11-21"]
