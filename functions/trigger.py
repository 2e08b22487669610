"""What woke a function, and when: triggers own the clock."""

from collections.abc import Iterator
from datetime import UTC, datetime


def clock() -> datetime:
    """Answer the present instant, aware UTC."""
    return datetime.now(UTC)


def trigger_of(event: dict[str, object]) -> str:
    """Answer it in words: ``schedule``, ``message`` for a queue's, else what the event says of itself.

    >>> trigger_of({"source": "schedule"}), trigger_of({"Records": []})
    ('schedule', 'message')
    """
    if "Records" in event:
        return "message"
    return str(event.get("source", "invocation"))


def bodies_of(event: dict[str, object]) -> Iterator[str]:
    """Iterate over the bodies of an SQS event's messages, in order."""
    records = event.get("Records")
    for record in records if isinstance(records, list) else []:
        if isinstance(record, dict):
            yield str(record.get("body", ""))
