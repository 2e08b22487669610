"""CloudWatch of the account: recorded metrics, and the evaluation of alarms.

moto stores the alarms; the code that runs functions records their metrics and calls `CloudWatch.evaluate_alarms` from
time to time. The metrics of SQS queues are measured here every minute, as SQS does.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Final

from moto.sqs.models import Queue, sqs_backends

from sim.aws_account.function_runtime import AccountServices
from sim.cloudwatch.alarms import parse_alarm
from sim.cloudwatch.metrics import Metric, MetricDatum, MetricStore

_PERIOD_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_SECONDS_PER_MILLISECOND: Final = 1e-3


class CloudWatch:
    """The metrics and alarms of the account; safe to share between threads."""

    def __init__(self, account: AccountServices, minute: Callable[[], timedelta]) -> None:
        """Start without metrics; *minute* returns how long a simulated minute of CloudWatch lasts."""
        self.metrics = MetricStore()
        self._account, self._minute = account, minute
        self._last_evaluated: datetime | None = None
        self._lock = Lock()

    def tick(self) -> None:
        """Measure the queues and set the state of every alarm; at most once per simulated minute.

        Raises:
            NotUnderstood: the expression of an alarm is not supported.
        """
        now, minute = self._account.clock.get_time(), self._minute()
        if not minute:
            return
        minute_start = now - (now - _PERIOD_EPOCH) % minute
        with self._lock:
            if minute_start == self._last_evaluated:
                return
            self._last_evaluated = minute_start
            self.metrics.record_data(self._measure_queues(now))
            self._update_alarm_states(now, minute)

    def _update_alarm_states(self, now: datetime, minute: timedelta) -> None:
        cloudwatch = self._account.get_client("cloudwatch")
        pages = cloudwatch.get_paginator("describe_alarms").paginate(AlarmTypes=["MetricAlarm"])
        for alarm in [alarm for page in pages for alarm in page["MetricAlarms"]]:
            state = parse_alarm(alarm).compute_state(self.metrics, now, minute)
            if state in (None, alarm["StateValue"]):
                continue
            reason = f"By what was measured until {now:%Y-%m-%dT%H:%M:%SZ}"
            try:
                cloudwatch.set_alarm_state(AlarmName=alarm["AlarmName"], StateValue=state, StateReason=reason)
            except cloudwatch.exceptions.ResourceNotFound:
                continue  # the alarm was deleted in the meantime

    def _measure_queues(self, now: datetime) -> Iterator[MetricDatum]:
        queues: dict[str, Queue] = sqs_backends[self._account.account_id][self._account.region].queues
        for name, queue in sorted(queues.items()):
            sent_times = [message.sent_timestamp * _SECONDS_PER_MILLISECOND for message in queue.messages]
            oldest_age = max(0.0, now.timestamp() - min(sent_times)) if sent_times else 0.0
            for metric, value in (
                ("ApproximateAgeOfOldestMessage", oldest_age),
                ("ApproximateNumberOfMessagesDelayed", queue.approximate_number_of_messages_delayed),
                ("ApproximateNumberOfMessagesNotVisible", queue.approximate_number_of_messages_not_visible),
                ("ApproximateNumberOfMessagesVisible", len(sent_times)),
            ):
                queue_metric = Metric(namespace="AWS/SQS", name=metric, dimensions=(("QueueName", name),))
                yield MetricDatum(metric=queue_metric, timestamp=now, value=float(value))
