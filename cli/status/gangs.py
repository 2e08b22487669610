"""The gangs that wait for nodes, rendered for people and as documents."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from cli.terminal.text import Palette, wrap_text
from shared.decide.gangs.waiting_gangs import WaitingGang
from shared.model.core.units import format_instant


def build_gang_document(gang: WaitingGang) -> dict[str, Any]:
    """Return the document that programs read."""
    return {
        "kind": gang.kind,
        "name": gang.name,
        "existingPods": gang.existing_count,
        "neededPods": gang.needed_count,
        "since": None if gang.since is None else format_instant(gang.since),
        "message": gang.reason,
    }


def render_gangs(gangs: Iterable[WaitingGang], now: datetime, palette: Palette, width: int | None) -> Iterator[str]:
    """Yield the lines that people read."""
    lines = [line for gang in gangs for line in wrap_text(gang.describe(now), width, "  ")]
    if lines:
        yield from (palette.colorize("bold", "WAITING GANGS"), *lines)
