"""What holds disruption back: people, and what went wrong of late.

People pause with a setting, or without a deployment with an annotation: both are holds (`shared.model.holds`). By
itself it pauses a NodePool whose replacements come to nothing, everything while pods wait longer than before nodes were
taken away, and drift where more nodes would drift at once than the deployment calls usual. These end with their cause,
or once it is past; an annotation with an instant says that what a NodePool was paused for is known, and meant.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.disruption.terms import EVERYTHING
from shared.lifecycle.events import about
from shared.model.action import Action
from shared.model.cluster import Cluster
from shared.model.commands import Pause, Pauses, Phase, Standing
from shared.model.holds import DISRUPTIONS, SAYS_SO, Held, Hold, held_in, holds_from, launches_held
from shared.model.labels import DISRUPTION_PAUSED, DISRUPTION_RESUMED
from shared.model.nodepools import NodePool
from shared.model.objects import Problem, is_true
from shared.model.pods import Pod
from shared.model.state import StateNode
from shared.model.units import parse_instant

PAUSED: Final = "DisruptionPaused"
"""Why a NodePool has an event."""
_PERCENT: Final = re.compile(r"100|[0-9]{1,2}")
WENT_WELL: Final[frozenset[Phase]] = frozenset(("INITIALIZED", "DRAINING", "DONE"))
"""Its replacements came, and its nodes went or are about to."""
FAILURES: Final = 3
"""Commands of a NodePool whose replacements came to nothing, one after the other, until it is paused."""
REMEMBERED: Final = timedelta(hours=1)
LONG: Final = timedelta(minutes=3)
"""Longer than a node takes to be there: a pod that has waited so long may have lost its place to us."""
AFTERMATH: Final = timedelta(minutes=15)
"""So long after nodes were taken away, pods that wait may do so because of that."""


class Switches(msgspec.Struct, frozen=True, kw_only=True):
    """What the deployment says."""

    paused: tuple[Hold, ...] = ()
    drift_percent: int = 0
    """Of a NodePool's nodes: more than so many are not taken for drifted at once; 0: any number."""


def switches(paused: str, drift_percent: str) -> Switches:
    """Read the settings.

    >>> [one.what for one in switches("Drifted, Empty", "30").paused]
    [('Drifted', 'Empty')]

    Raises:
        ValueError: it is no hold of reasons that there are, or no percentage.
    """
    if not _PERCENT.fullmatch(drift_percent):
        raise ValueError(f"{drift_percent!r} is no percentage: write a number from 0 to 100")
    return Switches(paused=holds_from(paused, DISRUPTIONS), drift_percent=int(drift_percent))


def pauses(
    cluster: Cluster, states: Iterable[StateNode], standings: Iterable[Standing], wanted: Switches
) -> tuple[Pauses, tuple[Problem, ...]]:
    """Answer what is paused, and which annotations cannot be read: they pause their NodePool altogether."""
    held, unread = held_in(cluster)
    problems = list(unread)
    known = sorted(standings, key=lambda one: (one.phase_since, one.command.command_id))
    found = [pause for one in wanted.paused if one.counts(cluster.taken_at) for pause in _by_setting(one)]
    found += [pause for one in held if one.key == DISRUPTION_PAUSED for pause in _by_people(one)]
    found += _crowded(cluster, known)
    drifting = _drifting(states)
    for pool in sorted(cluster.node_pools, key=lambda one: one.name):
        found += _by_failures(pool, known, problems, cluster.taken_at)
        found += _by_drift(pool, drifting.get(pool.name, (0, 0)), wanted.drift_percent, cluster.taken_at)
    items = tuple(sorted(found, key=lambda one: (one.pool, one.reason, one.why)))
    return Pauses(items=items), tuple(problems)


def as_reasons(paused: Pauses) -> frozenset[str]:
    """Answer *paused* as a sweep is told: reasons, ``pool/reason`` for one NodePool's, or `EVERYTHING`."""
    found: set[str] = set()
    for one in paused.items:
        if not one.pool:
            found.add(one.reason or EVERYTHING)
        else:
            found.update(f"{one.pool}/{reason}" for reason in ([one.reason] if one.reason else DISRUPTIONS))
    return frozenset(found)


def describe_pauses(paused: Pauses, cluster: Cluster) -> tuple[Action, ...]:
    """Tell every NodePool that is paused, or whose launches are."""
    return tuple(
        about("NodePool", pool.meta, reason, message, cluster.taken_at, type_="Warning")
        for pool in sorted(cluster.node_pools, key=lambda one: one.name)
        for reason, message in _told(pool, paused, cluster)
    )


def words(pause: Pause) -> str:
    """Say what is paused, and why."""
    return f"{pause.reason or 'All'} disruption is paused: {pause.why}"


def is_meant(told: str) -> bool:
    """Whether *told*, which `words` made, is of a pause that people want."""
    return f" {SAYS_SO}: " in told


