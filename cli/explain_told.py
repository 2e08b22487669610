"""What happened to things, in words: the notes and actions of the journal that are about them."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from cli.explain_journals import Cycle
from cli.text import count, some
from shared.model.action import (
    Action,
    CreateNodeClaim,
    DeleteObject,
    DeletePod,
    EvictPod,
    LaunchInstances,
    MarkUnavailable,
    NominatePod,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
    RegisterNode,
    TaintNode,
    TerminateInstances,
)
from shared.model.catalogue import UnavailableOffering
from shared.model.ec2 import FleetRequest
from shared.report.journal import Done, Entry

Names: TypeAlias = frozenset[tuple[str, str]]
"""Things, as (kind, name): ``("Pod", "shop/cart")``, ``("Instance", "i-0123")``."""
NAMED: Final = 5
"""Of a longer list the rest is counted."""
_SAID_BY_NOTES: Final = frozenset(("Nominated", "FailedScheduling", "DisruptionBlocked", "Unconsolidatable"))
"""Events whose words are the words of a note."""


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a story: once, or several times with nothing else in between."""

    at: datetime
    until: datetime
    """When it was so last."""
    times: int = 1
    function: str
    what: str
    why: str = ""
    """As it was told last."""
    is_failed: bool = False
    cycle: str
    """Where it lies in the journal."""


def story(cycles: Iterable[Cycle], names: Names) -> tuple[Happening, ...]:
    """Answer what happened to *names*, in order; what a function says cycle after cycle is one line."""
    lines: list[Happening] = []
    last: dict[str, dict[Key, int]] = {}
    """By function, what it said in the last cycle in which it said something, and where that stands."""
    for cycle in cycles:
        said: dict[Key, int] = {}
        for one, key in _of_cycle(cycle, names):
            place = said.get(key, last.get(one.function, {}).get(key))
            if place is None:
                place = len(lines)
                lines.append(one)
            elif key not in said:
                known = lines[place]
                lines[place] = msgspec.structs.replace(known, until=one.at, times=known.times + 1, why=one.why)
            said[key] = place
        if said:
            last[cycle.entry.function] = said
    return tuple(lines)


def _of_cycle(cycle: Cycle, names: Names) -> Iterator[tuple[Happening, "Key"]]:
    entry = cycle.entry
    for what, why, is_failed, is_event in (
        *_of_done(entry, names),
        *_of_notes(entry, names),
        *_of_problems(entry, names),
    ):
        line = Happening(
            at=entry.at,
            until=entry.at,
            function=entry.function,
            what=what,
            why=why,
            is_failed=is_failed,
            cycle=cycle.key,
        )
        yield line, (what, "" if is_event else why, is_failed)


Key: TypeAlias = tuple[str, str, bool]
"""By which a line is known that is told again: of events, whose words change as it goes on, without their words."""
Line: TypeAlias = tuple[str, str, bool, bool]
"""What, why, whether it failed, and whether it is an event."""


def _of_notes(entry: Entry, names: Names) -> Iterator[Line]:
    for note in entry.notes:
        if (note.kind, note.name) in names:
            commands = [link for link in note.links if link.startswith("Command/")]
            if any(("Command", link.partition("/")[2]) in names for link in commands):
                continue  # its own note says the same
            if note.kind == "Pod":
                what = f"planned for {note.verdict}" if "/" in note.verdict else note.verdict
            else:
                what = f"{note.kind} {note.name} {note.verdict}"
            yield what, note.why, False, False


def _of_problems(entry: Entry, names: Names) -> Iterator[Line]:
    for one in entry.problems:
        if (one.kind, one.name) in names:
            yield f"problem with {one.kind} {one.name}", one.message, True, False


def _of_done(entry: Entry, names: Names) -> Iterator[Line]:
    """Iterate over lines on what was done, in its order; what is many or alike is one line, where the first stands."""
    is_told = {MarkUnavailable: False, EvictPod: False}
    for done in entry.done:
        action = done.action
        if about(action) & names:
            yield from _words(done, names)
        elif isinstance(action, MarkUnavailable) and not is_told[MarkUnavailable]:
            is_told[MarkUnavailable] = True
            yield from _refusals(entry, names)
        elif isinstance(action, EvictPod | DeletePod) and not is_told[EvictPod]:
            is_told[EvictPod] = True
            yield from _leaving(entry, names)


