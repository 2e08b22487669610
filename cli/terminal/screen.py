"""A full-screen terminal page that is redrawn in place, and restores the terminal on exit, also after an error."""

import os
import select
import signal
import sys
import termios
import tty
from contextlib import redirect_stderr
from io import StringIO
from types import FrameType, TracebackType
from typing import Final, Self, TextIO

ENTER_SCREEN: Final = "\x1b[?1049h\x1b[?25l"
"""Switch to the alternate screen, and hide the cursor."""
LEAVE_SCREEN: Final = "\x1b[?25h\x1b[?1049l"
_CURSOR_HOME: Final = "\x1b[H"
_CLEAR_TO_LINE_END: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"
_KEY_BY_SEQUENCE: Final = {"\x1b[A": "up", "\x1b[B": "down", "\x1b[5~": "page up", "\x1b[6~": "page down"}
_RESIZE_POLL_SECONDS: Final = 0.25
"""Interval at which changes of the window size are detected."""
_SIGTERM_EXIT_CODE: Final = 128 + signal.SIGTERM


class Screen:
    """A context manager that owns the terminal; output of other code on standard error is suppressed meanwhile."""

    def __init__(self) -> None:
        """Use the terminal of standard input and output."""
        self._out: TextIO = sys.stdout
        self._input_descriptor = sys.stdin.fileno()
        self._size = os.get_terminal_size(self._out.fileno())
        self._stderr_redirect = redirect_stderr(StringIO())

    def __enter__(self) -> Self:
        """Save the state of the terminal."""
        self._previous_attributes = termios.tcgetattr(self._input_descriptor)
        self._previous_handler = signal.signal(signal.SIGTERM, _handle_sigterm)
        self._stderr_redirect.__enter__()
        tty.setcbreak(self._input_descriptor)
        self._write(ENTER_SCREEN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the state of the terminal."""
        self._write(LEAVE_SCREEN)
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
        """Replace the page with *lines*; lines below the bottom of the window are dropped."""
        page = f"{_CLEAR_TO_LINE_END}\n".join(lines[: self.lines])
        self._write(f"{_CURSOR_HOME}{page}{_CLEAR_TO_LINE_END}{_CLEAR_BELOW}")

    def read_keys(self, seconds: float) -> list[str] | None:
        """Wait for pressed keys for at most *seconds*; return them, or None as soon as the window size changes.

        Arrow and page keys are named: ``up``, ``down``, ``page up``, ``page down``.
        """
        remaining_seconds = seconds
        while True:
            size = os.get_terminal_size(self._out.fileno())
            if size != self._size:
                self._size = size
                return None
            step = min(remaining_seconds, _RESIZE_POLL_SECONDS)
            if select.select([self._input_descriptor], [], [], max(step, 0.0))[0]:
                return _split_keys(os.read(self._input_descriptor, 64).decode(errors="replace"))
            remaining_seconds -= step
            if remaining_seconds <= 0:
                return []

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


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
