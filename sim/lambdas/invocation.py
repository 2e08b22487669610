"""What a function is handed, what it may answer, and what is remembered of the call."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from hashlib import md5
from typing import Any, Literal, TypeAlias

import msgspec

from shared.ports import World
from sim.lambdas.intrinsics import Json
from sim.lambdas.queue import Message

Event: TypeAlias = dict[str, Any]
Answer: TypeAlias = dict[str, Any] | None
Handle: TypeAlias = Callable[[Event, World], Answer]
Outcome: TypeAlias = Literal["ok", "failed", "killed", "timed-out"]


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a function, over."""

    request_id: str
    function: str
    trigger: str
    """``schedule:<rule>``, ``event:<rule>``, ``queue:<queue>``, ``log`` or ``direct``."""
    at: datetime
    ended_at: datetime
    outcome: Outcome
    error: str = ""
    """Type and message of what was raised."""
    event: Event
    answer: Answer = None


def plain(value: Json) -> Json:
    """Answer what is left of *value* on the way through JSON, which every event and every answer goes.

    Raises:
        TypeError: it is not JSON.
    """
    return json.loads(json.dumps(value))


def sqs_event(queue_arn: str, messages: Iterable[Message]) -> Event:
    """Answer the event of a batch."""
    return {"Records": [_record(queue_arn, message) for message in messages]}


def _record(queue_arn: str, message: Message) -> Event:
    return {
        "messageId": message.id,
        "receiptHandle": f"{message.id}:{message.receives}",
        "body": message.body,
        "attributes": {
            "ApproximateReceiveCount": str(message.receives),
            "SentTimestamp": _milliseconds(message.sent_at),
            "SenderId": "joiner",
            "ApproximateFirstReceiveTimestamp": _milliseconds(message.first_received_at),
        },
        "messageAttributes": {},
        "md5OfBody": md5(message.body.encode(), usedforsecurity=False).hexdigest(),
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": queue_arn.split(":")[3],
    }


def _milliseconds(instant: datetime) -> str:
    return str(round(instant.timestamp() * 1000))


def unsettled(answer: Mapping[str, Any] | None, messages: Iterable[Message]) -> frozenset[str]:
    """Answer the ids that *answer*, a ReportBatchItemFailures response, wants to see again.

    Lambda takes an answer that it does not understand, or that names a stranger, for a failure of the whole batch.
    """
    everything = frozenset(message.id for message in messages)
    failures = (answer or {}).get("batchItemFailures") or []
    if not isinstance(failures, list) or not all(isinstance(failure, dict) for failure in failures):
        return everything
    named = {failure.get("itemIdentifier") for failure in failures}
    return frozenset(named) if named <= everything else everything