def _refusals(entry: Entry, names: Names) -> Iterator[Line]:
    """Say what EC2 refused that was asked for on behalf of *names*."""
    requests = [
        done.action.group.request
        for done in entry.done
        if isinstance(done.action, LaunchInstances) and about(done.action) & names
    ]
    refused: dict[str, list[str]] = {}
    for done in entry.done:
        mark = done.action
        if isinstance(mark, MarkUnavailable) and any(_asked_for(one, mark.offering) for one in requests):
            refused.setdefault(mark.why.partition(": ")[0], []).append(_offering(mark.offering))
    for why, offerings in refused.items():
        yield f"EC2 refused {count(len(offerings), 'offering')}", f"{why}: {some(offerings, NAMED)}", True, False


def _leaving(entry: Entry, names: Names) -> Iterator[Line]:
    """Say which pods leave the nodes among *names*."""
    leaving: dict[tuple[str, str, str], list[str]] = {}
    for done in entry.done:
        one = done.action
        if isinstance(one, EvictPod | DeletePod) and ("Node", one.node) in names:
            verb = "evicted from" if isinstance(one, EvictPod) else "deleted on"
            leaving.setdefault((f"{verb} {one.node}", one.why, _became(done)), []).append(_pod(one))
    for (verb, why, became), pods in leaving.items():
        yield f"{count(len(pods), 'pod')} {verb}", f"{why}: {some(pods, NAMED)}{became}", bool(became), False


def about(action: Action) -> Names:  # noqa: PLR0911 - one case each
    """Answer whom *action* is about, but for marks and follow-ups."""
    match action:
        case CreateNodeClaim():
            return frozenset((("NodeClaim", action.claim.name), *(("Pod", pod) for pod in action.pods)))
        case LaunchInstances():
            return frozenset(("NodeClaim", claim) for claim in action.group.claims)
        case TerminateInstances():
            return frozenset(("Instance", one) for one in action.instance_ids)
        case TaintNode() | RegisterNode():
            return frozenset((("Node", action.name),))
        case EvictPod() | DeletePod() | NominatePod():
            return frozenset((("Pod", _pod(action)),))
        case PublishEvent():
            name = f"{action.namespace}/{action.name}" if action.namespace else action.name
            return frozenset(((action.kind, name),))
        case PatchMetadata() | PatchStatus() | DeleteObject():
            return frozenset(((action.kind, action.name),))
        case _:
            return frozenset()


def _words(done: Done, names: Names) -> Iterator[Line]:
    """Answer the line on what was *done*; none on what a note says too, or what nobody asks for."""
    said = _said(done.action, names)
    if said is not None:
        became = _became(done)
        yield (
            said[0],
            f"{said[1]}{became}".removeprefix("; "),
            done.result == "failed",
            isinstance(done.action, PublishEvent),
        )


def _said(action: Action, names: Names) -> tuple[str, str] | None:  # noqa: C901, PLR0911 - one case each
    match action:
        case CreateNodeClaim():
            return f"NodeClaim {action.claim.name} created", action.why
        case LaunchInstances():
            return "CreateFleet", action.why
        case TerminateInstances():
            mine = sorted(one for one in action.instance_ids if ("Instance", one) in names)
            return f"{', '.join(mine)} terminated", action.why
        case TaintNode():
            keys = ", ".join(one.key for one in action.taints)
            return f"Node {action.name} tainted: {keys}" if keys else f"Node {action.name}: taints removed", action.why
        case RegisterNode():
            return f"Node {action.name} registered", action.why
        case EvictPod():
            return f"evicted from {action.node}", action.why
        case DeletePod():
            return f"deleted on {action.node}", f"{action.why}; {action.grace_seconds} s of grace"
        case NominatePod():
            return f"kube-scheduler told of {action.node}", action.why
        case PublishEvent() if action.reason not in _SAID_BY_NOTES:
            return action.reason, action.message
        case PatchMetadata() if action.why and action.finalizers is not None:
            return f"{action.kind} {action.name} released", action.why
        case DeleteObject():
            return f"{action.kind} {action.name} deleted", action.why
        case _:
            return None


def _became(done: Done) -> str:
    return "" if done.result == "done" else f"; {done.result}: {done.message}"


def _pod(action: EvictPod | DeletePod | NominatePod) -> str:
    return f"{action.namespace}/{action.name}"


def _asked_for(request: FleetRequest, closed: UnavailableOffering) -> bool:
    return closed.capacity_type in ("", request.capacity_type) and any(
        closed.instance_type in ("", one.instance_type) and closed.zone in ("", one.zone)
        for config in request.configs
        for one in config.overrides
    )


def _offering(one: UnavailableOffering) -> str:
    parts = (one.capacity_type, one.instance_type or "every type", one.zone and f"in {one.zone}", one.subnet_id)
    return " ".join(part for part in parts if part)
