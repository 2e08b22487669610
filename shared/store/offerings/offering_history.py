"""The history of offerings: one table row of at most `MAX_HISTORY_BYTES`, updated with conditional writes."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from shared.errors import Conflict, Fault
from shared.model.cloud_provider.offering_history import OfferingEvent, OfferingHistory, add_events
from shared.model.core.metadata import Problem
from shared.ports.storage import Table
from shared.store.table_rows import decode_body, decode_body_text, encode_compressed_body, try_write

ROW_KIND: Final = "offering-history"
ROW_NAME: Final = "offerings"
MAX_HISTORY_BYTES: Final = 50_000
"""About 1,500 offerings; NodePools use a few dozen."""
_MAX_ATTEMPTS: Final = 3


def read_offering_history(table: Table, problems: list[Problem]) -> OfferingHistory:
    """Return the stored history; empty, with a problem, if it cannot be read: then every offering has its own price."""
    try:
        row = table.read(ROW_KIND, ROW_NAME)
        return OfferingHistory() if row is None else decode_body_text(row.body, OfferingHistory)
    except Fault as fault:
        message = f"could not be read: {type(fault).__name__}: {fault}; interruptions are not priced in this run"
    except msgspec.DecodeError as error:
        message = f"body: {error}; the history starts again with the next event"
    problems.append(Problem(kind=ROW_KIND, name=ROW_NAME, message=message))
    return OfferingHistory()


def record_offering_events(events: Iterable[OfferingEvent], table: Table, now: datetime) -> None:
    """Add *events* to the stored history.

    Raises:
        Conflict: other functions were faster each time; the events are not counted.
        Fault: the table did not respond.
    """
    all_events = tuple(events)
    for _ in range(_MAX_ATTEMPTS):
        row = table.read(ROW_KIND, ROW_NAME)
        history = add_events(decode_body(row, OfferingHistory) or OfferingHistory(), all_events, now)
        body = encode_offering_history(history)
        if try_write(table, ROW_KIND, ROW_NAME, body, version=0 if row is None else row.version) is not None:
            return
    raise Conflict(f"{ROW_KIND}/{ROW_NAME}: another function was faster {_MAX_ATTEMPTS} times")


def encode_offering_history(history: OfferingHistory) -> str:
    """Return the body of the row; the records with the lowest counts are left out until it is small enough."""
    ranked = sorted(history.records, key=lambda record: (-record.size, record.key))
    count = len(ranked)
    while True:
        dropped_count = len(ranked) - count
        body = encode_compressed_body(
            OfferingHistory(records=tuple(sorted(ranked[:count])), dropped_count=dropped_count)
        )
        if len(body) <= MAX_HISTORY_BYTES or not count:
            return body
        count = min(count - 1, count * MAX_HISTORY_BYTES // len(body))
