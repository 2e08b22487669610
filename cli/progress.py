"""What takes long is told on standard error, once it does; if that is a terminal: a log has no use for it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Final, TypeAlias

PATIENCE: Final = 2.0
"""Seconds for which nobody wonders."""


Say: TypeAlias = Callable[[str], None]


@contextmanager
def progress(what: str, patience: float = PATIENCE) -> Iterator[Say]:
    """Say *what* goes on if it goes on for *patience* seconds and somebody looks on; then also what is said of it."""
    if not sys.stderr.isatty():
        yield _unheard
        return
    told = Timer(patience, _say, (f"{what} …",))
    told.daemon = True
    told.start()
    try:
        yield lambda line: None if told.is_alive() else _say(line)
    finally:
        told.cancel()
        told.join()


def _say(line: str) -> None:
    sys.stderr.write(f"joiner: {line}\n")
    sys.stderr.flush()


def _unheard(line: str) -> None:
    """Nobody looks on: *line* is lost."""
