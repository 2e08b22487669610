"""The message queue port of a deployed stack: each function's delayed messages go to its own SQS queue."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Final

from shared.errors import NotFound

MAX_DELAY: Final = timedelta(minutes=15)
"""The longest DelaySeconds that SQS accepts."""


class FollowUpQueues:
    """The port `shared.ports.messaging.MessageQueue` on the stack's follow-up queues."""

    def __init__(
        self, send_message: Callable[[str, str, timedelta], None], url_prefix: str, queue_name_by_url: Mapping[str, str]
    ) -> None:
        """Send with *send_message* to the queues that have a URL with *url_prefix*.

        *queue_name_by_url* has the names of all queues of the stack.
        """
        self._send_message, self._url_prefix, self._queue_name_by_url = send_message, url_prefix, queue_name_by_url

    def add(self, function: str, body: str, after: timedelta) -> None:
        """Send a message to the queue of *function*.

        Raises:
            NotFound: *function* has no queue.
        """
        url = f"{self._url_prefix}{function}"
        if url not in self._queue_name_by_url:
            raise NotFound(f"SendMessage: there is no queue {url}")
        delay_seconds = math.ceil(min(max(after, timedelta(0)), MAX_DELAY).total_seconds())
        self._send_message(self._queue_name_by_url[url], body, timedelta(seconds=delay_seconds))

    def add_batch(self, function: str, body: str, delays: Sequence[timedelta]) -> None:
        """Send a message for each of *delays*.

        Raises:
            NotFound: *function* has no queue.
        """
        for delay in delays:
            self.add(function, body, delay)
