"""The current pauses, rendered for people and as documents."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from cli.terminal.text import Palette, wrap_text
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_elapsed
from shared.model.core.units import format_instant
from shared.model.karpenter.pause import LAUNCH_WORDS
from shared.state.pauses import ActivePause, list_active_pauses


def build_pause_documents(pauses: Iterable[ActivePause]) -> list[dict[str, Any]]:
    """Return the documents that programs read; nodePool is null for the whole cluster."""
    return [_build_pause_document(pause) for pause in pauses]


def render_pauses(pauses: Iterable[ActivePause], now: datetime, palette: Palette, width: int | None) -> Iterator[str]:
    """Yield the lines that people read at *now*."""
    for pause in pauses:
        lines = wrap_text(f"paused: {format_pause(pause, now)}", width, "")
        yield from (palette.colorize("yellow", line) for line in lines)


def format_pause(pause: ActivePause, now: datetime) -> str:
    """Return the pause as text: NodePool, what is paused, its end, its author and its reason."""
    scope = f"NodePool {pause.pool}" if pause.pool else "all NodePools"
    return f"{scope}: {_format_reasons(pause)}{_format_details(pause, now)}"


def describe_pool_pauses(cluster: ClusterSnapshot, pool: str) -> Iterator[str]:
    """Yield sentences about the pauses of NodePool *pool*; none if *pool* is ""."""
    pauses, _ = list_active_pauses(cluster)
    for pause in pauses:
        if pool and pause.pool in ("", pool):
            author = "a user" if pause.failures is None else "Joiner"
            yield f"{author} paused {_format_reasons(pause)}{_format_details(pause, cluster.taken_at)}"


def _build_pause_document(pause: ActivePause) -> dict[str, Any]:
    hold = pause.pause
    return {
        "nodePool": pause.pool or None,
        "reasons": list(hold.reasons),
        "author": hold.author or None,
        "since": _format_instant(hold.since),
        "until": _format_instant(hold.until),
        "because": hold.because or None,
    }


def _format_instant(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)


def _format_reasons(pause: ActivePause) -> str:
    return (
        "launches"
        if pause.pause.reasons == LAUNCH_WORDS
        else f"{' and '.join(_join_names(pause.pause.reasons))} disruption"
    )


def _join_names(names: Iterable[str]) -> list[str]:
    *first_names, last_name = names
    return [", ".join(first_names), last_name] if first_names else [last_name]


def _format_details(pause: ActivePause, now: datetime) -> str:
    """Return the end, author, begin and reason of the pause as text."""
    hold = pause.pause
    until = f" for {format_elapsed(hold.until - now)} more (until {format_instant(hold.until)})" if hold.until else ""
    author_text = f", by {hold.author}" if hold.author and pause.failures is None else ""
    since = f" {format_elapsed(now - hold.since)} ago" if hold.since else ""
    return f"{until}{author_text}{since}{f': {hold.because}' if hold.because else ''}"
