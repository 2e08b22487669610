"""A terminal that shows one page again and again, and is afterwards as it was, however that ends."""

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

ENTER: Final = "\x1b[?1049h\x1b[?25l"
"""A page of its own, without cursor."""
LEAVE: Final = "\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_REST_OF_LINE: Final = "\x1b[K"
_REST: Final = "\x1b[J"
_SEQUENCES: Final = {"\x1b[A": "up", "\x1b[B": "down", "\x1b[5~": "page up", "\x1b[6~": "page down"}
_POLL: Final = 0.25
"""Seconds after which a window of another size is noticed."""
_TERMINATED: Final = 128 + signal.SIGTERM


class Screen:
    """While it is entered the terminal is ours; what others say on standard error is kept from it."""

    def __init__(self) -> None:
        """Take the terminal of standard input and output."""
        self._out: TextIO = sys.stdout
        self._keys = sys.stdin.fileno()
        self._size = os.get_terminal_size(self._out.fileno())
        self._said = redirect_stderr(StringIO())

    def __enter__(self) -> Self:
        """Remember how the terminal was."""
        self._before = termios.tcgetattr(self._keys)
        self._ended = signal.signal(signal.SIGTERM, _leave)
        self._said.__enter__()
        tty.setcbreak(self._keys)
        self._write(ENTER)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave it so."""
        self._write(LEAVE)
        termios.tcsetattr(self._keys, termios.TCSADRAIN, self._before)
        self._said.__exit__(kind, error, trace)
        signal.signal(signal.SIGTERM, self._ended)

    @property
    def columns(self) -> int:
        """How wide it is at present."""
        return self._size.columns

    @property
    def lines(self) -> int:
        """How high it is at present."""
        return self._size.lines

    def show(self, lines: list[str]) -> None:
        """Show *lines* in place of what was there; those that have no room are left away."""
        page = f"{_REST_OF_LINE}\n".join(lines[: self.lines])
        self._write(f"{_HOME}{page}{_REST_OF_LINE}{_REST}")

    def keys(self, seconds: float) -> list[str] | None:
        """Wait so long, or until keys are pressed; answer these, or None as soon as the window has another size.

        Arrows and pages are named: ``up``, ``down``, ``page up``, ``page down``.
        """
        left = seconds
        while True:
            size = os.get_terminal_size(self._out.fileno())
            if size != self._size:
                self._size = size
                return None
            step = min(left, _POLL)
            if select.select([self._keys], [], [], max(step, 0.0))[0]:
                return _named(os.read(self._keys, 64).decode(errors="replace"))
            left -= step
            if left <= 0:
                return []

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _named(text: str) -> list[str]:
    r"""Answer the keys of what was typed.

    >>> _named("c\x1b[Aq")
    ['c', 'up', 'q']
    """
    found: list[str] = []
    while text:
        sequence = next((one for one in _SEQUENCES if text.startswith(one)), text[0])
        found.append(_SEQUENCES.get(sequence, sequence))
        text = text[len(sequence) :]
    return found


def _leave(_: int, __: FrameType | None) -> None:
    raise SystemExit(_TERMINATED)
