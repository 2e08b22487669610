"""How long savings are expected to last.

It is unknown how long the cluster will stay as it is. It is expected to stay for as long as it has been quiet already
(the ski rental problem): in any future, disruptions then cost at most as much as was wasted while nothing happened. A
forecast can end the savings earlier, if the removed capacity is needed again by then.

If evictions have a price, two more changes end the quiet period. A launch for pending pods in the NodePool: capacity
that was just missing is not saved by removing other nodes. A change of the pods on the nodes that would receive the
pods: space that has just become free there may be needed again as soon.
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
    last_change: str = ""
    """What has changed last, if not the pods of the nodes: ``a node was launched last``."""
    error: timedelta | None = None
    """Typical error of the estimate; None: unknown."""


def estimate_savings_duration(
    targets: Sequence[Candidate],
    now: datetime,
    launch_time_by_pool: Mapping[str, datetime],
    receivers: Iterable[StateNode] = (),
    forecast_duration: SavingsDuration | None = None,
) -> SavingsDuration:
    """Return how long the savings of disrupting *targets* are expected to last: as long as their pods were quiet.

    *launch_time_by_pool*: launches that end the quiet period; *receivers*: existing nodes that receive the pods, where
    each change of the pods ends it. *forecast_duration* only shortens the duration: hourly means know no changes
    within an hour. After a quiet day of the targets, none of them matters.
    """
    quiet_since = find_quiet_since(targets)
    if quiet_since is None:
        return SavingsDuration(expected=MAX_SAVINGS_DURATION, basis="no pod change is known")
    own_duration = _build_duration(now, quiet_since, "no pod change")
    if now - quiet_since >= MAX_SAVINGS_DURATION:
        return own_duration
    other_duration = _compute_duration_since_other_changes(targets, now, launch_time_by_pool, receivers)
    durations = [own_duration, other_duration]
    if forecast_duration is not None:
        durations.append(forecast_duration)
    return min(durations, key=lambda duration: duration.expected)


def _compute_duration_since_other_changes(
    targets: Iterable[Candidate],
    now: datetime,
    launch_time_by_pool: Mapping[str, datetime],
    receivers: Iterable[StateNode],
) -> SavingsDuration:
    """Return the time since the last launch in the NodePools of *targets*, and the last pod change of *receivers*."""
    changes = [
        (launch_time_by_pool[name], "a node was launched last", "no launch in the NodePool")
        for target in targets
        if (name := target.pool.name) in launch_time_by_pool
    ]
    changes += [
        (
            receiver.claim.last_pod_event_at,
            f"pods of {receiver.name}, which receives pods, changed last",
            "no pod change",
        )
        for receiver in receivers
        if receiver.claim is not None and receiver.claim.last_pod_event_at is not None
    ]
    if not changes:
        return SavingsDuration(expected=MAX_SAVINGS_DURATION, basis="no launch and no pod change is known")
    since = max(changed_at for changed_at, _, _ in changes)
    _, last_change, basis = next(change for change in changes if change[0] == since)
    return msgspec.structs.replace(_build_duration(now, since, basis), last_change=last_change)


def _build_duration(now: datetime, since: datetime, text: str) -> SavingsDuration:
    elapsed = max(now - since, timedelta())
    return SavingsDuration(expected=min(elapsed, MAX_SAVINGS_DURATION), basis=f"{text} for {format_elapsed(elapsed)}")


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
