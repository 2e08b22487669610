"""Calls that run at the same time, in a bounded number of threads."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from heapq import heapify, heappop, heappush
from threading import Condition


def run_in_threads(groups: Iterable[Iterable[int]], perform: Callable[[int], None], thread_count: int) -> None:
    """Call *perform* with each position of *groups*, in at most *thread_count* threads at once.

    A group is performed in its order, one position after the other. Of the positions that can be performed, the lowest
    is started first: what is urgent in one group is not done after what is less urgent in another. Each thread has a
    copy of the caller's context.

    Raises:
        BaseException: the first exception of *perform*. No call is started after it, and the calls that were started
            are complete.
    """
    queue = _CallQueue(groups)
    with ThreadPoolExecutor(thread_count, "call") as executor:
        for _ in range(thread_count):
            executor.submit(copy_context().run, queue.perform_all, perform)
    if queue.error is not None:
        raise queue.error


class _CallQueue:
    """The positions that wait for a thread; shared by all threads."""

    def __init__(self, groups: Iterable[Iterable[int]]) -> None:
        self.error: BaseException | None = None
        iterators = [iter(group) for group in groups]
        self._ready = [(position, group) for group in iterators for position in _take_next(group)]
        heapify(self._ready)
        self._running_count = 0
        self._condition = Condition()

    def perform_all(self, perform: Callable[[int], None]) -> None:
        """Perform positions until none is left or one has failed."""
        while (ready_call := self._take()) is not None:
            position, group = ready_call
            error: BaseException | None = None
            try:
                perform(position)
            except BaseException as raised:  # noqa: BLE001 - raised again in the caller's thread
                error = raised
            self._finish(group, error)

    def _take(self) -> tuple[int, Iterator[int]] | None:
        """Return the lowest position that can be performed, after a wait if needed; None at the end."""
        with self._condition:
            while not self._ready and self._running_count and self.error is None:
                self._condition.wait()
            if not self._ready or self.error is not None:
                return None
            self._running_count += 1
            return heappop(self._ready)

    def _finish(self, group: Iterator[int], error: BaseException | None) -> None:
        with self._condition:
            self._running_count -= 1
            self.error = self.error or error
            for position in _take_next(group):
                heappush(self._ready, (position, group))
            self._condition.notify_all()


def _take_next(group: Iterator[int]) -> tuple[int, ...]:
    """Return the next position of *group*, or an empty tuple."""
    for position in group:
        return (position,)
    return ()
