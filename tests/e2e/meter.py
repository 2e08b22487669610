"""How long something takes, by the wall and in processor seconds, of this process and all that work for it."""

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_OWN, _CHILDREN = slice(11, 13), slice(13, 15)


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """An instant: seconds of the wall, and what was computed until then."""

    wall: float
    processor: float

    def __sub__(self, earlier: "Reading") -> "Reading":
        """Answer what passed since *earlier*."""
        return Reading(wall=self.wall - earlier.wall, processor=self.processor - earlier.processor)

    def __str__(self) -> str:
        """Say both."""
        return f"{self.wall:5.1f} s, {self.processor:5.1f} processor seconds"


class Meter:
    """Reads what this process, the children that it has waited for, and *others* that run have used."""

    def __init__(self, others: Callable[[], Iterable[int]]) -> None:
        """Count *others*, ids of processes, besides; each is a child that somebody waits for in the end."""
        self._others = others

    def read(self) -> Reading:
        """Answer the present instant."""
        own = os.times()
        used = own.user + own.system + own.children_user + own.children_system
        return Reading(wall=time.monotonic(), processor=used + sum(map(_used, self._others())))


def _used(pid: int) -> float:
    """Answer the processor seconds of a process and of its children that have ended; 0 where nobody can say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, (*fields[_OWN], *fields[_CHILDREN]))) / _TICKS
