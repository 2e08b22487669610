"""What a report says: the fleet, its cost over time, what was decided, what is blocked and why. From the journal."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from cli.explain_look import Look
from cli.report_blocked import Group, blocked_nodes, blocked_pods, problems
from cli.report_decisions import Decided, decisions
from cli.report_fleet import (
    TICK,
    Change,
    Node,
    Pool,
    Sample,
    changes,
    completed,
    fleet,
    length_of,
    nodes_of,
    pools_of,
    those_there,
    types_of,
    usd_of,
)
from shared.model.cluster import Cluster
from shared.model.objects import Problem

_WENT_WELL: Final = frozenset(("INITIALIZED", "DRAINING", "DONE"))


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Pods without a node from an instant on."""

    at: datetime
    pods: float
    without_place: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything."""

    source: str
    began: datetime
    ended: datetime
    is_live: bool
    """Whether a cluster was looked at; if not, the last snapshot of the journal was, where there is one."""
    unreadable: tuple[str, ...]
    cycles: dict[str, int]
    """How many of each function."""
    failures: tuple["Failure", ...]
    fleet: tuple[Sample, ...]
    waiting: tuple[Waiting, ...]
    changes: tuple[Change, ...]
    change_seconds: int
    """How long one of them is."""
    usd: float
    """Of instances, in the time that is covered."""
    saved_usd_per_hour: float
    """By all commands that came to their end."""
    pools: tuple[Pool, ...]
    """Dearest first."""
    types: tuple["Type", ...]
    """At the end, dearest first."""
    nodes: tuple[Node, ...]
    """At the end, by pool and name."""
    decisions: tuple[Decided, ...]
    """Newest first."""
    blocked_nodes: tuple[Group, ...]
    blocked_pods: tuple[Group, ...]
    problems: tuple[Problem, ...]
    """That stood at the end."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """An error of cycles."""

    error: str
    times: int
    last: datetime


class Type(msgspec.Struct, frozen=True, kw_only=True):
    """Machines of one type and capacity type."""

    name: str
    nodes: int
    usd_per_hour: float


def report_of(look: Look, first: Cluster | None, *, is_live: bool) -> Report:
    """Put everything together; *first* is the earliest snapshot of the journal, None if none was kept."""
    ended = look.journal.now
    began = look.cycles[0].entry.at if look.cycles else ended
    machines = completed(look, first)
    there = those_there(machines, look, is_live=is_live)
    length = length_of(ended - began)
    return Report(
        source=look.journal.source,
        began=began,
        ended=ended,
        is_live=is_live,
        unreadable=look.journal.told,
        cycles=dict(sorted(Counter(one.entry.function for one in look.cycles).items())),
        failures=tuple(_failures(look)),
        fleet=tuple(fleet(look, machines)),
        waiting=tuple(_waiting(look)),
        changes=tuple(changes(machines, began, ended, length)),
        change_seconds=length,
        usd=usd_of(machines, began, ended),
        saved_usd_per_hour=sum(_savings(look).values()),
        pools=pools_of(machines, there, began, ended),
        types=tuple(Type(name=name, nodes=n, usd_per_hour=price) for name, n, price in types_of(there)),
        nodes=nodes_of(look, there),
        decisions=decisions(look.cycles),
        blocked_nodes=blocked_nodes(look, there),
        blocked_pods=blocked_pods(look, is_live=is_live),
        problems=problems(look),
    )


def _failures(look: Look) -> Iterator[Failure]:
    said: dict[str, list[datetime]] = defaultdict(list)
    for one in look.cycles:
        if one.entry.error:
            said[f"{one.entry.function}: {one.entry.error}"].append(one.entry.at)
    for what, some in sorted(said.items(), key=lambda item: (-len(item[1]), item[0])):
        yield Failure(error=what, times=len(some), last=max(some))


def _waiting(look: Look) -> Iterator[Waiting]:
    """Iterate over the pods that provision planned for; where a cycle left nothing behind none waited."""
    last: datetime | None = None
    for one in look.cycles:
        entry, counts = one.entry, one.entry.counts
        if entry.function != "provision" or "PendingPods" not in counts:
            continue
        if last is not None and entry.at - last > 2 * TICK:
            yield Waiting(at=last + TICK, pods=0.0, without_place=0.0)
        left = counts.get("UnschedulablePods", 0.0)
        yield Waiting(at=entry.at, pods=counts["PendingPods"], without_place=left)
        last = entry.at
    if last is not None and look.journal.now - last > 2 * TICK:
        yield Waiting(at=last + TICK, pods=0.0, without_place=0.0)


def _savings(look: Look) -> dict[str, float]:
    """Answer what each command saves that came to its end, by id."""
    return {note.name: note.usd_per_hour for _, note in look.notes("Command") if note.verdict in _WENT_WELL}
