"""Calls of pollers, EventBridge and Lambda itself to an account's APIs, each with the role that AWS uses for it.

A poller reads a queue with the function's role, Scheduler invokes targets with the schedule's role, a function's log is
written with the function's role: an action that the role does not allow fails here as it would in the account.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import islice
from threading import Lock
from typing import Any, Final, Protocol

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from sim.aws_account.function_runtime import ClientFactory, Credentials, DeployedFunction
from sim.aws_account.services.cloudwatch import CloudWatch
from sim.lambda_processes.event_sources.event_deliveries import DeliveryTarget, Undelivered
from sim.lambda_processes.event_sources.queue_pollers import (
    MAX_MESSAGES_PER_RECEIVE,
    QueueGone,
    QueueMapping,
    QueueUnavailable,
    ReceivedMessage,
    parse_message,
)
from sim.lambda_processes.lambda_service import FunctionDirectory, split_function_reference
from sim.lambda_processes.sandboxes import SandboxInvocation

_ALL_ATTRIBUTES: Final = ["All"]
_QUEUE_NOT_FOUND_CODES: Final = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
_MAX_LOG_EVENTS: Final = 1000
_ONE_MILLISECOND: Final = timedelta(milliseconds=1)


class SandboxAccount(ClientFactory, FunctionDirectory, Protocol):
    """The part of an account that the sandboxes use."""

    cloudwatch: CloudWatch

    def issue_role_credentials(
        self, role_arn: str, session: str = ..., *, function_arn: str = ..., service: str = ..., source_arn: str = ...
    ) -> Credentials:
        """Issue credentials of the role, for the code of a function or for a *service* that the role trusts.

        Raises:
            ApiError: the role does not trust the service, or does not exist.
        """


class CallerIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a call: a role that a service assumes; by default the deployer."""

    role_arn: str = ""
    service: str = ""
    source_arn: str = ""


