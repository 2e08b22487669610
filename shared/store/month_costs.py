"""The costs of the current month: one table row, written by the catalog function, read when pods are planned."""

from typing import Final

from shared.model.decisions.month_costs import MonthCosts
from shared.ports.storage import Table
from shared.ports.world import World
from shared.store.table_rows import decode_body, encode_body, try_write

ROW_KIND: Final = "month-costs"
ROW_NAME: Final = "month"


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
