"""The parts of a wiring, as plain values. Names are CloudFormation's where it has them."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, Literal

import msgspec

ASYNC_RETRIES: Final = 2
"""What Lambda does about a failed asynchronous call if nobody configured it."""


class Function(msgspec.Struct, frozen=True, kw_only=True):
    """One Lambda; *name* is what differs in the handler string: ``functions.<name>.handler.handler``."""

    name: str
    arn: str
    handler: str
    environment: tuple[tuple[str, str], ...]
    """Resolved, sorted by name."""
    timeout: timedelta
    memory_mb: int
    async_retries: int = ASYNC_RETRIES
    may_recur: bool = False
    """Whether Lambda lets it be called by what came of its own messages, however often."""


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """One SQS queue."""

    name: str
    url: str
    arn: str
    visibility_timeout: timedelta = timedelta(seconds=30)
    retention: timedelta = timedelta(days=4)
    delay: timedelta = timedelta(0)
    dead_letters: str = ""
    """The queue that gets what was received *max_receive_count* times in vain."""
    max_receive_count: int = 0


class EventSourceMapping(msgspec.Struct, frozen=True, kw_only=True):
    """*function* reads *queue*, both by name."""

    queue: str
    function: str
    batch_size: int = 10
    window: timedelta = timedelta(0)
    """So long a batch that is not full waits for more."""
    partial_failures: bool = False
    maximum_concurrency: int = 1000


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where a rule or a schedule delivers; *input*, JSON, replaces the event if it is given."""

    kind: Literal["function", "queue"]
    name: str
    input: str = ""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """Rings by the clock."""

    name: str
    expression: str
    target: Target


class LogFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What of a log is pushed to a function: the lines that have *words* in them."""

    words: str
    function: str


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that waits for events."""

    name: str
    pattern: Mapping[str, Any]
    targets: tuple[Target, ...]
