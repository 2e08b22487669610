"""Billing: updates the cost ledger in the bucket hour by hour, and writes the day's report when the day is over.

``costs/today.json`` is the ledger. A function that is killed between two calls leaves it unchanged, or leaves the
report written and the ledger not yet advanced: the next function repeats the work, and an existing report stays as it
is.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.errors import Fault, NotFound
from shared.model.core.metadata import Problem
from shared.ports.storage import Bucket
from shared.ports.world import World
from shared.report.costs.commitment_usage import with_commitment_hour
from shared.report.costs.cost_ledger import (
    ONE_HOUR,
    CostLedger,
    begin_next_day,
    bill_until,
    get_day_start,
    get_hour_start,
)
from shared.report.costs.daily_report import build_daily_report
from shared.report.journal import journal
from shared.report.journal.journal import JournalEntry, decode_entry
from shared.report.log import log
from shared.state.cluster_state import ClusterState

COSTS_PREFIX: Final = "costs/"
LEDGER_KEY: Final = f"{COSTS_PREFIX}today.json"
BILLED_FUNCTIONS: Final = ("disrupt", "interrupt", "lifecycle", "provision")
"""Functions with journal entries about nodes: requested, launched, terminated, saved."""
ENTRY_DELAY: Final = timedelta(minutes=2)
"""How long after an hour its last cycles have written their entries."""
MAX_HOURS_PER_CYCLE: Final = 3
"""Overdue hours that one cycle bills: an hour of a busy cluster is a thousand entries."""


def build_report_key(ledger: CostLedger) -> str:
    """Return the bucket key of the report of the ledger's day."""
    return f"{COSTS_PREFIX}{ledger.day:%Y-%m-%d}.json"


def read_ledger(bucket: Bucket) -> CostLedger | None:
    """Return the ledger, None if there is none or it cannot be decoded.

    Raises:
        Fault: the bucket could not be read.
    """
    try:
        return msgspec.json.decode(bucket.get(LEDGER_KEY), type=CostLedger)
    except (NotFound, msgspec.DecodeError):
        return None


def bill_costs(world: World, read_fleet: Callable[[], ClusterState]) -> tuple[Problem, ...]:
    """Bill the hours that are over, if any; *read_fleet* lists nodes, claims and pods, and is called once at most.

    Return what could not be read; then nothing is billed, and the next cycle tries again.
    """
    now = world.clock()
    try:
        ledger = read_ledger(world.bucket)
        if ledger is None:
            start = get_hour_start(now)
            _write_object(LEDGER_KEY, CostLedger(since=start, until=start), world.bucket)
        elif _is_over(ledger, now):
            _bill_hours(ledger, read_fleet(), now, world)
    except Fault as fault:
        message = f"not included yet: {type(fault).__name__}: {fault}"
        return (Problem(kind="Costs", name=world.settings.cluster_name, message=message),)
    return ()


def _bill_hours(ledger: CostLedger, fleet_state: ClusterState, now: datetime, world: World) -> None:
    label, catalog = world.settings.cost_label, fleet_state.snapshot.catalog
    for _ in range(MAX_HOURS_PER_CYCLE):
        if not _is_over(ledger, now):
            break
        until = ledger.until + ONE_HOUR
        ledger = bill_until(ledger, read_hour_entries(world.bucket, ledger.until), fleet_state, label, until)
        ledger = with_commitment_hour(ledger, catalog.commitments if catalog is not None else None)
        if until == get_day_start(until):
            _write_report(ledger, world)
            ledger = begin_next_day(ledger)
        _write_object(LEDGER_KEY, ledger, world.bucket)


def _is_over(ledger: CostLedger, now: datetime) -> bool:
    """Return whether another hour can be billed."""
    return now - ledger.until >= ONE_HOUR + ENTRY_DELAY


def _write_report(ledger: CostLedger, world: World) -> None:
    """Write the day's report, unless it exists, and a line about it to the log."""
    key = build_report_key(ledger)
    if key in world.bucket.list_keys(key):
        return
    report = build_daily_report(ledger, world.settings.cluster_name, world.settings.cost_label)
    _write_object(key, report, world.bucket)
    fields = {"costs": report.day, "usd": report.usd, "nodeHours": report.node_hours}
    log("INFO", "daily cost report written", world, fields)


def read_hour_entries(bucket: Bucket, hour: datetime) -> Iterator[JournalEntry]:
    """Yield the journal entries of the hour that begins at *hour*; undecodable entries are skipped.

    Raises:
        Fault: the bucket could not be read.
    """
    for function in BILLED_FUNCTIONS:
        for key in bucket.list_keys(f"{journal.JOURNAL_PREFIX}{function}/{hour:%Y/%m/%d/%H}"):
            try:
                yield decode_entry(bucket.get(key))
            except (NotFound, msgspec.DecodeError):
                continue


def _write_object(key: str, body: msgspec.Struct, bucket: Bucket) -> None:
    bucket.put(key, msgspec.json.encode(body, order="deterministic"))
