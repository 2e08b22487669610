"""The workload history: one table row of at most `MAX_HISTORY_BYTES`, read and written by `disrupt`."""

from typing import Final

import msgspec
from msgspec.structs import replace

from shared.model.core.formatting import format_count
from shared.model.core.metadata import Problem
from shared.model.decisions.workload_history import WorkloadHistory
from shared.ports.storage import FencingToken, TableRow
from shared.ports.world import World
from shared.store.table_rows import decode_body_text, encode_compressed_body, try_write

ROW_KIND: Final = "workload-history"
ROW_NAME: Final = "workloads"
MAX_HISTORY_BYTES: Final = 200_000


def read_workload_history(world: World, problems: list[Problem]) -> tuple[WorkloadHistory, int]:
    """Return the history and the version of its row; without a row, or if it cannot be decoded, an empty history.

    Raises:
        Fault: the table did not respond.
    """
    row = world.table.read(ROW_KIND, ROW_NAME)
    if row is None:
        return WorkloadHistory(), 0
    try:
        return decode_body_text(row.body, WorkloadHistory), row.version
    except msgspec.DecodeError as error:
        message = f"body: {error}; the history starts again"
        problems.append(Problem(kind=ROW_KIND, name=ROW_NAME, message=message))
        return WorkloadHistory(), row.version


def write_workload_history(
    history: WorkloadHistory, version: int, world: World, fence: FencingToken
) -> TableRow | None:
    """Write *history* if the row is still at *version*; None if it is not: an update that is lost is harmless.

    Raises:
        Fault: the table did not respond.
    """
    body = encode_workload_history(history)
    return try_write(world.table, ROW_KIND, ROW_NAME, body, version=version, fence=fence)


def encode_workload_history(history: WorkloadHistory) -> str:
    """Return the body of the row; the smallest workloads are left out, and counted, until it is small enough."""
    ranked = sorted(history.workloads, key=lambda record: (-record.size, record.name))
    count = len(ranked)
    while True:
        largest_records = tuple(sorted(ranked[:count], key=lambda record: record.name))
        body = encode_compressed_body(replace(history, workloads=largest_records, dropped_count=len(ranked) - count))
        if len(body) <= MAX_HISTORY_BYTES or not count:
            return body
        count = min(count - 1, count * MAX_HISTORY_BYTES // len(body))


def describe_dropped_workloads(history: WorkloadHistory) -> tuple[Problem, ...]:
    """Return the problem that small workloads have no history, if there are any."""
    if not history.dropped_count:
        return ()
    message = (
        f"{format_count(history.dropped_count, 'small workload')} not recorded: "
        f"the history has at most {MAX_HISTORY_BYTES // 1000} kB"
    )
    return (Problem(kind=ROW_KIND, name=ROW_NAME, message=message),)
