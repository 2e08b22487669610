"""The time limit of a decision: a part of an invocation's time is reserved for what follows."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from shared.ports.world import World

ACTION_TIME_RESERVE: Final = timedelta(seconds=20)
"""Part of an invocation's time that is reserved for actions: claims are created and instances launched."""
REPORT_TIME_RESERVE: Final = timedelta(seconds=5)
"""Part of an invocation's time that is reserved for its end: the report is written and the lease released."""
TIME_LIMIT_MESSAGE: Final = "the time limit was reached before the decision was complete"


class Deadline:
    """Tells whether the time limit is reached, and remembers that it was."""

    def __init__(self, is_over: Callable[[], bool] | None = None) -> None:
        """Use *is_over* as the clock; None: there is no time limit."""
        self._is_over = is_over
        self.was_reached = False

    def __call__(self) -> bool:
        """Return whether the time limit is reached."""
        self.was_reached = self.was_reached or (self._is_over is not None and self._is_over())
        return self.was_reached

    def describe_cut(self) -> str:
        """Return a message if the time limit ended a decision, else ""."""
        return TIME_LIMIT_MESSAGE if self.was_reached else ""


def build_time_check(world: World, reserve: timedelta = ACTION_TIME_RESERVE) -> Callable[[], bool] | None:
    """Return a check whether no more than *reserve* of the invocation's time is left; None if the time is unknown."""
    get_time_left = world.time_left
    return None if get_time_left is None else lambda: get_time_left() < reserve


def get_time_left(world: World) -> timedelta:
    """Return the time that is left of the invocation; 0 if it is unknown."""
    return timedelta() if world.time_left is None else world.time_left()
