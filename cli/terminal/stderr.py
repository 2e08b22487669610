"""Progress messages of slow operations, on standard error; only on a terminal, because logs do not need them."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Final, TypeAlias

PROGRESS_DELAY_SECONDS: Final = 2.0
"""Seconds before the first message."""


ProgressCallback: TypeAlias = Callable[[str], None]


@contextmanager
def show_progress(activity: str, delay_seconds: float = PROGRESS_DELAY_SECONDS) -> Iterator[ProgressCallback]:
    """Print *activity* if it takes longer than *delay_seconds* and standard error is a terminal; then further lines."""
    if not sys.stderr.isatty():
        yield _ignore_line
        return
    timer = Timer(delay_seconds, _write_line, (f"{activity} …",))
    timer.daemon = True
    timer.start()
    try:
        yield lambda line: None if timer.is_alive() else _write_line(line)
    finally:
        timer.cancel()
        timer.join()


def _write_line(line: str) -> None:
    sys.stderr.write(f"joiner: {line}\n")
    sys.stderr.flush()


def _ignore_line(line: str) -> None:
    """Drop *line*: standard error is not a terminal."""


def print_errors(command: str, lines: Iterable[str]) -> int:
    """Print *lines*, each with the command's name before it; return the exit status: 1 if there were any."""
    messages = list(lines)
    sys.stderr.writelines(f"joiner {command}: {line}\n" for line in messages)
    return 1 if messages else 0
