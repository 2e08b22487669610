"""Threads for what takes its time, and one that looks every moment whether something is due."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Lock
from typing import Final

MOST: Final = 64
"""Invocations and batches at once."""
MOMENT_SECONDS: Final = 0.1


class Workers:
    """A pool of threads. What goes wrong in one is kept for whoever looks: nobody waits for it."""

    def __init__(self, most: int = MOST) -> None:
        """Have *most* threads at once."""
        self.broken: list[str] = []
        """Type and message of what nobody foresaw, oldest first."""
        self._pool, self._lock = ThreadPoolExecutor(most, thread_name_prefix="sandboxes"), Lock()

    def start(self, work: Callable[[], object]) -> None:
        """Do *work* in a thread of its own; after the end: nothing."""
        with suppress(RuntimeError):
            self._pool.submit(work).add_done_callback(self._look)

    def end(self) -> None:
        """Take no more work, and return when all that was begun has ended."""
        self._pool.shutdown(cancel_futures=True)

    def _look(self, done: Future[object]) -> None:
        error = None if done.cancelled() else done.exception()
        if error is not None:
            with self._lock:
                self.broken.append(f"{type(error).__name__}: {error}")


class Heart:
    """Calls the same few functions every moment, one after the other, until it is stopped."""

    def __init__(self, looks: Iterable[Callable[[], object]]) -> None:
        """Call *looks*, in order; one that goes wrong is told in `broken`, and is called again all the same."""
        self._looks, self._worker = tuple(looks), Workers(1)
        self._stopped = Event()
        self._worker.start(self._beat)

    @property
    def broken(self) -> list[str]:
        """Type and message of what nobody foresaw, oldest first."""
        return self._worker.broken

    def stop(self) -> None:
        """Return when the last look has ended."""
        self._stopped.set()
        self._worker.end()

    def _beat(self) -> None:
        if self._stopped.wait(MOMENT_SECONDS):
            return
        for look in self._looks:
            self._worker.start(look)
        self._worker.start(self._beat)