def _told(pool: NodePool, paused: Pauses, cluster: Cluster) -> Iterator[tuple[str, str]]:
    yield from ((PAUSED, words(one)) for one in paused.items if one.pool in ("", pool.name))
    if why := launches_held(pool, cluster):
        yield "LaunchesPaused", why


def long_waiting(cluster: Cluster) -> int:
    """Count the pods that have waited long for a node."""
    return sum(_waits_long(pod, cluster.taken_at) for pod in cluster.pods)


def _waits_long(pod: Pod, now: datetime) -> bool:
    created = pod.meta.created_at
    return pod.is_provisionable() and created is not None and now - created > LONG


def _by_setting(hold: Hold) -> Iterator[Pause]:
    said = hold.words()
    why = f"{said + '; ' if said else ''}the setting joiner:disruption-paused {SAYS_SO}: change it and deploy"
    for pool in hold.pools or ("",):
        yield from (Pause(pool=pool, reason=reason, why=why, holds_all=True, is_meant=True) for reason in hold.what)


def _by_people(held: Held) -> Iterator[Pause]:
    for reason in [""] if len(held.hold.what) == len(DISRUPTIONS) else held.hold.what:
        yield Pause(pool=held.pool, reason=reason, why=held.why(), holds_all=True, is_meant=held.is_meant)


def _by_failures(pool: NodePool, standings: list[Standing], problems: list[Problem], now: datetime) -> Iterator[Pause]:
    """Pause what needs replacements once the last few of the pool have come to nothing."""
    after = max(_resumed_at(pool, problems) or now - REMEMBERED, now - REMEMBERED)
    ends: list[tuple[datetime, bool, str]] = []
    for one in standings:
        if one.command.replacements and any(target.pool == pool.name for target in one.command.targets):
            ends += [(instant, False, one.why) for instant in one.failures]
            ends += [(one.phase_since, True, "")] if one.phase in WENT_WELL else []
    last = sorted(end for end in ends if end[0] > after)[-FAILURES:]
    if len(last) < FAILURES or any(went_well for _, went_well, _ in last):
        return
    why = (
        f"the last {FAILURES} replacements came to nothing ({last[-1][2]}): see the events of the NodeClaims; it "
        f"goes on an hour later, or at once with: kubectl annotate nodepool {pool.name} --overwrite "
        f"{DISRUPTION_RESUMED}=$(date -u +%FT%TZ)"
    )
    yield from (Pause(pool=pool.name, reason=reason, why=why) for reason in ("Drifted", "Underutilized"))


def _resumed_at(pool: NodePool, problems: list[Problem]) -> datetime | None:
    text = pool.meta.annotation(DISRUPTION_RESUMED)
    try:
        return parse_instant(text) if text else None
    except ValueError as error:
        message = f"metadata.annotations[{DISRUPTION_RESUMED}]: {error}; it resumes nothing"
        problems.append(Problem(kind="NodePool", name=pool.name, message=message))
        return None


def _crowded(cluster: Cluster, standings: list[Standing]) -> Iterator[Pause]:
    """Pause everything while more pods wait long than before nodes were taken away."""
    now = cluster.taken_at
    recent = [one for one in standings if one.phase in WENT_WELL and now - one.phase_since <= AFTERMATH]
    if not recent:
        return
    count, before = long_waiting(cluster), max(one.waiting for one in recent)
    if count > before:
        why = (
            f"{count} pods wait for a node for more than {LONG.seconds // 60} minutes, {before} did before nodes were "
            f"taken away: it goes on once they have one"
        )
        yield Pause(why=why, holds_all=True, spares_repair=True)


def _drifting(states: Iterable[StateNode]) -> dict[str, tuple[int, int]]:
    """Answer by NodePool how many nodes there are, and how many of them have drifted."""
    found: dict[str, tuple[int, int]] = {}
    for state in states:
        if state.claim is not None and state.is_initialized() and not state.is_marked():
            total, drifted = found.get(state.pool, (0, 0))
            found[state.pool] = total + 1, drifted + is_true(state.claim.conditions, "Drifted")
    return found


def _by_drift(pool: NodePool, counted: tuple[int, int], percent: int, now: datetime) -> Iterator[Pause]:
    total, drifted = counted
    if not percent or drifted * 100 <= total * percent or _was_resumed(pool, now):
        return
    why = (
        f"{drifted} of {total} nodes have drifted, more than joiner:drift-pause-percent ({percent}): if that is meant, "
        f"kubectl annotate nodepool {pool.name} --overwrite {DISRUPTION_RESUMED}=$(date -u +%FT%TZ)"
    )
    yield Pause(pool=pool.name, reason="Drifted", why=why)


def _was_resumed(pool: NodePool, now: datetime) -> bool:
    """Whether somebody called the drift meant, no longer ago than a day."""
    after = _resumed_at(pool, [])
    return after is not None and now - after <= timedelta(days=1)
