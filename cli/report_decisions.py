"""What was decided, one line for each: nodes that were asked for, nodes that went, commands, and what failed."""

from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from cli.explain_journals import Cycle
from cli.text import count
from shared.model.action import CreateNodeClaim, DeleteObject, TerminateInstances
from shared.report.journal import Done, Entry, Note


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """One decision."""

    at: datetime
    function: str
    what: str
    why: str = ""
    is_failed: bool = False
    cycle: str
    """Key of its entry."""


def decisions(cycles: Iterable[Cycle]) -> tuple[Decided, ...]:
    """Answer all, newest first; what is said again cycle after cycle once."""
    found: list[Decided] = []
    said: dict[str, set[tuple[str, str]]] = {}
    for cycle in cycles:
        entry, now = cycle.entry, set[tuple[str, str]]()
        for what, why, is_failed, again in _of_entry(entry):
            now.add((what, why))
            if again and (what, why) in said.get(entry.function, ()):
                continue
            found.append(
                Decided(at=entry.at, function=entry.function, what=what, why=why, is_failed=is_failed, cycle=cycle.key)
            )
        said[entry.function] = now
    return tuple(reversed(found))


def _of_entry(entry: Entry) -> Iterator[tuple[str, str, bool, bool]]:
    """Iterate over what, why, whether it failed, and whether the next cycle says it again if nothing changes."""
    if entry.error:
        yield f"{entry.function} failed", entry.error, True, True
    for done in entry.done:
        yield from _of_done(done)
    for note in entry.notes:
        yield from _of_note(note)


def _of_done(done: Done) -> Iterator[tuple[str, str, bool, bool]]:
    action, failed = done.action, done.result == "failed"
    why = str(getattr(action, "why", ""))
    if failed:
        yield f"{_named(done)} failed", f"{done.message}{f'; it was: {why}' if why else ''}", True, True
    elif done.result == "done":
        match action:
            case CreateNodeClaim():
                yield f"NodeClaim {action.claim.name} for {count(len(action.pods), 'pod')}", why, False, False
            case DeleteObject(kind="NodeClaim"):
                yield f"NodeClaim {action.name} deleted", why, False, False
            case TerminateInstances():
                yield f"{', '.join(action.instance_ids)} terminated", why, False, False
            case _:
                return


def _named(done: Done) -> str:
    action = done.action
    name = str(getattr(action, "name", "")) or (action.claim.name if isinstance(action, CreateNodeClaim) else "")
    return f"{type(action).__name__} {name}".rstrip()


def _of_note(note: Note) -> Iterator[tuple[str, str, bool, bool]]:
    if note.kind == "Command":
        yield f"command {note.name} {note.verdict}", note.why, note.verdict == "ROLLED_BACK", False
    elif note.kind == "NodePool":
        yield f"NodePool {note.name} {note.verdict}", note.why, False, True
