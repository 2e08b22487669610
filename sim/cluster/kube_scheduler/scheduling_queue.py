"""Entries of the scheduling queue, with their order and the backoff between attempts."""

from datetime import datetime, timedelta
from typing import Final

from sim.cluster.kube_scheduler.pod_shape import SchedulingShape
from sim.cluster.matching import Obj

_INITIAL_BACKOFF: Final = timedelta(seconds=1)
_MAX_BACKOFF: Final = timedelta(seconds=10)


class QueuedPodInfo:
    """A pod in the scheduling queue."""

    __slots__ = ("attempts", "due", "last_attempt", "pod", "shape", "turn")

    def __init__(self, pod: Obj, shape: SchedulingShape, turn: int, due: datetime) -> None:
        """Queue *pod* for an attempt at *due*; *turn* is its order among pods of equal priority."""
        self.pod, self.shape, self.turn = pod, shape, turn
        self.attempts = 0
        self.last_attempt = due
        self.due: datetime | None = due

    def get_sort_key(self) -> tuple[int, int]:
        """Return the sort key: higher priority first, then the earlier *turn*."""
        return -self.pod["spec"].get("priority", 0), self.turn

    def compute_backoff_end(self) -> datetime:
        """Return the earliest time of the next attempt."""
        return self.last_attempt + min(_MAX_BACKOFF, _INITIAL_BACKOFF * (1 << min(self.attempts - 1, 8)))
