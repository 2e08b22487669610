"""Bars of block characters: the share of a whole."""

from typing import Final

_EIGHTH_BLOCKS: Final = " ▏▎▍▌▋▊▉█"
_COLUMNS_BY_TERMINAL_WIDTH: Final = ((140, 12), (100, 8), (0, 5))
"""The columns of a bar in a table, by the minimum width of the terminal."""


def draw_bar(share: float, columns: int, unfilled: str = "░") -> str:
    """Return a bar that is filled to *share* of *columns* characters; more than 1 is drawn as 1.

    *unfilled* is the character of the part that is not filled; "" leaves this part out.

    >>> draw_bar(0.5, 4), draw_bar(0.3, 4), draw_bar(7.0, 4), draw_bar(0.0, 4)
    ('██░░', '█▎░░', '████', '░░░░')
    >>> draw_bar(0.3, 4, unfilled="")
    '█▎'
    """
    eighths = round(8 * columns * min(max(share, 0.0), 1.0))
    full_blocks, remaining_eighths = divmod(eighths, 8)
    bar = "█" * full_blocks + (_EIGHTH_BLOCKS[remaining_eighths] if remaining_eighths else "")
    return bar + unfilled * (columns - len(bar))


def draw_percent(share: float, bar_columns: int) -> str:
    """Return *share* in percent, after a bar of *bar_columns* characters unless this is 0.

    >>> draw_percent(0.5, 4), draw_percent(0.5, 0)
    ('██░░  50%', '50%')
    """
    percent = f"{100 * share:.0f}%"
    return f"{draw_bar(share, bar_columns)} {percent:>4}" if bar_columns else percent


def choose_bar_columns(terminal_width: int | None) -> int:
    """Return the width of a bar in a table for a terminal; None: a terminal of any width."""
    return next(
        columns
        for min_width, columns in _COLUMNS_BY_TERMINAL_WIDTH
        if terminal_width is None or terminal_width >= min_width
    )
