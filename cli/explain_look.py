"""All that there is to look at, and the names in it."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from difflib import get_close_matches
from typing import Final

import msgspec

from cli.explain_journals import Cycle, Journal
from cli.explain_kinds import KINDS, Kind
from cli.explain_machines import Machine, machines
from cli.explain_told import NAMED
from cli.text import some
from shared.model.action import CreateNodeClaim, DeletePod, EvictPod
from shared.model.cluster import Cluster
from shared.report.journal import Note

_LIKELY: Final = 0.6
_MACHINES: Final = ("node", "nodeclaim")


class Unknown(Exception):
    """Nothing is known of it; the message says so, with a remedy."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """All that there is to look at."""

    journal: Journal
    live: Cluster | None = None
    machines: tuple[Machine, ...]

    @property
    def cycles(self) -> tuple[Cycle, ...]:
        """Those of the journal."""
        return self.journal.cycles

    def notes(self, kind: str, name: str = "") -> Iterator[tuple[datetime, Note]]:
        """Iterate over the notes of *kind* (of all, unless *name* is given), oldest first, and when they were made."""
        for one in self.cycles:
            for note in one.entry.notes:
                if note.kind == kind and name in ("", note.name):
                    yield one.entry.at, note


def looked(journal: Journal, live: Cluster | None) -> Look:
    """Put everything together."""
    return Look(journal=journal, live=live, machines=machines(journal.cycles, live))


def _known(look: Look, kind: Kind) -> frozenset[str]:
    """Answer of whom of *kind* something is known."""
    if kind in _MACHINES:
        names = {name for one in look.machines for _, name in one.names()}
        names |= {note.name for what in ("Node", "NodeClaim") for _, note in look.notes(what)}
        return frozenset(names | ({one.name for one in look.live.nodes} if look.live is not None else set()))
    names = {note.name for _, note in look.notes(KINDS[kind]) if note.name != "*"}
    names |= {one.name for cycle in look.cycles for one in cycle.entry.problems if one.kind == KINDS[kind]}
    if kind == "pod":
        names |= set(_pods_of_actions(look.cycles))
        names |= {one.name for one in look.live.pods} if look.live is not None else set()
    if kind == "nodepool":
        names |= {one.pool for one in look.machines if one.pool}
        names |= {one.name for one in look.live.node_pools} if look.live is not None else set()
    return frozenset(names)


def _pods_of_actions(cycles: Iterable[Cycle]) -> Iterator[str]:
    for cycle in cycles:
        for done in cycle.entry.done:
            match done.action:
                case CreateNodeClaim():
                    yield from done.action.pods
                case EvictPod() | DeletePod():
                    yield f"{done.action.namespace}/{done.action.name}"
                case _:
                    pass


def found(look: Look, kind: Kind, wanted: str) -> str:
    """Answer the whole name of *wanted*.

    Raises:
        Unknown: there is none, or more than one.
    """
    known = _known(look, kind)
    if wanted in known:
        return wanted
    same = sorted(one for one in known if wanted in (one.partition("/")[2], one.partition(".")[0]))
    if len(same) == 1:
        return same[0]
    if same:
        raise Unknown(f"{kind} {wanted}: there are several: write one of {some(same, NAMED)}")
    elsewhere = next((one for one in KINDS if one != kind and wanted in _known(look, one)), None)
    if elsewhere is not None:
        raise Unknown(f"{kind} {wanted}: not known; there is a {elsewhere} of that name")
    raise Unknown(f"{kind} {wanted}: nothing is known of it{_hint(known, wanted, kind)}")


def _hint(known: frozenset[str], wanted: str, kind: Kind) -> str:
    short = {one: one for one in known} | {one.partition("/")[2]: one for one in known if "/" in one}
    close = [short[one] for one in get_close_matches(wanted, sorted(short), n=3, cutoff=_LIKELY)]
    close += [one for one in sorted(known) if wanted in one]
    if close:
        return f"; do you mean {' or '.join(dict.fromkeys(close[:3]))}?"
    if known:
        return f"; known are {some(sorted(known), NAMED)}"
    return f", nor of any other {kind}"
