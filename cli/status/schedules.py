"""The schedules of NodePools and CapacityBuffers, rendered for people and as documents."""

from collections.abc import Iterable, Iterator
from typing import Any

from cli.terminal.text import Palette, wrap_text
from shared.model.core.units import format_instant
from shared.state.schedule_status import ScheduleStatus


def build_schedule_document(schedule: ScheduleStatus) -> dict[str, Any]:
    """Return the document that programs read."""
    return {
        "kind": schedule.kind,
        "name": schedule.name,
        "windows": list(schedule.windows),
        "values": schedule.values or None,
        "changesAt": None if schedule.changes_at is None else format_instant(schedule.changes_at),
        "nextWindows": list(schedule.next_windows),
        "nextValues": schedule.next_values or None,
    }


def render_schedules(schedules: Iterable[ScheduleStatus], palette: Palette, width: int | None) -> Iterator[str]:
    """Yield the lines that people read: what is in force now, and what is next."""
    lines = [line for schedule in schedules for line in wrap_text(schedule.describe(), width, "  ")]
    if lines:
        yield from (palette.colorize("bold", "SCHEDULES"), *lines)
