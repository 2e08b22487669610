"""Invocations of functions: the record of a finished one, and the types of events, responses and handlers."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec

from shared.ports.world import World

Event: TypeAlias = dict[str, Any]
HandlerResponse: TypeAlias = dict[str, Any] | None
HandleFunction: TypeAlias = Callable[[Event, World], HandlerResponse]
InvocationOutcome: TypeAlias = Literal["ok", "failed", "killed", "timed-out"]


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """A finished invocation of a function."""

    request_id: str
    function: str
    trigger: str
    """``schedule:<rule>``, ``event:<rule>``, ``queue:<queue>``, ``log`` or ``direct``."""
    started_at: datetime
    ended_at: datetime
    outcome: InvocationOutcome
    error: str = ""
    """Type and message of the exception."""
    event: Event
    response: HandlerResponse = None
