"""How long finite pods run: one distribution for each family of pods, as numbers of runs in logarithmic intervals.

Finite pods end by themselves: pods of Jobs, and other pods that are not restarted when they complete. A family is the
pods that one CronJob, Job, workflow or template creates again and again.
"""

from datetime import datetime, timedelta
from typing import Final

import msgspec

MIN_RUN_S: Final = 15
INTERVALS_PER_DOUBLING: Final = 4
INTERVAL_ENDS_S: Final = tuple(round(MIN_RUN_S * 2 ** (number / INTERVALS_PER_DOUBLING)) for number in range(56))
"""The end of each interval of run times, from 15s to 57h: each is 19% longer than the one before."""
LAST_INTERVAL: Final = len(INTERVAL_ENDS_S) - 1
"""Longer runs are counted in the last interval."""


class RunningPod(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """A finite pod that was running when it was seen last."""

    uid: str
    family: str
    node: str
    started_at: datetime


class EndedRun(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True):
    """A finite pod that ended."""

    family: str
    run_time: timedelta
    last_seen_at: datetime
    """When the pod was still seen running: it ended later."""


class RunTimeRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The run times of one family of finite pods."""

    family: str
    """With its kind and namespace: ``CronJob shop/report``."""
    run_counts: tuple[tuple[int, int], ...]
    """Pairs of an interval and its number of runs, sorted; older runs count less."""
    last_seen_at: datetime
    """When a run of the family was last seen."""

    @property
    def run_count(self) -> int:
        """Number of recorded runs, without those that are forgotten."""
        return sum(count for _, count in self.run_counts)


def find_interval(run_time: timedelta) -> int:
    """Return the number of the interval of *run_time*.

    >>> find_interval(timedelta(seconds=3)), find_interval(timedelta(seconds=15)), find_interval(timedelta(days=9))
    (0, 1, 55)
    """
    seconds = run_time.total_seconds()
    return next((number for number, end_s in enumerate(INTERVAL_ENDS_S) if seconds < end_s), LAST_INTERVAL)


def get_interval_bounds(interval: int) -> tuple[int, int]:
    """Return the first second of *interval*, and the first one after it.

    >>> get_interval_bounds(0), get_interval_bounds(1)
    ((0, 15), (15, 18))
    """
    return (INTERVAL_ENDS_S[interval - 1] if interval else 0), INTERVAL_ENDS_S[interval]
