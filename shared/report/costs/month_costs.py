"""The costs of the current month for a monthly budget: the reports of its days, and the ledger of today.

They are stored as one row of the table, so that planning reads one item. The reports of past days are read once.
"""

from datetime import datetime
from typing import Final

import msgspec

from shared.errors import Fault, NotFound
from shared.model.core.metadata import Problem
from shared.model.decisions.month_costs import MonthCosts, format_month
from shared.ports.storage import Bucket, Table
from shared.ports.world import World
from shared.report.costs.daily_report import DailyReport, compute_paid_usd
from shared.report.costs.ledger_store import COSTS_PREFIX, LEDGER_KEY, read_ledger
from shared.store.table_rows import decode_body, encode_body, try_write

PROBLEM_KIND: Final = "MonthlyBudget"
ROW_KIND: Final = "month-costs"
ROW_NAME: Final = "month"


def update_month_costs(world: World) -> tuple[MonthCosts | None, tuple[Problem, ...]]:
    """Store the costs of the month so far if there is a monthly budget; return them, and what could not be read."""
    if not world.settings.monthly_budget_usd or world.settings.mode == "plan":
        return None, ()
    try:
        row = read_month_costs(world)
        costs = compute_month_costs(world.bucket, None if row is None else row[0], world.clock())
        if costs is not None and (row is None or costs != row[0]):
            write_month_costs(costs, 0 if row is None else row[1], world)
    except Fault as fault:
        message = f"the budget is not updated: {type(fault).__name__}: {fault}"
        return None, (Problem(kind=PROBLEM_KIND, name=world.settings.cluster_name, message=message),)
    return costs, ()


def compute_month_costs(bucket: Bucket, previous: MonthCosts | None, now: datetime) -> MonthCosts | None:
    """Return the costs of the month of *now*; None if nothing was billed yet. *previous* has days that are known.

    Raises:
        Fault: the bucket could not be read.
    """
    ledger, month = read_ledger(bucket), format_month(now)
    if ledger is None:
        return None
    today = f"{ledger.day:%Y-%m-%d}"
    known_days = dict(previous.past_days) if previous is not None and previous.month == month else {}
    for key in bucket.list_keys(f"{COSTS_PREFIX}{month}-"):
        day = key.removeprefix(COSTS_PREFIX).removesuffix(".json")
        if key != LEDGER_KEY and day != today and day not in known_days:
            known_days[day] = _read_report_usd(bucket, key)
    known_days.pop(today, None)
    is_this_month = format_month(ledger.day) == month
    today_usd = compute_paid_usd(sum(lifetime.usd for lifetime in ledger.lives), ledger.commitment_hours)
    return MonthCosts(
        month=month,
        until=ledger.until,
        past_days=tuple(sorted(known_days.items())),
        today_usd=round(today_usd, 6) if is_this_month else 0.0,
    )


def _read_report_usd(bucket: Bucket, key: str) -> float:
    """Return what was paid according to a daily report; 0 if it cannot be decoded."""
    try:
        return msgspec.json.decode(bucket.get(key), type=DailyReport).paid_usd
    except (NotFound, msgspec.DecodeError):
        return 0.0


def read_month_costs(world: World) -> tuple[MonthCosts, int] | None:
    """Return the stored costs and the version of their row; None if there are none, or they cannot be decoded.

    Raises:
        Fault: the table did not respond.
    """
    return read_costs_row(world.table)


def read_costs_row(table: Table) -> tuple[MonthCosts, int] | None:
    """Return the same from *table*.

    Raises:
        Fault: the table did not respond.
    """
    row = table.read(ROW_KIND, ROW_NAME)
    costs = decode_body(row, MonthCosts)
    return None if row is None or costs is None else (costs, row.version)


def write_month_costs(costs: MonthCosts, version: int, world: World) -> None:
    """Write *costs* over *version* of the row, unless another function was faster.

    Raises:
        Fault: the table did not respond.
    """
    body = encode_body(costs, ROW_KIND, "the budget is not updated")
    try_write(world.table, ROW_KIND, ROW_NAME, body, version=version)
