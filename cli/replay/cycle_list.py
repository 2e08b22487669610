"""The cycles of a journal that can be replayed, as text and as JSON."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from cli.journal.journal import Cycle
from cli.replay.page import MAX_LISTED_LINES, PageOptions, format_time
from cli.terminal.table import TableLayout, render_table
from shared.model.core.formatting import format_count
from shared.model.decisions import action as actions

_CYCLES: Final = TableLayout(
    headings=("TIME (UTC)", "FUNCTION", "CODE", "DECISION"), alignment="<<<~", is_folded=True, min_flexible_width=24
)
_ACTION_LABELS: Final[tuple[tuple[tuple[type[actions.Action], ...], str], ...]] = (
    ((actions.CreateNodeClaim,), "new NodeClaim"),
    ((actions.LaunchInstances,), "CreateFleet request"),
    ((actions.RegisterNode,), "registered node"),
    ((actions.TaintNode,), "tainted node"),
    ((actions.EvictPod, actions.DeletePod), "eviction"),
    ((actions.TerminateInstances,), "termination"),
    ((actions.DeleteObject,), "deletion"),
)


def render_cycle_list(cycles: Sequence[Cycle], options: PageOptions) -> str:
    """Render the cycles that can be replayed, oldest first."""
    shown_cycles = cycles if options.is_whole else cycles[-2 * MAX_LISTED_LINES :]
    rows = [
        (format_time(cycle.entry.at), cycle.entry.function, cycle.entry.code, summarize_cycle(cycle))
        for cycle in shown_cycles
    ]
    heading, *lines = render_table(_CYCLES, rows, options.palette, options.width)
    omitted_count = len(cycles) - len(shown_cycles)
    omitted_text = f"… {format_count(omitted_count, 'earlier cycle')} (--all shows them)"
    omitted_lines = [options.palette.colorize("dim", omitted_text)] if omitted_count else []
    return "\n".join([heading, *omitted_lines, *lines]) + "\n"


def summarize_cycle(cycle: Cycle) -> str:
    """Summarize what a cycle decided in one line."""
    entry = cycle.entry
    pod_notes = [note for note in entry.notes if note.kind == "Pod"]
    scheduled_count = sum("/" in note.verdict for note in pod_notes)
    commands = {note.name for note in entry.notes if note.kind == "Command"}
    parts = (
        *((_count_actions(cycle, types), words) for types, words in _ACTION_LABELS),
        (scheduled_count, "scheduled pod"),
        (len(pod_notes) - scheduled_count, "unschedulable pod"),
        (len(commands), "command"),
        (sum(note.kind == "Node" for note in entry.notes), "node verdict"),
    )
    if not any(number for number, _ in parts):
        patches = (result.action for result in entry.results if isinstance(result.action, actions.PatchMetadata))
        parts = (
            (sum(patch.finalizers is not None for patch in patches), "finalizer change"),
            (_count_actions(cycle, (actions.PatchStatus,)), "status update"),
            (_count_actions(cycle, (actions.PublishEvent,)), "event"),
        )
    labeled_counts = [format_count(number, label) for number, label in parts if number]
    return ", ".join(labeled_counts) or format_count(len(entry.results), "action")


def _count_actions(cycle: Cycle, types: tuple[type[actions.Action], ...]) -> int:
    return sum(isinstance(result.action, types) for result in cycle.entry.results)


def build_cycle_documents(cycles: Iterable[Cycle]) -> list[dict[str, Any]]:
    """Return the JSON document of each cycle that can be replayed."""
    return [
        {
            "cycle": cycle.key,
            "function": cycle.entry.function,
            "at": cycle.entry.at,
            "code": cycle.entry.code,
            "summary": summarize_cycle(cycle),
        }
        for cycle in cycles
    ]
