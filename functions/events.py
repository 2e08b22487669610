"""Events of the functions, read through the event source data classes of Powertools."""

from aws_lambda_powertools.utilities.data_classes import EventBridgeEvent, SQSEvent, SQSRecord

_MISSING_FIELDS = {"messageId": "", "body": ""}


def get_trigger_name(event: dict[str, object]) -> str:
    """Return the name of the trigger: ``schedule``, ``message`` (SQS), ``log``, or the event's own source.

    >>> get_trigger_name({"source": "schedule"}), get_trigger_name({"Records": []})
    ('schedule', 'message')
    """
    if "Records" in event:
        return "message"
    if "awslogs" in event:
        return "log"
    return str(EventBridgeEvent(event).source) if "source" in event else "invocation"


def list_messages(event: dict[str, object]) -> list[SQSRecord]:
    """Return the messages of an SQS event, in order; an event of another kind has none.

    Entries that are not objects are skipped, and missing fields are empty, so that one malformed message does not stop
    the others.
    """
    if not isinstance(event.get("Records"), list):
        return []
    records: list[object] = [record.raw_event for record in SQSEvent(event).records]
    return [SQSRecord(_MISSING_FIELDS | record) for record in records if isinstance(record, dict)]
