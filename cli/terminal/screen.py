"""A full-screen terminal page that rich redraws in place, and keys; on exit and on errors, the terminal is restored."""

import os
import select
import signal
import sys
import termios
import tty
from contextlib import redirect_stderr
from io import StringIO
from types import FrameType, TracebackType
from typing import Final, Self

from rich.live import Live
from rich.text import Text

from cli.terminal.text import open_console

_KEY_BY_SEQUENCE: Final = {"\x1b[A": "up", "\x1b[B": "down", "\x1b[5~": "page up", "\x1b[6~": "page down"}
_RESIZE_POLL_SECONDS: Final = 0.25
"""Interval at which changes of the window size are detected."""
_SIGTERM_EXIT_CODE: Final = 128 + signal.SIGTERM


class Screen:
    """A context manager that owns the terminal; output of other code on standard error is suppressed meanwhile."""

    def __init__(self) -> None:
        """Use the terminal of standard input and output."""
        self._input_descriptor, self._output_descriptor = sys.stdin.fileno(), sys.stdout.fileno()
        self._size = os.get_terminal_size(self._output_descriptor)
        self._console = open_console(sys.stdout)
        self._page = Live(
            console=self._console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )
        self._stderr_redirect = redirect_stderr(StringIO())

    def __enter__(self) -> Self:
        """Save the state of the terminal."""
        self._previous_attributes = termios.tcgetattr(self._input_descriptor)
        self._previous_handler = signal.signal(signal.SIGTERM, _handle_sigterm)
        self._stderr_redirect.__enter__()
        tty.setcbreak(self._input_descriptor)
        self._page.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the state of the terminal."""
        self._page.stop()
        termios.tcsetattr(self._input_descriptor, termios.TCSADRAIN, self._previous_attributes)
        self._stderr_redirect.__exit__(kind, error, trace)
        signal.signal(signal.SIGTERM, self._previous_handler)

    @property
    def columns(self) -> int:
        """The current number of columns."""
        return self._size.columns

    @property
    def lines(self) -> int:
        """The current number of lines."""
        return self._size.lines

    def show(self, lines: list[str]) -> None:
        """Replace the page with *lines*: the window cuts long lines, and drops those below its bottom."""
        self._console.size = self._size.columns, self._size.lines
        self._page.update(Text.from_ansi("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True)

    def read_keys(self, seconds: float) -> list[str] | None:
        """Wait for pressed keys for at most *seconds*; return them, or None as soon as the window size changes.

        Arrow and page keys are named: ``up``, ``down``, ``page up``, ``page down``.
        """
        remaining_seconds = seconds
        while True:
            size = os.get_terminal_size(self._output_descriptor)
            if size != self._size:
                self._size = size
                return None
            step = min(remaining_seconds, _RESIZE_POLL_SECONDS)
            if select.select([self._input_descriptor], [], [], max(step, 0.0))[0]:
                return _split_keys(os.read(self._input_descriptor, 64).decode(errors="replace"))
            remaining_seconds -= step
            if remaining_seconds <= 0:
                return []


def _split_keys(text: str) -> list[str]:
    r"""Split typed *text* into keys.

    >>> _split_keys("c\x1b[Aq")
    ['c', 'up', 'q']
    """
    keys: list[str] = []
    while text:
        sequence = next(
            (known_sequence for known_sequence in _KEY_BY_SEQUENCE if text.startswith(known_sequence)), text[0]
        )
        keys.append(_KEY_BY_SEQUENCE.get(sequence, sequence))
        text = text[len(sequence) :]
    return keys


def _handle_sigterm(_: int, __: FrameType | None) -> None:
    raise SystemExit(_SIGTERM_EXIT_CODE)
