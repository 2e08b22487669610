"""Threads for work that takes time, and a thread that calls functions at short intervals."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Lock
from typing import Final

MAX_THREADS: Final = 64
"""Concurrent invocations and batches."""
TICK_INTERVAL_SECONDS: Final = 0.1


class WorkerPool:
    """A thread pool that collects the errors of its work."""

    def __init__(self, max_threads: int = MAX_THREADS) -> None:
        """Start with at most *max_threads* threads."""
        self.errors: list[str] = []
        """Type and message of unexpected errors, oldest first."""
        self._pool, self._lock = ThreadPoolExecutor(max_threads, thread_name_prefix="sandboxes"), Lock()

    def submit(self, work: Callable[[], object]) -> None:
        """Run *work* in a thread; after the shutdown it is ignored."""
        with suppress(RuntimeError):
            self._pool.submit(work).add_done_callback(self._collect_error)

    def shut_down(self) -> None:
        """Accept no more work, and wait until all running work has ended."""
        self._pool.shutdown(cancel_futures=True)

    def _collect_error(self, future: Future[object]) -> None:
        error = None if future.cancelled() else future.exception()
        if error is not None:
            with self._lock:
                self.errors.append(f"{type(error).__name__}: {error}")


class Ticker:
    """Calls the same functions every `TICK_INTERVAL_SECONDS`, one after the other, until it is stopped."""

    def __init__(self, callbacks: Iterable[Callable[[], object]]) -> None:
        """Call *callbacks* in order.

        An error of one is collected in `errors`, and the function is called again next time.
        """
        self._callbacks, self._worker = tuple(callbacks), WorkerPool(1)
        self._stopped = Event()
        self._worker.submit(self._run_callbacks)

    @property
    def errors(self) -> list[str]:
        """Type and message of unexpected errors, oldest first."""
        return self._worker.errors

    def stop(self) -> None:
        """Stop; return when the last call has ended."""
        self._stopped.set()
        self._worker.shut_down()

    def _run_callbacks(self) -> None:
        if self._stopped.wait(TICK_INTERVAL_SECONDS):
            return
        for callback in self._callbacks:
            self._worker.submit(callback)
        self._worker.submit(self._run_callbacks)
