"""The use of commitments, as a part of the page of `joiner cost` and of its document."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from cli.planning.table import TableOptions
from cli.terminal.table import TableLayout, render_table
from cli.terminal.text import Palette, wrap_text
from shared.model.core.formatting import format_count, format_usd, join_names
from shared.report.costs.commitment_usage import CommitmentUsage
from shared.report.costs.cost_ledger import CommitmentHour

LIMITS_OF_KNOWLEDGE: Final = (
    "Only nodes of this cluster are known: other clusters and instances of the account may use what is unused here.",
    "AWS may apply a commitment to them first, and Savings Plans also to Fargate and Lambda.",
    "Prices are on-demand prices of Linux. Nodes in capacity reservations are not counted.",
)
"""What the figures cannot take into account."""
_HOURS: Final = TableLayout(
    headings=("HOUR", "COVERED", "UNCOVERED", "COMMITTED", "UNUSED"), alignment="~>>>>", droppable=("COMMITTED",)
)
_COMMITMENTS: Final = TableLayout(
    headings=("COMMITMENT", "TYPE", "COMMITTED", "USED", "UNUSED"), alignment="~<>>>", droppable=("TYPE",)
)


def build_usage_document(usage: CommitmentUsage) -> dict[str, Any]:
    """Return the JSON and YAML output."""
    return {
        "day": usage.day,
        **_build_sums(usage),
        "hours": [_round_amounts(msgspec.to_builtins(hour)) for hour in usage.hours],
        "parts": [
            _round_amounts({**msgspec.to_builtins(part), "unusedUsd": part.unused_usd}) for part in usage.commitments
        ],
        "otherRegions": list(usage.other_regions),
        "notes": list(LIMITS_OF_KNOWLEDGE),
    }


def _round_amounts(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(value, 6) if isinstance(value, float) else value for name, value in fields.items()}


def _build_sums(usage: CommitmentUsage) -> dict[str, float]:
    amounts: list[dict[str, float]] = [msgspec.to_builtins(hour) for hour in usage.hours]
    names = [field.encode_name for field in msgspec.structs.fields(CommitmentHour) if field.type is float]
    return {name: round(sum(hour_amounts[name] for hour_amounts in amounts), 6) for name in names}


def render_usage(usage: CommitmentUsage, palette: Palette, display: TableOptions) -> Iterator[str]:
    """Yield the lines of the page."""
    if not usage.hours:
        yield f"Commitments: no complete hour of {usage.day} is billed yet"
        return
    sums = _build_sums(usage)
    percent = f" ({100 * sums['unusedUsd'] / sums['committedUsd']:.0f}%)" if sums["committedUsd"] else ""
    summary = (
        f"Commitments on {usage.day}, {format_count(len(usage.hours), 'complete hour')}: "
        f"{format_usd(sums['committedUsd'])} committed, {format_usd(sums['unusedUsd'])} unused{percent}; on-demand "
        f"usage: {format_usd(sums['coveredUsd'])} covered, {format_usd(sums['uncoveredUsd'])} uncovered"
    )
    first_line, *other_lines = wrap_text(summary, display.width, "")
    yield from (palette.colorize("bold", first_line), *other_lines)
    hour_rows = [
        (
            f"{hour.hour:%H:%M}",
            f"{hour.covered_usd:.4f}",
            f"{hour.uncovered_usd:.4f}",
            f"{hour.committed_usd:.4f}",
            f"{hour.unused_usd:.4f}",
        )
        for hour in usage.hours
    ]
    yield from render_table(_HOURS, hour_rows, palette, display.width)
    part_rows = [
        (part.id, part.type, f"{part.committed_usd:.4f}", f"{part.used_usd:.4f}", f"{part.unused_usd:.4f}")
        for part in usage.commitments
    ]
    if part_rows:
        yield ""
        yield from render_table(_COMMITMENTS, part_rows, palette, display.width)
    notes = list(LIMITS_OF_KNOWLEDGE)
    if usage.other_regions:
        notes.append(f"Not counted, because they are for other regions: {join_names(usage.other_regions)}.")
    for note in notes:
        yield from (palette.colorize("dim", line) for line in wrap_text(note, display.width, ""))
