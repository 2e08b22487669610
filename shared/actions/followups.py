"""Messages to ourselves: one pending per function, or every tick would begin another chain of them."""

import json
from datetime import datetime, timedelta
from typing import Final

from shared.errors import Conflict
from shared.model.action import FollowUp
from shared.model.units import instant_text, parse_instant
from shared.ports import Row, World

KIND: Final = "follow-up"
LONGEST: Final = timedelta(minutes=15)
"""What a mailbox can delay: who asks for more is woken by then, and may ask again."""


def follow_up(action: FollowUp, world: World) -> None:
    """Wake the function, unless it will be woken by then anyway.

    The message is sent before that is written down: killed in between, a function is woken twice, which is harmless.
    """
    now = world.clock()
    after = min(action.after, LONGEST)
    due = now + after
    row = world.table.read(KIND, action.function)
    pending = _due(row)
    if pending is not None and now < pending <= due:
        return
    body = json.dumps({"source": "follow-up", "why": action.why})
    world.mailbox.send(action.function, body, after)
    try:
        version = row.version if row is not None else 0
        world.table.write(KIND, action.function, instant_text(due), version=version, expires_at=due)
    except Conflict:
        return  # somebody else woke it too


def _due(row: Row | None) -> datetime | None:
    """Answer when the function will be woken; None if nobody knows."""
    try:
        return parse_instant(row.body) if row is not None else None
    except ValueError:
        return None
