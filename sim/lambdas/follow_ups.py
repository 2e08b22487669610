"""The mailbox of a deployed stack: what a function is to be asked later goes to that function's own queue."""

import math
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from shared.errors import Gone

LONGEST_DELAY: Final = timedelta(minutes=15)
"""That SQS takes."""


class FollowUps:
    """A `Mailbox`."""

    def __init__(self, send: Callable[[str, str, timedelta], None], prefix: str, names: Mapping[str, str]) -> None:
        """Send by *send*, to queues whose URLs begin with *prefix*; *names* has their names by their URLs."""
        self._send, self._prefix, self._names = send, prefix, names

    def send(self, function: str, body: str, after: timedelta) -> None:
        """Do what `Mailbox` asks for.

        Raises:
            Gone: *function* has no queue.
        """
        url = f"{self._prefix}{function}"
        if url not in self._names:
            raise Gone(f"SendMessage: there is no queue {url}")
        seconds = math.ceil(min(max(after, timedelta(0)), LONGEST_DELAY).total_seconds())
        self._send(self._names[url], body, timedelta(seconds=seconds))
