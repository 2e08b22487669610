"""CloudWatch in the account: what was measured, and alarms that ring by it.

moto keeps the alarms; whoever runs functions records what they did, and calls `Watch.look` now and then. What queues
hold is measured here, as SQS does it, each minute.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any, Final, Protocol

from moto.sqs.models import Queue, sqs_backends

from sim.clock import Clock
from sim.watching.alarms import parse_alarm
from sim.watching.metrics import Datum, Metric, Metrics

_BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = 1e-3


class Holder(Protocol):
    """What is needed of the account."""

    region: str
    number: str
    clock: Clock

    def client(self, service: str) -> Any:  # noqa: ANN401 - boto3's clients have no types
        """Answer the deployer's client."""


class Watch:
    """All metrics of the account, and its alarms; safe to share between threads."""

    def __init__(self, account: Holder, minute: Callable[[], timedelta]) -> None:
        """Begin with nothing measured; a minute of CloudWatch lasts *minute*."""
        self.metrics = Metrics()
        self._account, self._minute = account, minute
        self._looked: datetime | None = None
        self._lock = Lock()

    def look(self) -> None:
        """Measure the queues, and have every alarm be in the state that it should be in; once a minute.

        Raises:
            NotUnderstood: an alarm's expression says something that is unknown here.
        """
        now, minute = self._account.clock.now(), self._minute()
        if not minute:
            return
        begun = now - (now - _BEGINNING) % minute
        with self._lock:
            if begun == self._looked:
                return
            self._looked = begun
            self.metrics.record(self._queues(now))
            self._judge(now, minute)

    def _judge(self, now: datetime, minute: timedelta) -> None:
        cloudwatch = self._account.client("cloudwatch")
        pages = cloudwatch.get_paginator("describe_alarms").paginate(AlarmTypes=["MetricAlarm"])
        for said in [one for page in pages for one in page["MetricAlarms"]]:
            state = parse_alarm(said).state(self.metrics, now, minute)
            if state in (None, said["StateValue"]):
                continue
            why = f"By what was measured until {now:%Y-%m-%dT%H:%M:%SZ}"
            try:
                cloudwatch.set_alarm_state(AlarmName=said["AlarmName"], StateValue=state, StateReason=why)
            except cloudwatch.exceptions.ResourceNotFound:
                continue  # it was deleted meanwhile

    def _queues(self, now: datetime) -> Iterator[Datum]:
        queues: dict[str, Queue] = sqs_backends[self._account.number][self._account.region].queues
        for name, queue in sorted(queues.items()):
            sent = [one.sent_timestamp * _MILLISECOND for one in queue.messages]
            oldest = max(0.0, now.timestamp() - min(sent)) if sent else 0.0
            for metric, value in (
                ("ApproximateAgeOfOldestMessage", oldest),
                ("ApproximateNumberOfMessagesDelayed", queue.approximate_number_of_messages_delayed),
                ("ApproximateNumberOfMessagesNotVisible", queue.approximate_number_of_messages_not_visible),
                ("ApproximateNumberOfMessagesVisible", len(sent)),
            ):
                known = Metric(namespace="AWS/SQS", name=metric, dimensions=(("QueueName", name),))
                yield Datum(metric=known, at=now, value=float(value))
