"""How things look on a terminal: widths, colours, numbers."""

from datetime import timedelta
from typing import Final

_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Palette:
    """Colours, or none where nobody would see them."""

    def __init__(self, *, enabled: bool) -> None:
        """Paint only if *enabled*."""
        self._enabled = enabled

    def paint(self, colour: str, text: str) -> str:
        """Answer *text* in *colour*: bold, dim, red, green, yellow, cyan; anything else leaves it plain."""
        code = _CODES.get(colour)
        return f"\x1b[{code}m{text}\x1b[0m" if self._enabled and code else text


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
