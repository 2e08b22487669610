"""What people hold back without a deployment, as they say it in an annotation.

    joiner.dev/disruption-paused: Drifted,Empty until 2026-11-22T09:00:00Z by anna since 2026-11-22T07:00:00Z
                                  because Black Friday; Unhealthy
    joiner.dev/launches-paused: "true"

On a NodePool it is about its nodes, on the Namespace kube-system about all there are and will be, or ``in`` those that
it names: both are read with the snapshot anyway, and everybody sees them with kubectl. ``true`` is everything. The
setting of a deployment is read by the same grammar. What is over at its instant counts no more, by our clock; what
cannot be read holds back all that it might be about.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, TypeAlias

import msgspec

from shared.model.cluster import Cluster
from shared.model.labels import DISRUPTION_PAUSED, LAUNCHES_PAUSED
from shared.model.nodepools import NodePool
from shared.model.objects import Pairs, Problem
from shared.model.units import instant_text, parse_instant

HOME: Final = "kube-system"
"""The Namespace that speaks for the whole cluster: every cluster has it, and nobody's manifests own it."""
DISRUPTIONS: Final = ("Drifted", "Empty", "Underutilized", "Unhealthy")
VOLUNTARY: Final = ("Drifted", "Empty", "Underutilized")
"""What is not repair."""
LAUNCHES: Final = ("Launches",)
WORDS: Final = {DISRUPTION_PAUSED: DISRUPTIONS, LAUNCHES_PAUSED: LAUNCHES}
"""What each annotation may hold back."""
SAYS_SO: Final = "says so"
"""In the words of every pause that people made, and of none that Joiner makes by itself."""
_HOLD: Final = re.compile(
    r"(?P<what>[A-Za-z]+(?:\s*,\s*[A-Za-z]+)*)(?:\s+in\s+(?P<pools>[a-z0-9.-]+(?:\s*,\s*[a-z0-9.-]+)*))?"
    r"(?:\s+until\s+(?P<until>\S+))?(?:\s+by\s+(?P<by>\S+))?(?:\s+since\s+(?P<since>\S+))?"
    r"(?:\s+because\s+(?P<because>.*))?",
    re.DOTALL,
)
_FORM: Final = "REASON,… [in NODEPOOL,…] [until INSTANT] [by WHO] [since INSTANT] [because TEXT]"


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody holds back."""

    what: tuple[str, ...]
    """Sorted; some of `WORDS`."""
    pools: tuple[str, ...] = ()
    """Sorted; the NodePools that it names. None: all that the place where it is said speaks for."""
    until: datetime | None = None
    """It counts before this instant; None: until somebody takes it back."""
    by: str = ""
    since: datetime | None = None
    because: str = ""

    def counts(self, now: datetime) -> bool:
        """Whether it is not over."""
        return self.until is None or now < self.until

    def words(self) -> str:
        """Say who it was, since when and until when, and why.

        >>> Hold(what=("Empty",), by="anna", because="Black Friday").words()
        'by anna: Black Friday'
        """
        parts = (
            f"by {self.by}" if self.by else "",
            f"since {instant_text(self.since)}" if self.since else "",
            f"until {instant_text(self.until)}" if self.until else "",
        )
        said = " ".join(filter(None, parts))
        return f"{said}{': ' if said and self.because else ''}{self.because}"


Where: TypeAlias = str
"""The name of a NodePool; "" for all of the cluster."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A hold, and where it was said."""

    pool: Where = ""
    key: str
    """Of the annotation."""
    hold: Hold
    is_meant: bool = True
    """Somebody said it; what cannot be read, or seen, is held back without."""

    def why(self) -> str:
        """Say by whose wish, and how it is taken back."""
        words = self.hold.words()
        whose = f"NodePool {self.pool}" if self._is_its_own() else f"Namespace {HOME}"
        return f"{words + '; ' if words else ''}{self.key} of {whose} {SAYS_SO}: {self.resumed_by()} goes on"

    def resumed_by(self) -> str:
        """Answer the command that takes it back."""
        return f"`joiner resume{f' --nodepool {self.pool}' if self._is_its_own() else ''}`"

    def _is_its_own(self) -> bool:
        """Whether the NodePool says so itself."""
        return bool(self.pool and not self.hold.pools)


def holds_from(text: str, words: Collection[str]) -> tuple[Hold, ...]:
    """Read an annotation that may hold *words* back.

    >>> [one.what for one in holds_from("Drifted by anna; true until 2026-11-22T09:00:00Z", ("Drifted", "Empty"))]
    [('Drifted',), ('Drifted', 'Empty')]
    >>> holds_from("false", ("Empty",))
    ()

    Raises:
        ValueError: it is not like this, a word is none of *words*, or an instant is none.
    """
    parts = [part.strip() for part in text.split(";")]
    return tuple(_hold(part, words) for part in parts if part not in ("", "false"))


