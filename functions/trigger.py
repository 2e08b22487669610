"""What woke a function, and when: triggers own the clock."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from shared.errors import Fault
from shared.ports import World
from shared.report.journal import Entry, record
from shared.report.metrics import emit

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def clock() -> datetime:
    """Answer the present instant, aware UTC."""
    return datetime.now(UTC)


def counting(world: World, context: "LambdaContext") -> World:
    """Answer *world* with what is left of the invocation's time."""
    return msgspec.structs.replace(
        world, time_left=lambda: timedelta(milliseconds=context.get_remaining_time_in_millis())
    )


@contextmanager
def told(function: str, event: dict[str, object], world: World) -> Iterator[None]:
    """Let what nobody foresaw leave its entry in the journal and the log, before it fails the invocation.

    A `Fault` has left its own: what could not be seen or done is told by the cycle.
    """
    try:
        yield
    except Fault:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        entry = Entry(function=function, trigger=trigger_of(event), at=world.clock(), cluster="", error=text)
        record(entry, world)
        emit({"Faults": 1.0}, world)
        raise


def trigger_of(event: dict[str, object]) -> str:
    """Answer it in words: ``schedule``, ``message`` for a queue's, ``log``, else what the event says of itself.

    >>> trigger_of({"source": "schedule"}), trigger_of({"Records": []})
    ('schedule', 'message')
    """
    if "Records" in event:
        return "message"
    if "awslogs" in event:
        return "log"
    return str(event.get("source", "invocation"))


def ids_of(event: dict[str, object]) -> tuple[str, ...]:
    """Answer the ids of an SQS event's messages, in order."""
    records = event.get("Records")
    some = records if isinstance(records, list) else []
    return tuple(str(message.get("messageId", "")) for message in some if isinstance(message, dict))


def bodies_of(event: dict[str, object]) -> Iterator[str]:
    """Iterate over the bodies of an SQS event's messages, in order."""
    records = event.get("Records")
    for message in records if isinstance(records, list) else []:
        if isinstance(message, dict):
            yield str(message.get("body", ""))
