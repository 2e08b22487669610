"""Requeue delays: when a function runs again before its next schedule."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from shared.model.decisions.action import MAX_FOLLOW_UP_DELAY, Action, FollowUp, Function

MIN_REQUEUE_DELAY: Final = timedelta(seconds=5)
MAX_REQUEUE_DELAY: Final = timedelta(seconds=30)
MAX_REQUEUED_AGE: Final = timedelta(minutes=10)
"""Older work in progress is left to the schedule of every minute."""
LIFECYCLE_REQUEUE_DELAY: Final = timedelta(seconds=5)
"""When the lifecycle runs after NodeClaims are created or deleted."""


def compute_requeue_delay(age: timedelta) -> timedelta:
    """Return the age of the work in progress, limited to between `MIN_REQUEUE_DELAY` and `MAX_REQUEUE_DELAY`."""
    return min(max(age, MIN_REQUEUE_DELAY), MAX_REQUEUE_DELAY)


def requeue_in_progress(since: datetime, now: datetime, message: str) -> tuple[FollowUp, ...]:
    """Requeue the lifecycle for work that last progressed at *since*, unless that is too long ago.

    Work that has not progressed for `MAX_REQUEUED_AGE` is not requeued.
    """
    age = now - since
    if age > MAX_REQUEUED_AGE:
        return ()
    return (FollowUp(function="lifecycle", after=compute_requeue_delay(age), message=message),)


def requeue_at(due: datetime, now: datetime, message: str, function: Function = "lifecycle") -> tuple[FollowUp, ...]:
    """Requeue *function* exactly at *due*, if that is in the future and not beyond `MAX_FOLLOW_UP_DELAY`."""
    delay = due - now
    return (
        (FollowUp(function=function, after=delay, message=message),)
        if timedelta() < delay <= MAX_FOLLOW_UP_DELAY
        else ()
    )


def keep_earliest_requeues(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Keep only the earliest follow-up of each function, after all other actions; sorted by function."""
    other_actions: list[Action] = []
    earliest_by_function: dict[str, FollowUp] = {}
    for action in actions:
        if not isinstance(action, FollowUp):
            other_actions.append(action)
        elif action.function not in earliest_by_function or _build_delay_key(action) < _build_delay_key(
            earliest_by_function[action.function]
        ):
            earliest_by_function[action.function] = action
    return (*other_actions, *(earliest_by_function[function] for function in sorted(earliest_by_function)))


def _build_delay_key(action: FollowUp) -> tuple[timedelta, str]:
    return action.after, action.message
