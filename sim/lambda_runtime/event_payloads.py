"""Payloads of invocations: events of EventBridge, batches of SQS, and the response to a batch."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import md5
from typing import Any

from sim.lambda_runtime.invocation import Event
from sim.lambda_runtime.sqs_queue import SqsMessage
from sim.lambda_runtime.stack_template.intrinsic_functions import Json


def convert_to_json(value: Json) -> Json:
    """Return *value* after a round trip through JSON, as every event and every response makes one.

    Raises:
        TypeError: *value* cannot be encoded as JSON.
    """
    return json.loads(json.dumps(value)) if value is not None else None


def build_event_envelope(event: Mapping[str, Any], number: int, account: str, region: str, now: datetime) -> Event:
    """Return *event* with the missing fields of the envelope of EventBridge; *number* identifies it on its bus."""
    defaults = {
        "version": "0",
        "id": f"event-{number:06d}",
        "account": account,
        "time": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "region": region,
        "resources": [],
        "detail": {},
    }
    return defaults | dict(event)


def build_sqs_event(queue_arn: str, messages: Iterable[SqsMessage]) -> Event:
    """Return the event of a batch of SQS messages."""
    return {"Records": [_build_sqs_record(queue_arn, message) for message in messages]}


def _build_sqs_record(queue_arn: str, message: SqsMessage) -> Event:
    return {
        "messageId": message.id,
        "receiptHandle": f"{message.id}:{message.receives}",
        "body": message.body,
        "attributes": {
            "ApproximateReceiveCount": str(message.receives),
            "SentTimestamp": _format_epoch_milliseconds(message.sent_at),
            "SenderId": "joiner",
            "ApproximateFirstReceiveTimestamp": _format_epoch_milliseconds(message.first_received_at),
        },
        "messageAttributes": {},
        "md5OfBody": md5(message.body.encode(), usedforsecurity=False).hexdigest(),
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": queue_arn.split(":")[3],
    }


def _format_epoch_milliseconds(time: datetime) -> str:
    return str(round(time.timestamp() * 1000))


def list_failed_message_ids(response: Mapping[str, Any] | None, messages: Iterable[SqsMessage]) -> frozenset[str]:
    """Return the message ids that *response*, a ReportBatchItemFailures response, reports as failed.

    Lambda treats a malformed response, or one with an unknown message id, as a failure of the whole batch.
    """
    all_ids = frozenset(message.id for message in messages)
    failures = (response or {}).get("batchItemFailures") or []
    if not isinstance(failures, list) or not all(isinstance(failure, dict) for failure in failures):
        return all_ids
    failed_ids = {failure.get("itemIdentifier") for failure in failures}
    return frozenset(failed_ids) if failed_ids <= all_ids else all_ids
