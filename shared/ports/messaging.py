"""Queues and notification topics as protocols."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

import msgspec


class MessageQueue(Protocol):
    """Delayed messages to Joiner's own functions: one queue per function."""

    def add(self, function: str, body: str, after: timedelta) -> None:
        """Wake *function* with *body* after *after*: whole seconds, at most 15 minutes."""

    def add_batch(self, function: str, body: str, delays: Sequence[timedelta]) -> None:
        """Wake *function* once after each of *delays*, like `add`, with few requests."""


class Topic(Protocol):
    """The SNS topic for cost notifications."""

    def publish(self, subject: str, text: str) -> None:
        """Publish a message to all subscribers once; *subject* is one line of ASCII, shorter than 100 characters."""


class BusEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event for the event bus."""

    event_id: str
    """The id in the detail."""
    source: str = "joiner"
    detail_type: str
    at: datetime
    detail: str
    """A JSON object."""


class EventBus(Protocol):
    """The EventBridge event bus of the setting `event-bus`."""

    def put(self, events: Sequence[BusEvent]) -> tuple[tuple[int, ...], str]:
        """Put at most ten events in one attempt.

        Return the indices of the events that were not accepted, and the error of the first of them.
        """
