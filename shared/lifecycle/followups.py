"""When to look again."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from shared.model.action import Action, FollowUp, Function

SOONEST: Final = timedelta(seconds=5)
LATEST: Final = timedelta(seconds=30)
PATIENCE: Final = timedelta(minutes=10)
"""What has not moved for so long is left to the tick of every minute."""
HORIZON: Final = timedelta(minutes=15)
"""The longest delay that a queue can keep a message for."""


def follow_up_delay(age: timedelta) -> timedelta:
    """Wait as long again as the work in progress is old, from `SOONEST` to `LATEST`."""
    return min(max(age, SOONEST), LATEST)


def look_again(since: datetime, now: datetime, why: str) -> tuple[FollowUp, ...]:
    """Wake the lifecycle for work that last moved at *since*; not at all once that is long ago."""
    age = now - since
    if age > PATIENCE:
        return ()
    return (FollowUp(function="lifecycle", after=follow_up_delay(age), why=why),)


def look_at(due: datetime, now: datetime, why: str, function: Function = "lifecycle") -> tuple[FollowUp, ...]:
    """Wake *function* exactly at *due*, if that is to come and not beyond `HORIZON`."""
    after = due - now
    return (FollowUp(function=function, after=after, why=why),) if timedelta() < after <= HORIZON else ()


def soonest(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Keep one follow-up a function, the soonest, behind everything else; sorted by function."""
    others: list[Action] = []
    first: dict[str, FollowUp] = {}
    for action in actions:
        if not isinstance(action, FollowUp):
            others.append(action)
        elif action.function not in first or _order(action) < _order(first[action.function]):
            first[action.function] = action
    return (*others, *(first[function] for function in sorted(first)))


def _order(action: FollowUp) -> tuple[timedelta, str]:
    return action.after, action.why
