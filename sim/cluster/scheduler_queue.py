"""The pods that wait for a node, in the order of their turn, with the back-off between two attempts."""

from datetime import datetime, timedelta
from typing import Final

from sim.cluster.scheduler_match import Obj
from sim.cluster.scheduler_shape import Shape

_FIRST_BACKOFF: Final = timedelta(seconds=1)
_LAST_BACKOFF: Final = timedelta(seconds=10)


class Waiting:
    """A pod that has no node yet."""

    __slots__ = ("attempts", "due", "last_attempt", "pod", "shape", "turn")

    def __init__(self, pod: Obj, shape: Shape, turn: int, due: datetime) -> None:
        """Try *pod* at *due*; *turn* is its place among equals."""
        self.pod, self.shape, self.turn = pod, shape, turn
        self.attempts = 0
        self.last_attempt = due
        self.due: datetime | None = due

    def order(self) -> tuple[int, int]:
        """Answer the sort key: higher priority first, then the older."""
        return -self.pod["spec"].get("priority", 0), self.turn

    def after_backoff(self) -> datetime:
        """Answer when it may be tried again."""
        return self.last_attempt + min(_LAST_BACKOFF, _FIRST_BACKOFF * (1 << min(self.attempts - 1, 8)))
