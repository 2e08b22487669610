"""Follow-ups: delayed messages that requeue a function. One is pending per function: ticks start no chains."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.model.core.units import format_instant, parse_instant
from shared.model.decisions.action import MAX_FOLLOW_UP_DELAY, FollowUp, Function
from shared.ports.storage import TableRow
from shared.ports.world import World
from shared.store.table_rows import try_write

ROW_KIND: Final = "follow-up"


def send_follow_up(action: FollowUp, world: World) -> None:
    """Requeue the function, unless a pending message wakes it by then.

    The message is sent before the row is written: after a crash in between, a function is woken twice, which is
    harmless.
    """
    now = world.clock()
    delay = min(action.after, MAX_FOLLOW_UP_DELAY)  # a longer follow-up arrives earlier and can be sent again
    due = now + delay
    row = world.table.read(ROW_KIND, action.function)
    pending_until = _parse_due_time(row)
    if pending_until is not None and now < pending_until <= due:
        return
    world.mailbox.add(action.function, _build_body(action.message), delay)
    version = row.version if row is not None else 0
    try_write(world.table, ROW_KIND, action.function, format_instant(due), version=version, expires_at=due)


def send_periodic_messages(function: Function, delays: Sequence[timedelta], message: str, world: World) -> None:
    """Wake *function* after each of *delays*, also if another message is pending.

    The caller runs on a schedule and covers the time until its next run. No row is written: messages that are lost or
    sent twice change nothing after that run.
    """
    world.mailbox.add_batch(function, _build_body(message), delays)


def _build_body(message: str) -> str:
    return json.dumps({"source": "follow-up", "why": message})


def _parse_due_time(row: TableRow | None) -> datetime | None:
    """Return when the function will be woken; None if that is not known."""
    try:
        return parse_instant(row.body) if row is not None else None
    except ValueError:
        return None
