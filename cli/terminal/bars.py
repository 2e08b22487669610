"""Bars of block characters: the share of a whole."""

from typing import Final

_EIGHTH_BLOCKS: Final = " ▏▎▍▌▋▊▉█"


def draw_share_bar(share: float, columns: int) -> str:
    """Return a bar of *columns* characters that is filled to *share*; more than 1 is drawn as 1.

    >>> draw_share_bar(0.5, 4), draw_share_bar(0.3, 4), draw_share_bar(7.0, 4), draw_share_bar(0.0, 4)
    ('██░░', '█▎░░', '████', '░░░░')
    """
    eighths = round(8 * columns * min(max(share, 0.0), 1.0))
    full_blocks, remaining_eighths = divmod(eighths, 8)
    partial_block = _EIGHTH_BLOCKS[remaining_eighths] if remaining_eighths else ""
    return f"{'█' * full_blocks}{partial_block}".ljust(columns, "░")