def holds_text(holds: Iterable[Hold]) -> str:
    """Write *holds* so that `holds_from` reads the same again; "" for none."""
    return "; ".join(_text(one) for one in holds)


def plain(text: str) -> str:
    """Answer *text* in one line, without what parts one hold from the next."""
    return " ".join(text.replace(";", ",").split())


def held_in(cluster: Cluster) -> tuple[tuple[Held, ...], tuple[Problem, ...]]:
    """Answer what is held back at the cluster's instant, its own holds first, and what of that could not be read.

    What cannot be read is held back altogether.
    """
    found: list[Held] = []
    problems: list[Problem] = []
    for pool, annotations in _said(cluster):
        for key, words in WORDS.items():
            text = dict(annotations).get(key, "")
            is_meant = True
            try:
                holds = _read(text, words)
                _check_pools(pool, holds)
            except ValueError as error:
                kind, name = ("NodePool", pool) if pool else ("Namespace", HOME)
                whose = "of it" if pool else "at all"
                effect = f"nothing {whose} is {'disrupted' if key == DISRUPTION_PAUSED else 'launched'}"
                message = f"metadata.annotations[{key}]: {error}; {effect}"
                problems.append(Problem(kind=kind, name=name, message=message))
                holds, is_meant = (Hold(what=tuple(words), because=f"it cannot be read: {error}"),), False
            found += (
                Held(pool=whose, key=key, hold=one, is_meant=is_meant)
                for one in holds
                if one.counts(cluster.taken_at)
                for whose in one.pools or (pool,)
            )
    found += _unseen(cluster)
    return tuple(found), tuple(problems)


def launches_held(pool: NodePool, cluster: Cluster) -> str:
    """Say why no node is to be made of *pool*; "" if some may."""
    held, _ = held_in(msgspec.structs.replace(cluster, node_pools=(pool,)))
    ours = (one for one in held if one.key == LAUNCHES_PAUSED and one.pool in ("", pool.name))
    return next((f"launches are paused: {one.why()}" for one in ours), "")


def _said(cluster: Cluster) -> Iterator[tuple[Where, Pairs]]:
    yield from (("", one.annotations) for one in cluster.namespaces if one.name == HOME)
    yield from ((one.name, one.meta.annotations) for one in sorted(cluster.node_pools, key=lambda one: one.name))


def _unseen(cluster: Cluster) -> Iterator[Held]:
    """Hold everything back where the Namespace that speaks for the cluster could not be read."""
    if any(one.kind == "Namespace" and one.name == HOME for one in cluster.problems):
        for key, words in WORDS.items():
            yield Held(key=key, hold=Hold(what=words, because="the Namespace could not be read"), is_meant=False)


@lru_cache(maxsize=1024)
def _read(text: str, words: tuple[str, ...]) -> tuple[Hold, ...]:
    return holds_from(text, words)


def _hold(text: str, words: Collection[str]) -> Hold:
    match = _HOLD.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not like {_FORM}")
    said = _parts(match["what"])
    what = tuple(words) if said == ("true",) else tuple(sorted({reason(one, words, "true, or ") for one in said}))
    until, since = (parse_instant(match[name]) if match[name] else None for name in ("until", "since"))
    return Hold(
        what=tuple(sorted(what)),
        pools=_parts(match["pools"] or ""),
        until=until,
        by=match["by"] or "",
        since=since,
        because=plain(match["because"] or ""),
    )


def _parts(text: str) -> tuple[str, ...]:
    return tuple(sorted({part.strip() for part in text.split(",") if part.strip()}))


def reason(text: str, words: Collection[str], instead: str = "") -> str:
    """Answer which of *words* is written, whatever its letters' case; *instead* of them something else may be.

    >>> reason("drifted", DISRUPTIONS)
    'Drifted'

    Raises:
        ValueError: it is none of them; the message says which may be meant.
    """
    known = {one.lower(): one for one in words}
    if text.lower() in known:
        return known[text.lower()]
    close = get_close_matches(text.lower(), known, n=1)
    meant = f"did you mean {known[close[0]]}? " if close else ""
    raise ValueError(f"{text!r} is no reason: {meant}write {instead}some of {', '.join(words)}")


def _check_pools(pool: Where, holds: Iterable[Hold]) -> None:
    """See that a NodePool speaks of itself.

    Raises:
        ValueError: it names others.
    """
    if pool and (named := next((one.pools for one in holds if one.pools), ())):
        raise ValueError(f"'in {','.join(named)}' is said on a NodePool, which speaks of itself: leave it out")


def _text(one: Hold) -> str:
    parts = (
        ",".join(one.what) if one.what != LAUNCHES else "true",
        f"in {','.join(one.pools)}" if one.pools else "",
        f"until {instant_text(one.until)}" if one.until else "",
        f"by {one.by}" if one.by else "",
        f"since {instant_text(one.since)}" if one.since else "",
        f"because {one.because}" if one.because else "",
    )
    return " ".join(filter(None, parts))
