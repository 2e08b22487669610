"""Queues and notification topics as protocols."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol


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
