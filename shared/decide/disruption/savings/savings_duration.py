"""How long savings are expected to last.

It is unknown how long the cluster will stay as it is. Without a forecast, it is expected to stay for as long as it has
been quiet already (the ski rental problem): in any future, disruptions then cost at most as much as was wasted while
nothing happened.

If evictions have a price, a launch for pending pods in the NodePool also ends the quiet period: capacity that was just
missing is not saved by removing other nodes.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.decide.disruption.candidates import Candidate
from shared.model.core.formatting import format_elapsed
from shared.model.core.labels import COMMAND
from shared.model.core.metadata import find_condition
from shared.state.state_node import StateNode

MAX_SAVINGS_DURATION: Final = timedelta(days=1)
"""Savings are never expected to last longer, and no disruption has to save for longer."""


class SavingsDuration(msgspec.Struct, frozen=True, kw_only=True):
    """How long savings are expected to last, and why."""

    expected: timedelta
    """At most `MAX_SAVINGS_DURATION`."""
    basis: str
    """In plain words: ``no pod change for 46m``."""
    error: timedelta | None = None
    """Typical error of the estimate; None: unknown."""


def estimate_savings_duration(
    targets: Sequence[Candidate], now: datetime, launch_time_by_pool: Mapping[str, datetime]
) -> SavingsDuration:
    """Return how long the savings of disrupting *targets* are expected to last: as long as their pods were quiet.

    *launch_time_by_pool*: launches that end the quiet period, unless it has lasted for a day.
    """
    quiet_since = find_quiet_since(targets)
    launch_times = [
        launch_time_by_pool[name] for target in targets if (name := target.pool.name) in launch_time_by_pool
    ]
    launched_at = max(launch_times, default=None)
    if (
        launched_at is not None
        and quiet_since is not None
        and now - quiet_since < MAX_SAVINGS_DURATION
        and launched_at > quiet_since
    ):
        return SavingsDuration(
            expected=max(now - launched_at, timedelta()),
            basis=f"no launch in the NodePool for {format_elapsed(now - launched_at)}",
        )
    if quiet_since is None:
        return SavingsDuration(expected=MAX_SAVINGS_DURATION, basis="no pod change is known")
    quiet_period = now - quiet_since
    return SavingsDuration(
        expected=min(max(quiet_period, timedelta()), MAX_SAVINGS_DURATION),
        basis=f"no pod change for {format_elapsed(quiet_period)}",
    )


def find_quiet_since(targets: Iterable[Candidate]) -> datetime | None:
    """Return since when no pod has been added to *targets*, completed or begun to leave; None if it is unknown."""
    return max((since for target in targets if (since := _find_last_change(target)) is not None), default=None)


def _find_last_change(candidate: Candidate) -> datetime | None:
    initialized = find_condition(candidate.claim.conditions, "Initialized")
    event_times = (candidate.claim.last_pod_event_at, initialized.since if initialized is not None else None)
    return max((since for since in event_times if since is not None), default=None)


def find_launch_times(states: Iterable[StateNode]) -> dict[str, datetime]:
    """Return, by NodePool, when the newest of its nodes was created for pending pods, not by a disruption command."""
    launch_time_by_pool: dict[str, datetime] = {}
    for state in states:
        created_at = state.claim.meta.created_at if state.claim is not None else None
        if state.claim is None or created_at is None or state.claim.meta.get_annotation(COMMAND):
            continue
        launch_time_by_pool[state.pool] = max(created_at, launch_time_by_pool.get(state.pool, created_at))
    return launch_time_by_pool
