"""Elapsed time and processor seconds of this process and all processes that work for it."""

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_OWN, _CHILDREN = slice(11, 13), slice(13, 15)


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """An instant: elapsed seconds, and the processor seconds used until then."""

    wall_seconds: float
    processor_seconds: float

    def __sub__(self, earlier: "Reading") -> "Reading":
        """Return the difference to *earlier*."""
        return Reading(
            wall_seconds=self.wall_seconds - earlier.wall_seconds,
            processor_seconds=self.processor_seconds - earlier.processor_seconds,
        )

    def __str__(self) -> str:
        """Return both values as text."""
        return f"{self.wall_seconds:5.1f} s, {self.processor_seconds:5.1f} processor seconds"


class Meter:
    """Reads the processor seconds of this process, of its finished children, and of other running processes."""

    def __init__(self, list_other_pids: Callable[[], Iterable[int]]) -> None:
        """Include the processes that *list_other_pids* returns; each is a child that is waited for at the end."""
        self._list_other_pids = list_other_pids

    def read(self) -> Reading:
        """Return the current reading."""
        cpu_times = os.times()
        own_seconds = cpu_times.user + cpu_times.system + cpu_times.children_user + cpu_times.children_system
        return Reading(
            wall_seconds=time.monotonic(),
            processor_seconds=own_seconds + sum(map(_read_processor_seconds, self._list_other_pids())),
        )


def _read_processor_seconds(pid: int) -> float:
    """Return the processor seconds of a process and its finished children; 0 if the process is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, (*fields[_OWN], *fields[_CHILDREN]))) / _TICKS
