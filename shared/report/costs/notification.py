"""Daily cost notifications: each report is published at least once, twice only after a crash.

The row ``costs/told`` of the table holds the last day that was published, and since when a function has been publishing
the next one. A function that finds an unpublished report claims the row, publishes, and records the day; of several
concurrent functions the table lets one claim the row. If that function dies, or SNS does not respond, the row is free
again after `PUBLISH_TIMEOUT`, and the next function publishes: a report is published twice if the function died between
the publication and its record, and is never lost. A report that could not be published for `MAX_REPORT_AGE` is only in
the bucket. Without an earlier publication, as after the topic was configured, the first report is yesterday's.
"""

import re
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.errors import Conflict, Fault, NotFound
from shared.model.core.metadata import Problem
from shared.ports.messaging import Topic
from shared.ports.storage import Bucket, TableRow
from shared.ports.world import World
from shared.report.costs.cost_ledger import get_day_start
from shared.report.costs.daily_report import DailyReport
from shared.report.costs.ledger_store import COSTS_PREFIX
from shared.report.costs.notification_text import format_message, format_subject
from shared.store.table_rows import decode_body

ROW_KIND: Final = "costs"
ROW_NAME: Final = "told"
PUBLISH_TIMEOUT: Final = timedelta(minutes=5)
"""Longer than `catalog` can run: a function that claimed the row this long ago is not running any more."""
MAX_REPORT_AGE: Final = timedelta(days=7)
_REPORT_KEY: Final = re.compile(rf"{COSTS_PREFIX}(\d{{4}}-\d\d-\d\d)\.json")
_ONE_DAY: Final = timedelta(days=1)


class NotificationState(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The body of the row."""

    day: str = ""
    """The last published day; "": none."""
    since: datetime | None = None
    """Since when a function has been publishing the next day."""


def publish_cost_report(world: World) -> tuple[Problem, ...]:
    """Publish the next unpublished daily report, if there is one.

    Return the errors; the next cycle tries again.
    """
    if world.topic is None:
        return ()
    try:
        return _publish_next_report(world, world.topic)
    except Conflict:  # another function publishes it
        return ()
    except Fault as fault:
        return (_build_problem(world, f"not sent yet: {type(fault).__name__}: {fault}"),)


def _publish_next_report(world: World, topic: Topic) -> tuple[Problem, ...]:
    now, row = world.clock(), world.table.read(ROW_KIND, ROW_NAME)
    state = _decode_state(row, now)
    yesterday = f"{get_day_start(now) - _ONE_DAY:%Y-%m-%d}"
    if state.day >= yesterday or (state.since is not None and now - state.since < PUBLISH_TIMEOUT):
        return ()
    next_day = _find_next_day(world.bucket, state.day, yesterday)
    if not next_day:
        return ()
    expires_at = row.expires_at if row is not None and not row.is_expired(now) else now + MAX_REPORT_AGE
    version = row.version if row is not None else 0
    claimed_row = _write_state(world, NotificationState(day=state.day, since=now), version, expires_at)
    report, previous_report = (
        _read_report(world.bucket, next_day),
        _read_report(world.bucket, _get_previous_day(next_day)),
    )
    if report is not None:
        topic.publish(format_subject(report), format_message(report, previous_report))
    _write_state(world, NotificationState(day=next_day), claimed_row.version, now + MAX_REPORT_AGE)
    return (
        ()
        if report is not None
        else (_build_problem(world, f"not sent: {COSTS_PREFIX}{next_day}.json is not a daily report"),)
    )


def _find_next_day(bucket: Bucket, last_day: str, yesterday: str) -> str:
    """Return the first day with a report after *last_day*, "" if there is none."""
    days = [match[1] for key in bucket.list_keys(COSTS_PREFIX) if (match := _REPORT_KEY.fullmatch(key))]
    return next((day for day in days if (last_day < day if last_day else day == yesterday)), "")


def _decode_state(row: TableRow | None, now: datetime) -> NotificationState:
    current_row = None if row is None or row.is_expired(now) else row
    return decode_body(current_row, NotificationState) or NotificationState()


def _write_state(world: World, state: NotificationState, version: int, expires_at: datetime | None) -> TableRow:
    return world.table.write(
        ROW_KIND, ROW_NAME, msgspec.json.encode(state).decode(), version=version, expires_at=expires_at
    )


def _read_report(bucket: Bucket, day: str) -> DailyReport | None:
    try:
        return msgspec.json.decode(bucket.get(f"{COSTS_PREFIX}{day}.json"), type=DailyReport)
    except (NotFound, msgspec.DecodeError):
        return None


def _get_previous_day(day: str) -> str:
    return f"{datetime.fromisoformat(day) - _ONE_DAY:%Y-%m-%d}"


def _build_problem(world: World, message: str) -> Problem:
    return Problem(kind="Costs", name=world.settings.cluster_name, message=message)
