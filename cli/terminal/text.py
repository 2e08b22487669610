"""Text layout for terminals: widths, colors, numbers."""

import os
import shutil
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, TextIO

from shared.model.core.formatting import format_count

_COLOR_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_COLUMN_GAP_CHARACTERS: Final = 2


class Palette:
    """ANSI colors, or none if the output does not support colors."""

    def __init__(self, *, enabled: bool) -> None:
        """Emit colors only if *enabled*."""
        self._enabled = enabled

    def colorize(self, color: str, text: str) -> str:
        """Return *text* in *color*: bold, dim, red, green, yellow or cyan; any other color leaves it plain."""
        code = _COLOR_CODES.get(color)
        return f"\x1b[{code}m{text}\x1b[0m" if self._enabled and code else text


def choose_palette(stream: TextIO) -> Palette:
    """Return a palette with colors if *stream* is a terminal that supports them and NO_COLOR is not set."""
    are_colors_allowed = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Palette(enabled=are_colors_allowed and stream.isatty())


def is_terminal() -> bool:
    """Return whether a person can read and press keys, at a terminal that can be refreshed."""
    return os.name == "posix" and sys.stdout.isatty() and sys.stdin.isatty()


def get_terminal_width(stream: TextIO) -> int | None:
    """Return the number of columns of *stream*; None if lines may have any length, as in a file."""
    if stream.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return shutil.get_terminal_size().columns
    return None


def align_columns(rows: Sequence[tuple[str, ...]], left_columns: int, gap: int = _COLUMN_GAP_CHARACTERS) -> list[str]:
    """Align the columns of *rows*: the first *left_columns* to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        (" " * gap)
        .join(
            cell.ljust(width) if place < left_columns else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        .rstrip()
        for row in rows
    ]


def compute_aligned_width(rows: Sequence[tuple[str, ...]], gap: int = _COLUMN_GAP_CHARACTERS) -> int:
    """Return the length of the longest line that `align_columns` can return."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return sum(widths) + gap * (len(widths) - 1)


def truncate_text(text: str, width: int | None) -> str:
    """Return *text* in at most *width* columns.

    >>> truncate_text("default/web-1", 8), truncate_text("default/web-1", None)
    ('default…', 'default/web-1')
    """
    return text if width is None or len(text) <= width else text[: max(width - 1, 0)] + "…"


def wrap_text(text: str, width: int | None, indent: str, hang: str = "  ") -> list[str]:
    """Wrap *text* between words into lines of at most *width* columns that begin with *indent*; words stay whole.

    All lines but the first have *hang* after their indent.

    >>> wrap_text("no instance type has 64 cpu", 20, "  ")
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


def format_age(passed: timedelta) -> str:
    """Format *passed* in its largest unit.

    >>> format_age(timedelta(hours=50)), format_age(timedelta(minutes=1)), format_age(timedelta(seconds=-5))
    ('2 days', '1 minute', 'less than a minute')
    """
    seconds_passed = int(passed.total_seconds())
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds_passed >= length:
            return format_count(seconds_passed // length, unit)
    return "less than a minute"


def format_timeline_row(time: str, source: str, event: str, nodes: str, pods: str, cost: str) -> str:
    """Format one line of the timeline."""
    return f"{time:>8}  {source:22.22}{event:72.72}{nodes:>6}{pods:>8}{cost:>8}".rstrip()


def format_clock(passed: timedelta) -> str:
    """Format *passed* as h:mm:ss.

    >>> format_clock(timedelta(minutes=61, seconds=5))
    '1:01:05'
    """
    seconds_passed = int(passed.total_seconds())
    return f"{seconds_passed // 3600}:{seconds_passed % 3600 // 60:02}:{seconds_passed % 60:02}"


def format_seconds(duration_seconds: float | None) -> str:
    """Format a number of seconds, None as a dash.

    >>> format_seconds(61.4), format_seconds(None)
    ('61 s', '-')
    """
    return "-" if duration_seconds is None else f"{duration_seconds:.0f} s"


def format_usd_cell(amount_usd: float) -> str:
    """Format USD for a column whose heading names the currency: three decimals.

    >>> format_usd_cell(0.1234)
    '0.123'
    """
    return f"{amount_usd:.3f}"
