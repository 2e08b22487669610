"""How things look on a terminal: widths, colours, numbers."""

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final, TextIO

_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_GAP: Final = 2


class Palette:
    """Colours, or none where nobody would see them."""

    def __init__(self, *, enabled: bool) -> None:
        """Paint only if *enabled*."""
        self._enabled = enabled

    def paint(self, colour: str, text: str) -> str:
        """Answer *text* in *colour*: bold, dim, red, green, yellow, cyan; anything else leaves it plain."""
        code = _CODES.get(colour)
        return f"\x1b[{code}m{text}\x1b[0m" if self._enabled and code else text


def palette_of(stream: TextIO) -> Palette:
    """Answer colours if *stream* is a terminal that has them and nobody said NO_COLOR."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Palette(enabled=wanted and stream.isatty())


def is_terminal() -> bool:
    """Whether somebody looks on and may press keys, at a terminal that we know to refresh."""
    return os.name == "posix" and sys.stdout.isatty() and sys.stdin.isatty()


def width_of(stream: TextIO) -> int | None:
    """Answer how many columns *stream* shows; None where lines may be as long as they like, as in a file."""
    if stream.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return shutil.get_terminal_size().columns
    return None


def aligned(rows: Sequence[tuple[str, ...]], left: int, gap: int = _GAP) -> list[str]:
    """Set *rows* under each other; the first *left* columns begin, the others end, at the same place."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        (" " * gap)
        .join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        .rstrip()
        for row in rows
    ]


def width_when_aligned(rows: Sequence[tuple[str, ...]], gap: int = _GAP) -> int:
    """Answer how wide the longest line of `aligned` can be."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return sum(widths) + gap * (len(widths) - 1)


def cut(text: str, width: int | None) -> str:
    """Answer *text* in at most *width* columns.

    >>> cut("default/web-1", 8), cut("default/web-1", None)
    ('default…', 'default/web-1')
    """
    return text if width is None or len(text) <= width else text[: max(width - 1, 0)] + "…"


def folded(text: str, width: int | None, indent: str, hang: str = "  ") -> list[str]:
    """Break *text* between words into lines of at most *width* columns that begin with *indent*; words stay whole.

    All lines but the first have *hang* behind their indent.

    >>> folded("no instance type has 64 cpu", 20, "  ")
    ['  no instance type', '    has 64 cpu']
    """
    if width is None:
        return [indent + text]
    lines: list[str] = []
    line = indent
    for word in text.split():
        if line.strip() and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = indent + hang
        line += word if not line.strip() else f" {word}"
    return [*lines, line]


def some(names: Iterable[str], most: int | None) -> str:
    """Name at most *most*, and count the others.

    >>> some("abcde", 3), some("ab", 3), some("abcde", None)
    ('a, b, c and 2 more', 'a, b', 'a, b, c, d, e')
    """
    every = list(names)
    rest = 0 if most is None else len(every) - most
    return ", ".join(every[:most]) + (f" and {rest:,} more" if rest > 0 else "")


def count(number: int, what: str) -> str:
    """Answer *number* of *what*.

    >>> count(1, "pod"), count(1200, "pod"), count(2, "class")
    ('1 pod', '1,200 pods', '2 classes')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}{'es' if what.endswith('s') else 's'}"


def age(passed: timedelta) -> str:
    """Answer how long ago that was, in its largest unit.

    >>> age(timedelta(hours=50)), age(timedelta(minutes=1)), age(timedelta(seconds=-5))
    ('2 days', '1 minute', 'less than a minute')
    """
    whole = int(passed.total_seconds())
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if whole >= length:
            return count(whole // length, unit)
    return "less than a minute"


def columns(time: str, who: str, what: str, nodes: str, pods: str, cost: str) -> str:
    """Answer one line of the timeline."""
    return f"{time:>8}  {who:22.22}{what:72.72}{nodes:>6}{pods:>8}{cost:>8}".rstrip()


def clock_text(passed: timedelta) -> str:
    """Answer h:mm:ss.

    >>> clock_text(timedelta(minutes=61, seconds=5))
    '1:01:05'
    """
    whole = int(passed.total_seconds())
    return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"


def seconds(some: float | None) -> str:
    """Answer seconds, or a dash where there are none.

    >>> seconds(61.4), seconds(None)
    ('61 s', '-')
    """
    return "-" if some is None else f"{some:.0f} s"


def dollars(some: float) -> str:
    """Answer USD with a tenth of a cent.

    >>> dollars(0.1234)
    '0.123'
    """
    return f"{some:.3f}"
