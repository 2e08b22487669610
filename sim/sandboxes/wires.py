"""What the pollers, EventBridge and Lambda itself do in an account, over its APIs and as whoever they are there.

A poller reads a queue as the function's role, Scheduler calls as the schedule's role, a function's log is written as
the function's role: what a role may not do fails here as it would in the account.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import islice
from threading import Lock
from typing import Any, Final, Protocol

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from sim.account.contract import Credentials, Function
from sim.account.watch import Watch
from sim.sandboxes.deliveries import Target, Undelivered
from sim.sandboxes.queues import MOST_AT_ONCE, Mapping, QueueGone, QueueUnavailable, Received, message_from
from sim.sandboxes.reading import Clients
from sim.sandboxes.sandboxes import Call
from sim.sandboxes.service import Directory, parts_of

_ATTRIBUTES: Final = ["All"]
_GONE: Final = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
_TOO_MANY_EVENTS: Final = 1000
_MILLISECOND: Final = timedelta(milliseconds=1)


class Account(Clients, Directory, Protocol):
    """An account, as the sandboxes know it."""

    watch: Watch

    def credentials_of(
        self, role_arn: str, session: str = ..., *, function_arn: str = ..., service: str = ..., source_arn: str = ...
    ) -> Credentials:
        """Answer credentials of the role for the code of a function, or for a *service* that it trusts.

        Raises:
            ApiError: it does not, or is not there.
        """


class Who(msgspec.Struct, frozen=True, kw_only=True):
    """As whom a call is made: a role that a service becomes; by default the deployer."""

    role_arn: str = ""
    service: str = ""
    source_arn: str = ""


class Wires:
    """Clients by role, made when first needed."""

    def __init__(self, account: Account, clock: Callable[[], datetime]) -> None:
        """Work in *account*."""
        self._account, self._clock = account, clock
        self._made: dict[tuple[Who, str], Any] = {}
        self._lock = Lock()
        self._urls: dict[str, str] = {}
        self._streams: set[str] = set()

    def receive(self, mapping: Mapping, limit: int, patience: timedelta) -> list[Received]:
        """Do what `sim.sandboxes.queues.Mail` asks for."""
        try:
            answer = self._reader(mapping).receive_message(
                QueueUrl=self._url(mapping.queue_arn),
                MaxNumberOfMessages=limit,
                WaitTimeSeconds=round(patience.total_seconds()),
                AttributeNames=_ATTRIBUTES,
            )
        except (ClientError, BotoCoreError, LookupError) as error:
            raise _unavailable(error) from error
        return [message_from(one) for one in answer.get("Messages", ())]

    def delete(self, mapping: Mapping, handles: Iterable[str]) -> None:
        """Do what `sim.sandboxes.queues.Mail` asks for."""
        left = iter(handles)
        try:
            while some := list(islice(left, MOST_AT_ONCE)):
                entries = [{"Id": str(place), "ReceiptHandle": one} for place, one in enumerate(some)]
                self._reader(mapping).delete_message_batch(QueueUrl=self._url(mapping.queue_arn), Entries=entries)
        except (ClientError, BotoCoreError, LookupError) as error:
            raise _unavailable(error) from error

    def deliver(self, target: Target, event: str, by: str) -> None:
        """Do what `sim.sandboxes.deliveries.Wires` asks for."""
        try:
            if ":sqs:" in target.arn:
                self.post(target.arn, event, who=_scheduler(target))
                return
            self._as(_scheduler(target), "lambda").invoke(
                FunctionName=target.arn, InvocationType="Event", Payload=event.encode()
            )
        except (ClientError, BotoCoreError) as error:
            raise Undelivered(f"{by}: {error}") from error

    def bury(self, target: Target, event: str, why: str) -> None:
        """Do what `sim.sandboxes.deliveries.Wires` asks for."""
        if target.dead_letters_arn:
            self.post(target.dead_letters_arn, event, who=_scheduler(target), because=why)

    def post(self, queue_arn: str, body: str, *, who: Who, because: str = "") -> None:
        """Send *body* to a queue, as *who*.

        Raises:
            ClientError: it was refused.
        """
        attributes = {"ERROR_MESSAGE": {"DataType": "String", "StringValue": because[:1024]}} if because else {}
        self._as(who, "sqs").send_message(QueueUrl=self._url(queue_arn), MessageBody=body, MessageAttributes=attributes)

    def write_log(self, function: Function, stream: str, call: Call) -> None:
        """Write the log of one call, as the function's role.

        Raises:
            ClientError: it may not; that is a hole in its policy.
        """
        logs = self._as(lambda_as(function), "logs")
        named = {"logGroupName": function.log_group, "logStreamName": stream}
        if f"{function.log_group} {stream}" not in self._streams:
            logs.create_log_stream(**named)
            self._streams.add(f"{function.log_group} {stream}")
        at = round(call.began.timestamp() * 1000)
        events = [{"timestamp": at, "message": line} for line in call.lines if line]
        logs.put_log_events(**named, logEvents=events[-_TOO_MANY_EVENTS:])

    def _reader(self, mapping: Mapping) -> Any:  # noqa: ANN401 - boto3's
        return self._as(lambda_as(self._account.function(*parts_of(mapping.function_arn))), "sqs")

    def _as(self, who: Who, service: str) -> Any:  # noqa: ANN401 - boto3's
        with self._lock:
            if (who, service) not in self._made:
                became = [self._credentials(who)] if who.role_arn else []
                self._made[who, service] = self._account.client(service, *became)
            return self._made[who, service]

    def _credentials(self, who: Who) -> Credentials:
        return self._account.credentials_of(
            who.role_arn, who.service.partition(".")[0], service=who.service, source_arn=who.source_arn
        )

    def _url(self, queue_arn: str) -> str:
        """Answer a queue's URL; who asks need not have the right to look it up: the services know it."""
        if queue_arn not in self._urls:
            name = queue_arn.rpartition(":")[2]
            self._urls[queue_arn] = self._as(Who(), "sqs").get_queue_url(QueueName=name)["QueueUrl"]
        return self._urls[queue_arn]


def _unavailable(error: Exception) -> QueueUnavailable:
    code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
    is_gone = isinstance(error, LookupError) or code in _GONE
    return QueueGone(str(error)) if is_gone else QueueUnavailable(str(error))


def lambda_as(function: Function) -> Who:
    """Answer Lambda itself, as the role of *function*."""
    return Who(role_arn=function.role_arn, service="lambda.amazonaws.com")


def _scheduler(target: Target) -> Who:
    if not target.role_arn:
        return Who()
    return Who(role_arn=target.role_arn, service="scheduler.amazonaws.com", source_arn=target.source_arn)