class AccountConnector:
    """Calls the account's services; clients are created per role when first needed."""

    def __init__(self, account: SandboxAccount, clock: Callable[[], datetime]) -> None:
        """Use *account*."""
        self._account, self._clock = account, clock
        self._client_by_caller_and_service: dict[tuple[CallerIdentity, str], Any] = {}
        self._lock = Lock()
        self._url_by_queue_arn: dict[str, str] = {}
        self._created_streams: set[str] = set()

    def receive_messages(self, mapping: QueueMapping, limit: int, wait_time: timedelta) -> list[ReceivedMessage]:
        """Implement `sim.lambda_processes.event_sources.queue_pollers.QueueClient`."""
        try:
            response = self._get_queue_client(mapping).receive_message(
                QueueUrl=self._get_queue_url(mapping.queue_arn),
                MaxNumberOfMessages=limit,
                WaitTimeSeconds=round(wait_time.total_seconds()),
                AttributeNames=_ALL_ATTRIBUTES,
            )
        except (ClientError, BotoCoreError, LookupError) as error:
            raise _classify_queue_error(error) from error
        return [parse_message(message) for message in response.get("Messages", ())]

    def delete_messages(self, mapping: QueueMapping, receipt_handles: Iterable[str]) -> None:
        """Implement `sim.lambda_processes.event_sources.queue_pollers.QueueClient`."""
        handle_iterator = iter(receipt_handles)
        try:
            while handle_batch := list(islice(handle_iterator, MAX_MESSAGES_PER_RECEIVE)):
                entries = [
                    {"Id": str(index), "ReceiptHandle": receipt_handle}
                    for index, receipt_handle in enumerate(handle_batch)
                ]
                self._get_queue_client(mapping).delete_message_batch(
                    QueueUrl=self._get_queue_url(mapping.queue_arn), Entries=entries
                )
        except (ClientError, BotoCoreError, LookupError) as error:
            raise _classify_queue_error(error) from error

    def deliver_event(self, target: DeliveryTarget, event: str, source: str) -> None:
        """Implement `sim.lambda_processes.event_sources.event_deliveries.TargetClient`."""
        try:
            if ":sqs:" in target.arn:
                self.send_message(target.arn, event, caller=_build_scheduler_caller(target))
                return
            self._get_client(_build_scheduler_caller(target), "lambda").invoke(
                FunctionName=target.arn, InvocationType="Event", Payload=event.encode()
            )
        except (ClientError, BotoCoreError) as error:
            raise Undelivered(f"{source}: {error}") from error

    def send_to_dead_letter_queue(self, target: DeliveryTarget, event: str, reason: str) -> None:
        """Implement `sim.lambda_processes.event_sources.event_deliveries.TargetClient`."""
        if target.dead_letter_arn:
            self.send_message(target.dead_letter_arn, event, caller=_build_scheduler_caller(target), reason=reason)

    def send_message(self, queue_arn: str, body: str, *, caller: CallerIdentity, reason: str = "") -> None:
        """Send *body* to a queue as *caller*; *reason* becomes the message attribute ERROR_MESSAGE.

        Raises:
            ClientError: SQS refuses the call.
        """
        attributes = {"ERROR_MESSAGE": {"DataType": "String", "StringValue": reason[:1024]}} if reason else {}
        self._get_client(caller, "sqs").send_message(
            QueueUrl=self._get_queue_url(queue_arn), MessageBody=body, MessageAttributes=attributes
        )

    def write_log(self, function: DeployedFunction, log_stream: str, invocation: SandboxInvocation) -> None:
        """Write the log of one invocation with the function's role.

        Raises:
            ClientError: the role does not allow it, because its policy is incomplete.
        """
        logs = self._get_client(build_lambda_caller(function), "logs")
        stream_arguments = {"logGroupName": function.log_group, "logStreamName": log_stream}
        if f"{function.log_group} {log_stream}" not in self._created_streams:
            logs.create_log_stream(**stream_arguments)
            self._created_streams.add(f"{function.log_group} {log_stream}")
        timestamp = round(invocation.started_at.timestamp() * 1000)
        events = [{"timestamp": timestamp, "message": line} for line in invocation.log_lines if line]
        logs.put_log_events(**stream_arguments, logEvents=events[-_MAX_LOG_EVENTS:])

    def _get_queue_client(self, mapping: QueueMapping) -> Any:  # noqa: ANN401 - boto3's
        return self._get_client(
            build_lambda_caller(self._account.get_function(*split_function_reference(mapping.function_arn))), "sqs"
        )

    def _get_client(self, caller: CallerIdentity, service: str) -> Any:  # noqa: ANN401 - boto3's
        with self._lock:
            if (caller, service) not in self._client_by_caller_and_service:
                credentials = [self._issue_credentials(caller)] if caller.role_arn else []
                self._client_by_caller_and_service[caller, service] = self._account.get_client(service, *credentials)
            return self._client_by_caller_and_service[caller, service]

    def _issue_credentials(self, caller: CallerIdentity) -> Credentials:
        return self._account.issue_role_credentials(
            caller.role_arn, caller.service.partition(".")[0], service=caller.service, source_arn=caller.source_arn
        )

    def _get_queue_url(self, queue_arn: str) -> str:
        """Return a queue's URL; it is looked up as the deployer, because the services know it without permission."""
        if queue_arn not in self._url_by_queue_arn:
            name = queue_arn.rpartition(":")[2]
            self._url_by_queue_arn[queue_arn] = self._get_client(CallerIdentity(), "sqs").get_queue_url(QueueName=name)[
                "QueueUrl"
            ]
        return self._url_by_queue_arn[queue_arn]


def _classify_queue_error(error: Exception) -> QueueUnavailable:
    code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
    is_gone = isinstance(error, LookupError) or code in _QUEUE_NOT_FOUND_CODES
    return QueueGone(str(error)) if is_gone else QueueUnavailable(str(error))


def build_lambda_caller(function: DeployedFunction) -> CallerIdentity:
    """Return the identity of Lambda itself with the role of *function*."""
    return CallerIdentity(role_arn=function.role_arn, service="lambda.amazonaws.com")


def _build_scheduler_caller(target: DeliveryTarget) -> CallerIdentity:
    if not target.role_arn:
        return CallerIdentity()
    return CallerIdentity(role_arn=target.role_arn, service="scheduler.amazonaws.com", source_arn=target.source_arn)
