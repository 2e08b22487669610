"""All that there is to look at, and the names in it."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from difflib import get_close_matches
from typing import Final

import msgspec

from cli.explain_journals import Cycle, Journal
from cli.explain_kinds import KINDS, Kind
from cli.explain_machines import Machine, machines
from cli.explain_told import NAMED
from cli.text import count, some
from shared.model.action import CreateNodeClaim, DeletePod, EvictPod
from shared.model.cluster import Cluster
from shared.report.journal import Note

_LIKELY: Final = 0.6
_ADDRESS: Final = re.compile(r"\d+\.\d+\.\d+\.\d+")
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
    """Answer the whole name of *wanted*: it may be short, a machine's provider id or address, or a workload's name.

    Raises:
        Unknown: there is none, or more than one.
    """
    known = _known(look, kind)
    called = _called(kind, wanted)
    if called in known:
        return called
    same = sorted(one for one in known if called in (one.partition("/")[2], one.partition(".")[0]))
    if len(same) == 1:
        return same[0]
    if same:
        raise Unknown(f"{kind} {wanted}: there are several: write one of {some(same, NAMED)}")
    own = _of_workload(known, called) if kind == "pod" else []
    if len(own) == 1:
        return own[0]
    if own:
        raise Unknown(f"pod {wanted}: there is none of that name, but {_each(look, own)}: write one of them")
    elsewhere = next((one for one in KINDS if one != kind and _called(one, wanted) in _known(look, one)), None)
    if elsewhere is not None:
        raise Unknown(
            f"{kind} {wanted}: not known; there is a {elsewhere} of that name: `joiner explain {elsewhere} {wanted}`"
        )
    raise Unknown(f"{kind} {wanted}: nothing is known of it{_hint(known, called, kind)}")


def _called(kind: Kind, wanted: str) -> str:
    """Answer *wanted* without what kubectl and AWS put before a name; an address as EC2 makes a name of it.

    >>> _called("node", "aws:///us-east-1a/i-0a31"), _called("node", "10.0.64.5"), _called("pod", "pod/shop/cart-0")
    ('i-0a31', 'ip-10-0-64-5', 'shop/cart-0')
    """
    named = wanted.partition("/")
    if named[0].lower() in (kind, f"{kind}s", f"{kind}s.karpenter.sh", "po" if kind == "pod" else "no"):
        wanted = named[2]
    if kind in _MACHINES:
        wanted = wanted.rpartition("/")[2]
        if _ADDRESS.fullmatch(wanted):
            return f"ip-{wanted.replace('.', '-')}"
    return wanted


def _of_workload(known: frozenset[str], wanted: str) -> list[str]:
    """Answer the pods whose names begin as those that the workload *wanted* makes, as ``web`` or ``shop/web``."""
    namespace, _, name = wanted.rpartition("/")
    made = re.compile(rf"{re.escape(name)}(-[a-z0-9]{{1,10}})?-([a-z0-9]{{5}}|\d+)")
    return sorted(
        one
        for one in known
        if namespace in ("", one.partition("/")[0]) and made.fullmatch(one.partition("/")[2]) is not None
    )


def _each(look: Look, pods: list[str]) -> str:
    """Say of *pods* what was decided last, those first that wait."""
    last = {note.name: note.verdict for _, note in look.notes("Pod")}
    waiting = [one for one in pods if one in last and "/" not in last[one]]
    ordered = [*waiting, *(one for one in pods if one not in waiting)]
    said = [f"{one} ({last[one]})" if one in last else one for one in ordered]
    return f"{count(len(pods), 'pod')} that may be its own, {len(waiting)} without a place: {some(said, NAMED)}"


def _hint(known: frozenset[str], wanted: str, kind: Kind) -> str:
    short = {one: one for one in known} | {one.partition("/")[2]: one for one in known if "/" in one}
    close = [short[one] for one in get_close_matches(wanted, sorted(short), n=3, cutoff=_LIKELY)]
    close += [one for one in sorted(known) if wanted in one]
    if close:
        return f"; do you mean {' or '.join(dict.fromkeys(close[:3]))}?"
    if known:
        return f"; known are {some(sorted(known), NAMED)}"
    return f", nor of any other {kind}"
