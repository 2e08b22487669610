"""What people have paused, for people and for programs."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from cli.text import Palette, age, cut
from shared.model.cluster import Cluster
from shared.model.holds import LAUNCHES, Held, held_in
from shared.model.units import instant_text


def paused_documents(held: Iterable[Held]) -> list[dict[str, Any]]:
    """Answer what a program reads: nodePool is null for all of the cluster."""
    return [_document(one) for one in held]


def paused_lines(held: Iterable[Held], now: datetime, palette: Palette, width: int | None) -> Iterator[str]:
    """Iterate over what a person reads at *now*, one line for each."""
    for one in held:
        yield palette.paint("yellow", cut(f"paused: {paused_text(one, now)}", width))


def paused_text(one: Held, now: datetime) -> str:
    """Say at *now* of which NodePool what is paused, until when, by whom and why."""
    whose = f"NodePool {one.pool}" if one.pool else "all NodePools"
    return f"{whose}: {_what(one)}{_how(one, now)}"


def paused_words(cluster: Cluster, pool: str) -> Iterator[str]:
    """Iterate over sentences on what is paused of NodePool *pool*; none if it is "", which is nobody's."""
    held, _ = held_in(cluster)
    for one in held:
        if pool and one.pool in ("", pool):
            yield f"people have paused {_what(one)}{_how(one, cluster.taken_at)}"


def _document(one: Held) -> dict[str, Any]:
    hold = one.hold
    return {
        "nodePool": one.pool or None,
        "what": list(hold.what),
        "by": hold.by or None,
        "since": _instant(hold.since),
        "until": _instant(hold.until),
        "because": hold.because or None,
    }


def _instant(one: datetime | None) -> str | None:
    return None if one is None else instant_text(one)


def _what(one: Held) -> str:
    return "launches" if one.hold.what == LAUNCHES else f"{' and '.join(_listed(one.hold.what))} disruption"


def _listed(what: Iterable[str]) -> list[str]:
    *most, last = what
    return [", ".join(most), last] if most else [last]


def _how(one: Held, now: datetime) -> str:
    """Say until when, by whom and why."""
    hold = one.hold
    until = f" for {age(hold.until - now)} more (until {instant_text(hold.until)})" if hold.until else ""
    by = f", by {hold.by}" if hold.by else ""
    since = f" {age(now - hold.since)} ago" if hold.since else ""
    return f"{until}{by}{since}{f': {hold.because}' if hold.because else ''}"
