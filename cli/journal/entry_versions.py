"""Journal entries of another version: the parts that this version can decode, and how much it cannot."""

from typing import Any

import msgspec

from shared.model.core.formatting import format_count
from shared.model.core.metadata import Problem
from shared.report.journal.journal import ActionResult, DecisionNote, JournalEntry


class _PartialEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that every entry has, with undecoded lists."""

    function: str
    trigger: str = ""
    at: Any
    cluster: str = ""
    notes: tuple[msgspec.Raw, ...] = ()
    problems: tuple[msgspec.Raw, ...] = ()
    results: tuple[msgspec.Raw, ...] = msgspec.field(default=(), name="done")
    error: str = ""
    snapshot: str = ""
    code: str = ""


def decode_readable_parts(body: bytes) -> tuple[JournalEntry | None, str]:
    """Return the readable part of *body* and a text about the unreadable part; None if it is not an entry."""
    try:
        partial_entry = msgspec.json.decode(body, type=_PartialEntry)
        fields = {
            "function": partial_entry.function,
            "trigger": partial_entry.trigger,
            "at": partial_entry.at,
            "cluster": partial_entry.cluster,
        }
        entry = msgspec.convert(fields | {"error": partial_entry.error, "code": partial_entry.code}, JournalEntry)
    except msgspec.MsgspecError:
        return None, ""
    results, notes, problems = (
        _decode_items(partial_entry.results, ActionResult),
        _decode_items(partial_entry.notes, DecisionNote),
        _decode_items(partial_entry.problems, Problem),
    )
    unreadable_counts = {
        "action": len(partial_entry.results) - len(results),
        "note": len(partial_entry.notes) - len(notes),
        "problem": len(partial_entry.problems) - len(problems),
    }
    unreadable_text = ", ".join(format_count(number, kind) for kind, number in unreadable_counts.items() if number)
    return msgspec.structs.replace(
        entry, results=results, notes=notes, problems=problems
    ), unreadable_text or "unknown fields"


def _decode_items(raw_items: tuple[msgspec.Raw, ...], type_: type[Any]) -> tuple[Any, ...]:
    items: list[Any] = []
    for raw_item in raw_items:
        try:
            items.append(msgspec.json.decode(raw_item, type=type_))
        except msgspec.MsgspecError:
            continue
    return tuple(items)
