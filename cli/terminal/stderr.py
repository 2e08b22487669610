"""Progress of slow operations and errors, on standard error."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, Timer
from typing import TYPE_CHECKING, Final, TextIO, TypeAlias

from cli.terminal.text import open_console

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

PROGRESS_DELAY_SECONDS: Final = 2.0
"""Seconds before the first message."""


ProgressCallback: TypeAlias = Callable[[str], None]


@contextmanager
def show_progress(activity: str, delay_seconds: float = PROGRESS_DELAY_SECONDS) -> Iterator[ProgressCallback]:
    """Show *activity* while it takes longer than *delay_seconds*; only on a terminal, because logs do not need it.

    The callback replaces the text. When the activity ends, the line disappears.
    """
    if not sys.stderr.isatty():
        yield _ignore_line
        return
    progress = _DelayedProgress(activity, delay_seconds)
    try:
        yield progress.update
    finally:
        progress.stop()


class _DelayedProgress:
    """A line with the elapsed time that appears after a delay."""

    def __init__(self, activity: str, delay_seconds: float) -> None:
        self._text = f"{activity} …"
        self._progress: Progress | None = None
        self._lock = Lock()
        self._timer = Timer(delay_seconds, self._start)
        self._timer.daemon = True
        self._timer.start()

    def update(self, text: str) -> None:
        """Replace the text."""
        with self._lock:
            self._text = text
            if self._progress is not None:
                self._progress.update(self._progress.task_ids[0], description=f"joiner: {text}", refresh=True)

    def stop(self) -> None:
        """Remove the line; from now on, it cannot appear."""
        self._timer.cancel()
        self._timer.join()
        if self._progress is not None:
            self._progress.stop()

    def _start(self) -> None:
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        with self._lock:
            self._progress = Progress(
                SpinnerColumn("line"),
                TextColumn("{task.description}", markup=False),
                TimeElapsedColumn(),
                console=_open_shared_console(sys.stderr),
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._progress.add_task(f"joiner: {self._text}", total=None)
            self._progress.start()


@cache
def _open_shared_console(stream: TextIO) -> "Console":
    """Return the console of *stream*: activities within others share it, so that each has its line."""
    return open_console(stream)


def _ignore_line(line: str) -> None:
    """Drop *line*: standard error is not a terminal."""


def print_errors(command: str, lines: Iterable[str]) -> int:
    """Print *lines*, each with the command's name before it; return the exit status: 1 if there were any."""
    messages = list(lines)
    sys.stderr.writelines(f"joiner {command}: {line}\n" for line in messages)
    return 1 if messages else 0
