"""Tells people once a day what nodes cost: at least once, and once only unless somebody died between two calls.

The row ``costs/told`` of the table says which day was told last, and who is at it. Whoever finds a report that was not
told yet takes the row, publishes, and writes down that it is told; the table lets one take it, of several at once. If
he dies, or SNS does not answer, the row is free again after `TELLING`, and the next one tells: a report is told twice
where the one before died between the publication and its note, and is never lost. What could not be told for `LATE` is
in the bucket only. Where nobody was told before, as after the topic was named, the last day is the first.
"""

import re
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.errors import Conflict, Fault, Gone
from shared.model.objects import Problem
from shared.ports import Bucket, Row, Topic, World
from shared.report.costs import day_of
from shared.report.days import Day
from shared.report.ledger import PREFIX
from shared.report.letter import subject, text

KIND: Final = "costs"
NAME: Final = "told"
TELLING: Final = timedelta(minutes=5)
"""Longer than `catalog` may take: whoever has the row for so long is no more."""
LATE: Final = timedelta(days=7)
_REPORT: Final = re.compile(rf"{PREFIX}(\d{{4}}-\d\d-\d\d)\.json")
_DAY: Final = timedelta(days=1)


class Told(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the row says."""

    day: str = ""
    """The last that was told; "": none was."""
    since: datetime | None = None
    """Somebody tells the next since then."""


def tell_costs(world: World) -> tuple[Problem, ...]:
    """Tell the topic of the next day that it was not told of, if there is a report of one.

    Answers what went wrong; the next cycle tries again.
    """
    if world.topic is None:
        return ()
    try:
        return _tell(world, world.topic)
    except Conflict:  # somebody else tells it
        return ()
    except Fault as fault:
        return (_problem(world, f"not told yet: {type(fault).__name__}: {fault}"),)


def _tell(world: World, topic: Topic) -> tuple[Problem, ...]:
    now, row = world.clock(), world.table.read(KIND, NAME)
    known = _read(row, now)
    yesterday = f"{day_of(now) - _DAY:%Y-%m-%d}"
    if known.day >= yesterday or (known.since is not None and now - known.since < TELLING):
        return ()
    name = _next(world.bucket, known.day, yesterday)
    if not name:
        return ()
    expires = row.expires_at if row is not None and _lasts(row, now) else now + LATE
    version = row.version if row is not None else 0
    taken = _write(world, Told(day=known.day, since=now), version, expires)
    one, before = _report(world.bucket, name), _report(world.bucket, _before(name))
    if one is not None:
        topic.publish(subject(one), text(one, before))
    _write(world, Told(day=name), taken.version, now + LATE)
    return () if one is not None else (_problem(world, f"not told: {PREFIX}{name}.json is no report of a day"),)


def _next(bucket: Bucket, told: str, yesterday: str) -> str:
    """Answer the first day with a report after that which was *told*, "" if there is none."""
    days = [found[1] for key in bucket.keys(PREFIX) if (found := _REPORT.fullmatch(key))]
    return next((one for one in days if (told < one if told else one == yesterday)), "")


def _read(row: Row | None, now: datetime) -> Told:
    if row is None or not _lasts(row, now):
        return Told()
    try:
        return msgspec.json.decode(row.body, type=Told)
    except msgspec.DecodeError:
        return Told()


def _lasts(row: Row, now: datetime) -> bool:
    return row.expires_at is None or row.expires_at > now


def _write(world: World, told: Told, version: int, expires_at: datetime | None) -> Row:
    return world.table.write(KIND, NAME, msgspec.json.encode(told).decode(), version=version, expires_at=expires_at)


def _report(bucket: Bucket, day: str) -> Day | None:
    try:
        return msgspec.json.decode(bucket.get(f"{PREFIX}{day}.json"), type=Day)
    except (Gone, msgspec.DecodeError):
        return None


def _before(day: str) -> str:
    return f"{datetime.fromisoformat(day) - _DAY:%Y-%m-%d}"


def _problem(world: World, message: str) -> Problem:
    return Problem(kind="Costs", name=world.settings.cluster_name, message=message)
