"""What does not go on, and why: pods without a place, nodes that stay, objects that were left out; alike together."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

import msgspec

from cli.explain_look import Look
from cli.explain_machines import Machine
from cli.left_out import by_pool
from cli.report_fleet import last_verdicts
from shared.model.objects import Problem

STILL: Final = timedelta(minutes=5)
"""A pod that waits is planned for every minute: of one that was not so long, its place is known elsewhere."""
LATELY: Final = timedelta(hours=1)


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """All of whom the same is said."""

    what: str
    why: tuple[str, ...]
    names: tuple[str, ...]
    """Sorted."""


def blocked_nodes(look: Look, there: Iterable[Machine]) -> tuple[Group, ...]:
    """Answer why nodes stay that are *there*, most nodes first."""
    names = {one.node for one in there if one.deleted_at is None}
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, note in last_verdicts(look).items():
        if name in names and note.verdict != "disrupted":
            found[note.verdict, note.why].append(name)
    return _groups((what, (why,) if why else (), some) for (what, why), some in found.items())


def blocked_pods(look: Look, *, is_live: bool) -> tuple[Group, ...]:
    """Answer why pods have no place that wait still, most pods first."""
    waiting = {pod.name for pod in look.live.pods if pod.is_provisionable()} if look.live is not None else set[str]()
    last = {note.name: (at, note) for at, note in look.notes("Pod")}
    found: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for name, (at, note) in last.items():
        if "/" not in note.verdict and (name in waiting if is_live else look.journal.now - at <= STILL):
            found[note.verdict, tuple(_whys(note.why, name.partition("/")[2]))].append(name)
    return _groups((what, why, some) for (what, why), some in found.items())


def _whys(message: str, own: str) -> Iterator[str]:
    """Say what each NodePool says; the pod's *own* name, as in those of its volume claims, is no difference."""
    said = re.sub(rf"(?<![a-z0-9]){re.escape(own)}(?![a-z0-9])", "<pod>", message) if own else message
    for pools, words in by_pool(said):
        yield f"NodePool {', '.join(pools)}: {words}" if pools else words


def _groups(some: Iterable[tuple[str, tuple[str, ...], list[str]]]) -> tuple[Group, ...]:
    found = (Group(what=what, why=why, names=tuple(sorted(names))) for what, why, names in some)
    return tuple(sorted(found, key=lambda one: (-len(one.names), one.what, one.why)))


def problems(look: Look) -> tuple[Problem, ...]:
    """Answer what the last cycle of each function found wrong, unless that is long ago."""
    last = {one.entry.function: one.entry for one in look.cycles}
    recent = (entry for entry in last.values() if look.journal.now - entry.at <= LATELY)
    found = {(one.kind, one.name, one.message): one for entry in recent for one in entry.problems}
    return tuple(found[key] for key in sorted(found))
