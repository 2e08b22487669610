"""Entries of the journal that another version wrote: what this one can read of them, and how much it cannot."""

from typing import Any

import msgspec

from cli.text import count
from shared.model.objects import Problem
from shared.report.journal import Done, Entry, Note


class _Loose(msgspec.Struct, frozen=True, kw_only=True):
    """What every entry has, and lists of anything."""

    function: str
    trigger: str = ""
    at: Any
    cluster: str = ""
    notes: tuple[msgspec.Raw, ...] = ()
    problems: tuple[msgspec.Raw, ...] = ()
    done: tuple[msgspec.Raw, ...] = ()
    error: str = ""
    snapshot: str = ""
    code: str = ""


def legible(body: bytes) -> tuple[Entry | None, str]:
    """Answer what of *body* can be read, and what cannot; None if it is no entry at all."""
    try:
        loose = msgspec.json.decode(body, type=_Loose)
        bare = {"function": loose.function, "trigger": loose.trigger, "at": loose.at, "cluster": loose.cluster}
        entry = msgspec.convert(bare | {"error": loose.error, "code": loose.code}, Entry)
    except msgspec.MsgspecError:
        return None, ""
    done, notes, problems = _read(loose.done, Done), _read(loose.notes, Note), _read(loose.problems, Problem)
    lost = {
        "action": len(loose.done) - len(done),
        "note": len(loose.notes) - len(notes),
        "problem": len(loose.problems) - len(problems),
    }
    said = ", ".join(count(number, what) for what, number in lost.items() if number)
    return msgspec.structs.replace(entry, done=done, notes=notes, problems=problems), said or "something"


def _read(some: tuple[msgspec.Raw, ...], type_: type[Any]) -> tuple[Any, ...]:
    found: list[Any] = []
    for one in some:
        try:
            found.append(msgspec.json.decode(one, type=type_))
        except msgspec.MsgspecError:
            continue
    return tuple(found)
