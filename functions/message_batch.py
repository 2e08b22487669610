"""Partial failures of a batch of SQS messages, reported by the batch processor of Powertools."""

from collections.abc import Collection

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes import SQSRecord


class UnsettledMessage(Exception):
    """An action for the message failed: SQS delivers the message again."""


def build_batch_response(messages: Collection[SQSRecord], unsettled: Collection[int]) -> PartialItemFailureResponse:
    """Return the response that makes SQS deliver the *unsettled* messages again: indices into *messages*.

    One cycle handles all messages together, on one snapshot, before the batch processor sees them. The processor then
    visits each message only to record its outcome. A batch without any settled message is a normal response as well,
    not an exception: an exception would count as a failure of the function.
    """
    unsettled_records = [message for index, message in enumerate(messages) if index in unsettled]

    def report_outcome(record: SQSRecord) -> None:
        if record in unsettled_records:
            raise UnsettledMessage(record.message_id)

    processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
    with processor(records=[message.raw_event for message in messages], handler=report_outcome):
        processor.process()
    return processor.response()
