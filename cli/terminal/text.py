"""Text layout for terminals: rich lays out tables, wraps text, measures the terminal and applies colors.

Functions import rich when they need it: help, completion, and JSON output start without it.
"""

import os
import sys
from datetime import timedelta
from textwrap import wrap
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console


class Palette:
    """ANSI colors, or none if the output does not support colors."""

    def __init__(self, *, enabled: bool) -> None:
        """Emit colors only if *enabled*."""
        self._enabled = enabled

    def colorize(self, color: str, text: str) -> str:
        """Return *text* in *color*, a style of rich such as ``bold`` or ``red``; "" leaves it plain."""
        if not (self._enabled and color):
            return text
        from rich.color import ColorSystem  # noqa: PLC0415
        from rich.style import Style  # noqa: PLC0415

        return Style.parse(color).render(text, color_system=ColorSystem.STANDARD)


def choose_palette(stream: TextIO) -> Palette:
    """Return a palette with colors if *stream* is a terminal that supports them and NO_COLOR is not set."""
    if not stream.isatty():
        return Palette(enabled=False)
    console = open_console(stream)
    return Palette(enabled=console.color_system is not None and not console.no_color)


def open_console(stream: TextIO, width: int | None = None) -> "Console":
    """Return a console that prints text to *stream* unchanged: names from a cluster are not markup."""
    from rich.console import Console  # noqa: PLC0415

    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False)


def is_terminal() -> bool:
    """Return whether a person can read and press keys, at a terminal that can be refreshed."""
    return os.name == "posix" and sys.stdout.isatty() and sys.stdin.isatty()


def get_terminal_width(stream: TextIO) -> int | None:
    """Return $COLUMNS or the number of columns of *stream*; None if lines may have any length, as in a file."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    return open_console(stream).width if stream.isatty() else None


def truncate_text(text: str, width: int | None) -> str:
    """Return *text* in at most *width* columns.

    >>> truncate_text("default/web-1", 8), truncate_text("default/web-1", None)
    ('default…', 'default/web-1')
    """
    if width is None:
        return text
    from rich.text import Text  # noqa: PLC0415

    line = Text(text)
    line.truncate(width, overflow="ellipsis")
    return line.plain


def wrap_text(text: str, width: int | None, indent: str, hang: str = "  ") -> list[str]:
    """Wrap *text* between words into lines of at most *width* columns that begin with *indent*; words stay whole.

    All lines but the first have *hang* after their indent.

    >>> wrap_text("no instance type has 64 cpu", 20, "  ")
    ['  no instance type', '    has 64 cpu']
    """
    if width is None:
        return [indent + text]
    lines = wrap(
        " ".join(text.split()),
        width,
        initial_indent=indent,
        subsequent_indent=indent + hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [indent]


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
