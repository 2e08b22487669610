"""Which cycles of a journal can be decided again; for people and for programs."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from cli.explain_journals import Cycle
from cli.replay_page import MOST, instant
from cli.text import Palette, aligned, count, cut
from shared.model.action import (
    Action,
    CreateNodeClaim,
    DeleteObject,
    DeletePod,
    EvictPod,
    LaunchInstances,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
    RegisterNode,
    TaintNode,
    TerminateInstances,
)

_DEEDS: Final[tuple[tuple[tuple[type[Action], ...], str], ...]] = (
    ((LaunchInstances,), "request to EC2"),
    ((RegisterNode,), "node registered"),
    ((TaintNode,), "node tainted"),
    ((EvictPod, DeletePod), "eviction"),
    ((TerminateInstances,), "termination"),
)


def listing(cycles: Sequence[Cycle], palette: Palette, width: int | None, *, is_whole: bool) -> str:
    """Answer which cycles can be decided again, oldest first."""
    shown = cycles if is_whole else cycles[-2 * MOST :]
    rows = [("TIME, UTC", "FUNCTION", "CODE", "DECIDED")]
    rows += [(instant(one.entry.at), one.entry.function, one.entry.code, summary(one)) for one in shown]
    head, *lines = aligned(rows, left=len(rows[0]))
    lines = [palette.paint("bold", cut(head, width)), *(cut(line, width) for line in lines)]
    if len(shown) < len(cycles):
        lines.insert(
            1, palette.paint("dim", f"… {count(len(cycles) - len(shown), 'earlier cycle')} (--all shows them)")
        )
    return "\n".join(lines) + "\n"


def summary(one: Cycle) -> str:
    """Say in one line what a cycle decided."""
    entry = one.entry
    made = [done.action for done in entry.done if isinstance(done.action, CreateNodeClaim)]
    gone = [done.action for done in entry.done if isinstance(done.action, DeleteObject)]
    waiting = [note for note in entry.notes if note.kind == "Pod" and "/" not in note.verdict]
    placed = sum(note.kind == "Pod" for note in entry.notes) - len(waiting)
    commands = {note.name for note in entry.notes if note.kind == "Command"}
    parts = (
        (len(made), "NodeClaim made"),
        *((_of(one, types), words) for types, words in _DEEDS),
        (len(gone), "deletion"),
        (placed, "pod placed"),
        (len(waiting), "pod without a place"),
        (len(commands), "command"),
        (sum(note.kind == "Node" for note in entry.notes), "verdict on nodes"),
    )
    if not any(number for number, _ in parts):
        freed = (done.action for done in entry.done if isinstance(done.action, PatchMetadata))
        parts = (
            (sum(each.finalizers is not None for each in freed), "object let go"),
            (_of(one, PatchStatus), "status written"),
            (_of(one, PublishEvent), "event"),
        )
    said_ = [_many(number, what) for number, what in parts if number]
    return ", ".join(said_) or count(len(entry.done), "action")


def _of(one: Cycle, types: type[Action] | tuple[type[Action], ...]) -> int:
    return sum(isinstance(done.action, types) for done in one.entry.done)


def _many(number: int, what: str) -> str:
    first, _, rest = what.partition(" ")
    return f"{count(number, first)}{f' {rest}' if rest else ''}"


def listed(cycles: Iterable[Cycle]) -> list[dict[str, Any]]:
    """Answer what a program reads of the cycles that can be decided again."""
    return [
        {
            "cycle": one.key,
            "function": one.entry.function,
            "at": one.entry.at,
            "code": one.entry.code,
            "decided": summary(one),
        }
        for one in cycles
    ]
