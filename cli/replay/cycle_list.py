"""The cycles of a journal that can be replayed, as text and as JSON."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from cli.explain.journal import Cycle
from cli.replay.page import MAX_LISTED_LINES, format_time
from cli.terminal.text import Palette, align_columns, truncate_text
from shared.model.core.formatting import format_count
from shared.model.decisions import action as actions

_ACTION_LABELS: Final[tuple[tuple[tuple[type[actions.Action], ...], str], ...]] = (
    ((actions.LaunchInstances,), "request to EC2"),
    ((actions.RegisterNode,), "node registered"),
    ((actions.TaintNode,), "node tainted"),
    ((actions.EvictPod, actions.DeletePod), "eviction"),
    ((actions.TerminateInstances,), "termination"),
)


def render_cycle_list(cycles: Sequence[Cycle], palette: Palette, width: int | None, *, is_whole: bool) -> str:
    """Render the cycles that can be replayed, oldest first."""
    shown_cycles = cycles if is_whole else cycles[-2 * MAX_LISTED_LINES :]
    rows = [("TIME, UTC", "FUNCTION", "CODE", "DECIDED")]
    rows += [
        (format_time(cycle.entry.at), cycle.entry.function, cycle.entry.code, summarize_cycle(cycle))
        for cycle in shown_cycles
    ]
    head, *lines = align_columns(rows, left_columns=len(rows[0]))
    lines = [palette.colorize("bold", truncate_text(head, width)), *(truncate_text(line, width) for line in lines)]
    if len(shown_cycles) < len(cycles):
        lines.insert(
            1,
            palette.colorize(
                "dim", f"… {format_count(len(cycles) - len(shown_cycles), 'earlier cycle')} (--all shows them)"
            ),
        )
    return "\n".join(lines) + "\n"


def summarize_cycle(cycle: Cycle) -> str:
    """Summarize what a cycle decided in one line."""
    entry = cycle.entry
    created_claims = [result.action for result in entry.results if isinstance(result.action, actions.CreateNodeClaim)]
    deletions = [result.action for result in entry.results if isinstance(result.action, actions.DeleteObject)]
    unplaced_notes = [note for note in entry.notes if note.kind == "Pod" and "/" not in note.verdict]
    placed_pods = sum(note.kind == "Pod" for note in entry.notes) - len(unplaced_notes)
    commands = {note.name for note in entry.notes if note.kind == "Command"}
    parts = (
        (len(created_claims), "NodeClaim made"),
        *((_count_actions(cycle, types), words) for types, words in _ACTION_LABELS),
        (len(deletions), "deletion"),
        (placed_pods, "pod placed"),
        (len(unplaced_notes), "pod without a place"),
        (len(commands), "command"),
        (sum(note.kind == "Node" for note in entry.notes), "verdict on nodes"),
    )
    if not any(number for number, _ in parts):
        metadata_patches = (
            result.action for result in entry.results if isinstance(result.action, actions.PatchMetadata)
        )
        parts = (
            (sum(patch.finalizers is not None for patch in metadata_patches), "object let go"),
            (_count_actions(cycle, actions.PatchStatus), "status written"),
            (_count_actions(cycle, actions.PublishEvent), "event"),
        )
    labeled_counts = [_pluralize(number, label) for number, label in parts if number]
    return ", ".join(labeled_counts) or format_count(len(entry.results), "action")


def _count_actions(cycle: Cycle, types: type[actions.Action] | tuple[type[actions.Action], ...]) -> int:
    return sum(isinstance(result.action, types) for result in cycle.entry.results)


def _pluralize(number: int, label: str) -> str:
    first, _, suffix = label.partition(" ")
    return f"{format_count(number, first)}{f' {suffix}' if suffix else ''}"


def build_cycle_documents(cycles: Iterable[Cycle]) -> list[dict[str, Any]]:
    """Return the JSON document of each cycle that can be replayed."""
    return [
        {
            "cycle": cycle.key,
            "function": cycle.entry.function,
            "at": cycle.entry.at,
            "code": cycle.entry.code,
            "decided": summarize_cycle(cycle),
        }
        for cycle in cycles
    ]
