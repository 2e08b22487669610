"""What takes long is told on standard error, once it does; if that is a terminal: a log has no use for it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Final

PATIENCE: Final = 2.0
"""Seconds for which nobody wonders."""


@contextmanager
def progress(what: str, patience: float = PATIENCE) -> Iterator[None]:
    """Say *what* goes on if it goes on for *patience* seconds and somebody looks on."""
    if not sys.stderr.isatty():
        yield
        return
    told = Timer(patience, _say, (f"{what} …",))
    told.daemon = True
    told.start()
    try:
        yield
    finally:
        told.cancel()
        told.join()


def _say(line: str) -> None:
    sys.stderr.write(f"joiner: {line}\n")
    sys.stderr.flush()
