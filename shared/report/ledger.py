"""Keeps the cost ledger in the bucket, an hour at a time, and writes the day's report once the day is over.

``costs/today.json`` is the ledger. Whoever is ended between two calls leaves it as it was, or the report written and
the ledger not yet turned: the next one does the same again, and a report that is there already stays as it is.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.errors import Fault, Gone
from shared.model.cluster import Cluster
from shared.model.objects import Problem
from shared.ports import Bucket, World
from shared.report import journal
from shared.report.costs import HOUR, Ledger, billed, day_of, hour_of, next_day
from shared.report.days import day
from shared.report.journal import Entry, read_entry

PREFIX: Final = "costs/"
TODAY: Final = f"{PREFIX}today.json"
FUNCTIONS: Final = ("disrupt", "interrupt", "lifecycle", "provision")
"""Whose entries tell of machines: asked for, launched, ended, saved."""
SETTLED: Final = timedelta(minutes=2)
"""So long after an hour its last cycles have written their entries."""
AT_ONCE: Final = 3
"""Hours that one cycle catches up with: an hour of a busy cluster is a thousand entries."""


def key_of(ledger: Ledger) -> str:
    """Answer where the report of its day lies."""
    return f"{PREFIX}{ledger.day:%Y-%m-%d}.json"


def read_ledger(bucket: Bucket) -> Ledger | None:
    """Answer the ledger, None if there is none that can be read.

    Raises:
        Fault: the bucket could not be read.
    """
    try:
        return msgspec.json.decode(bucket.get(TODAY), type=Ledger)
    except (Gone, msgspec.DecodeError):
        return None


def keep_costs(world: World, look: Callable[[], Cluster]) -> tuple[Problem, ...]:
    """Bill the hours that are over, if any is; *look* lists nodes, claims and pods, and is called once at most.

    Answers what could not be read; then nothing is billed, and the next cycle does.
    """
    now = world.clock()
    try:
        ledger = read_ledger(world.bucket)
        if ledger is None:
            start = hour_of(now)
            _write(TODAY, Ledger(since=start, until=start), world.bucket)
        elif _is_over(ledger, now):
            _catch_up(ledger, look(), now, world)
    except Fault as fault:
        message = f"not billed yet: {type(fault).__name__}: {fault}"
        return (Problem(kind="Costs", name=world.settings.cluster_name, message=message),)
    return ()


def _catch_up(ledger: Ledger, fleet: Cluster, now: datetime, world: World) -> None:
    label = world.settings.cost_label
    for _ in range(AT_ONCE):
        if not _is_over(ledger, now):
            break
        until = ledger.until + HOUR
        ledger = billed(ledger, entries(world.bucket, ledger.until), fleet, label, until)
        if until == day_of(until):
            _close(ledger, world)
            ledger = next_day(ledger)
        _write(TODAY, ledger, world.bucket)


def _is_over(ledger: Ledger, now: datetime) -> bool:
    """Whether there is an hour more that can be billed."""
    return now - ledger.until >= HOUR + SETTLED


def _close(ledger: Ledger, world: World) -> None:
    """Write the day's report, unless it is there, and a line of it to the log."""
    key = key_of(ledger)
    if key in world.bucket.keys(key):
        return
    report = day(ledger, world.settings.cluster_name, world.settings.cost_label)
    _write(key, report, world.bucket)
    said = {"service": "joiner", "costs": report.day, "usd": report.usd, "nodeHours": report.node_hours}
    world.emit(msgspec.json.encode(said).decode())


def entries(bucket: Bucket, hour: datetime) -> Iterator[Entry]:
    """Iterate over the journal of the hour that begins at *hour*; what is no entry is passed over.

    Raises:
        Fault: the bucket could not be read.
    """
    for function in FUNCTIONS:
        for key in bucket.keys(f"{journal.PREFIX}{function}/{hour:%Y/%m/%d/%H}"):
            try:
                yield read_entry(bucket.get(key))
            except (Gone, msgspec.DecodeError):
                continue


def _write(key: str, body: msgspec.Struct, bucket: Bucket) -> None:
    bucket.put(key, msgspec.json.encode(body, order="deterministic"))
