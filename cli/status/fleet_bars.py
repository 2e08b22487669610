"""Bars of the CPU and memory that the pods of all nodes request, for terminals."""

from collections.abc import Mapping, Sequence
from typing import Final

from cli.terminal.bars import draw_percent
from cli.terminal.text import truncate_text
from shared.model.core.resources import format_amount

_BAR_COLUMNS: Final = 20


def draw_fleet_bars(amounts: Mapping[str, Sequence[tuple[int, int]]], width: int | None) -> list[str]:
    """Return a line for each resource; *amounts* are the requested and allocatable amounts of the nodes."""
    lines: list[str] = []
    for name, pairs in amounts.items():
        requested, allocatable = (sum(pair[position] for pair in pairs) for position in (0, 1))
        if allocatable:
            text = f"{format_amount(name, requested)} of {format_amount(name, allocatable)} requested"
            lines.append(
                truncate_text(f"{name:<7} {draw_percent(requested / allocatable, _BAR_COLUMNS)}  {text}", width)
            )
    return lines
