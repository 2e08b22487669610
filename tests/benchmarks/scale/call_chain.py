"""How long calls take that run at the same time: the longest chain of calls that wait for each other."""

import threading


class CallChain:
    """Counts calls; the calls of different threads run at the same time.

    A thread starts at the count that the thread which started it has reached, and that thread continues after all of
    its threads.
    """

    def __init__(self) -> None:
        """Start without calls, in the thread that starts others."""
        self._main_thread, self._lock = threading.current_thread(), threading.Lock()
        self._main_count = self._longest = 0
        self._local = threading.local()

    def add_call(self) -> None:
        """Count a call of this thread."""
        with self._lock:
            if threading.current_thread() is self._main_thread:
                self._main_count = self._longest = self._longest + 1
                return
            self._local.count = getattr(self._local, "count", self._main_count) + 1
            self._longest = max(self._longest, self._local.count)

    def get_length(self) -> int:
        """Return the number of calls in the longest chain."""
        return self._longest
