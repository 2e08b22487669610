"""The parts of a stack's wiring as plain values. Names are CloudFormation's where CloudFormation has one."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

import msgspec

from sim.lambda_runtime.async_retry import DEFAULT_ASYNC_RETRIES


class StackFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A Lambda function; *name* is the variable part of the handler string: ``functions.<name>.handler.handler``."""

    name: str
    arn: str
    handler: str
    environment: tuple[tuple[str, str], ...]
    """Resolved, sorted by name."""
    timeout: timedelta
    memory_mb: int
    async_retries: int = DEFAULT_ASYNC_RETRIES
    allows_recursion: bool = False
    """Whether recursive loop detection is off for the function (``RecursiveLoop: Allow``)."""
    log_group_arn: str = ""
    """Without the suffix ``:*`` that CloudFormation returns; "" for the default group."""
    is_traced: bool = False
    """Whether Lambda sends traces to X-Ray (``TracingConfig: Active``)."""


class SqsQueueSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of an SQS queue."""

    name: str
    url: str
    arn: str
    visibility_timeout: timedelta = timedelta(seconds=30)
    retention: timedelta = timedelta(days=4)
    delay: timedelta = timedelta(0)
    dead_letter_queue: str = ""
    """Name of the queue that gets messages which were received *max_receive_count* times without success."""
    max_receive_count: int = 0


class EventSourceMapping(msgspec.Struct, frozen=True, kw_only=True):
    """*function* polls *queue*; both are names."""

    queue: str
    function: str
    batch_size: int = 10
    batching_window: timedelta = timedelta(0)
    """How long a batch that is not full waits for more messages."""
    reports_item_failures: bool = False
    maximum_concurrency: int = 1000


class EventTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The target of a rule or a schedule; *input* is JSON that replaces the event, if set."""

    kind: Literal["function", "queue"]
    name: str
    input: str = ""
    arn: str = ""
    dead_letter_queue: str = ""
    """Name of the queue that gets events which could not be delivered."""


class ScheduleSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule of EventBridge Scheduler."""

    name: str
    expression: str
    target: EventTarget


class LogSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """A log subscription filter: the lines that contain *filter_text* are sent to *function*."""

    filter_text: str
    function: str


class EventBridgeRule(msgspec.Struct, frozen=True, kw_only=True):
    """An EventBridge rule with an event pattern."""

    name: str
    pattern: Mapping[str, Any]
    targets: tuple[EventTarget, ...]
