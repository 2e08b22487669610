"""The history of objects as text: the notes and actions of the journal about them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from cli.journal.action_text import describe_action
from cli.journal.journal import Cycle
from shared.model.cloud_provider.instance_type import UnavailableOffering
from shared.model.core.formatting import format_count, join_names
from shared.model.decisions import action as actions
from shared.model.ec2.fleet import FleetRequest
from shared.report.journal.journal import ActionResult, JournalEntry

ObjectNames: TypeAlias = frozenset[tuple[str, str]]
"""Objects as pairs (kind, name): ``("Pod", "shop/cart")``, ``("Instance", "i-0123")``."""
MAX_LISTED_NAMES: Final = 5
"""Longer lists are cut after this many names; the rest is counted."""
_REASONS_COVERED_BY_NOTES: Final = frozenset(("Nominated", "FailedScheduling", "DisruptionBlocked", "Unconsolidatable"))
"""Reasons of events that repeat the text of a note."""


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A line of an object's history; consecutive repetitions are one entry."""

    at: datetime
    last_at: datetime
    """When it was recorded last."""
    times: int = 1
    function: str
    text: str
    reason: str = ""
    """As recorded last."""
    is_failed: bool = False
    cycle_key: str
    """The key of the cycle in the journal."""


def build_history(cycles: Iterable[Cycle], names: ObjectNames) -> tuple[HistoryEntry, ...]:
    """Return the history of *names*, in order; what a function repeats in every cycle is one entry."""
    entries: list[HistoryEntry] = []
    positions_by_function: dict[str, dict[HistoryKey, int]] = {}
    """By function, the positions of the lines of its last cycle that had any."""
    for cycle in cycles:
        positions: dict[HistoryKey, int] = {}
        for entry, key in _build_cycle_entries(cycle, names):
            position = positions.get(key, positions_by_function.get(entry.function, {}).get(key))
            if position is None:
                position = len(entries)
                entries.append(entry)
            elif key not in positions:
                previous_entry = entries[position]
                entries[position] = msgspec.structs.replace(
                    previous_entry, last_at=entry.at, times=previous_entry.times + 1, reason=entry.reason
                )
            positions[key] = position
        if positions:
            positions_by_function[cycle.entry.function] = positions
    return tuple(entries)


def _build_cycle_entries(cycle: Cycle, names: ObjectNames) -> Iterator[tuple[HistoryEntry, "HistoryKey"]]:
    entry = cycle.entry
    at, function, key = entry.at, entry.function, cycle.key
    for lines in (
        _build_action_lines(entry, names),
        _build_note_lines(entry, names),
        _build_problem_lines(entry, names),
    ):
        for text, reason, is_failed, is_event in lines:
            history_entry = HistoryEntry(
                at=at, last_at=at, function=function, text=text, reason=reason, is_failed=is_failed, cycle_key=key
            )
            yield history_entry, (text, "" if is_event else reason, is_failed)


HistoryKey: TypeAlias = tuple[str, str, bool]
"""Identifies a repeated line; for events without the reason, because an event's text changes as it progresses."""
HistoryLine: TypeAlias = tuple[str, str, bool, bool]
"""Text, reason, whether it failed, and whether it is an event."""


def _build_note_lines(entry: JournalEntry, names: ObjectNames) -> Iterator[HistoryLine]:
    for note in entry.notes:
        if (note.kind, note.name) in names:
            commands = [link for link in note.links if link.startswith("Command/")]
            if any(("Command", link.partition("/")[2]) in names for link in commands):
                continue  # the command's own note has the same text
            text = f"{note.kind} {note.name} {note.verdict}"
            if note.kind == "Pod":
                text = f"planned for {note.verdict}" if "/" in note.verdict else note.verdict
            yield text, note.reason, False, False


def _build_problem_lines(entry: JournalEntry, names: ObjectNames) -> Iterator[HistoryLine]:
    for problem in entry.problems:
        if (problem.kind, problem.name) in names:
            yield f"problem with {problem.kind} {problem.name}", problem.message, True, False


def _build_action_lines(entry: JournalEntry, names: ObjectNames) -> Iterator[HistoryLine]:
    """Yield lines about the actions, in order; many similar actions are one line, at the position of the first."""
    summarized: set[object] = set()
    for action_result in entry.results:
        build_lines = _SUMMARIZERS.get(type(action_result.action))
        if list_action_objects(action_result.action) & names:
            yield from _build_result_lines(action_result, names)
        elif build_lines is not None and build_lines not in summarized:
            summarized.add(build_lines)
            yield from build_lines(entry, names)


def _build_refusal_lines(entry: JournalEntry, names: ObjectNames) -> Iterator[HistoryLine]:
    """Yield lines about the offerings that EC2 refused when they were requested for *names*."""
    requests = [
        result.action.group.request
        for result in entry.results
        if isinstance(result.action, actions.LaunchInstances) and list_action_objects(result.action) & names
    ]
    offerings_by_reason: dict[str, list[str]] = {}
    for action_result in entry.results:
        action = action_result.action
        if isinstance(action, actions.MarkUnavailable) and any(
            _is_requested(request, action.offering) for request in requests
        ):
            reason = action.message.partition(": ")[0]
            offerings_by_reason.setdefault(reason, []).append(_format_offering(action.offering))
    for reason, offerings in offerings_by_reason.items():
        reason_text = f"{reason}: {join_names(offerings, MAX_LISTED_NAMES)}"
        yield f"EC2 refused {format_count(len(offerings), 'offering')}", reason_text, True, False


def _build_eviction_lines(entry: JournalEntry, names: ObjectNames) -> Iterator[HistoryLine]:
    """Yield lines about the pods that were evicted from, or deleted on, the nodes in *names*."""
    pods_by_cause: dict[tuple[str, str, str], list[str]] = {}
    for action_result in entry.results:
        action = action_result.action
        if isinstance(action, actions.EvictPod | actions.DeletePod) and ("Node", action.node) in names:
            verb = "evicted from" if isinstance(action, actions.EvictPod) else "deleted on"
            cause = (f"{verb} {action.node}", action.message, _describe_failure(action_result))
            pods_by_cause.setdefault(cause, []).append(f"{action.namespace}/{action.name}")
    for (verb, reason, failure), pods in pods_by_cause.items():
        reason_text = f"{reason}: {join_names(pods, MAX_LISTED_NAMES)}{failure}"
        yield f"{format_count(len(pods), 'pod')} {verb}", reason_text, bool(failure), False


_SUMMARIZERS: Final[Mapping[type[object], Callable[[JournalEntry, ObjectNames], Iterator[HistoryLine]]]] = {
    actions.MarkUnavailable: _build_refusal_lines,
    actions.EvictPod: _build_eviction_lines,
    actions.DeletePod: _build_eviction_lines,
}


def list_action_objects(action: actions.Action) -> ObjectNames:  # noqa: PLR0911 - one case each
    """Return the objects that *action* is about; none for unavailable offerings and follow-ups."""
    match action:
        case actions.CreateNodeClaim():
            return frozenset((("NodeClaim", action.claim.name), *(("Pod", pod) for pod in action.pods)))
        case actions.LaunchInstances():
            return frozenset(("NodeClaim", claim) for claim in action.group.claims)
        case actions.TerminateInstances():
            return frozenset(("Instance", instance_id) for instance_id in action.instance_ids)
        case actions.TaintNode() | actions.RegisterNode():
            return frozenset((("Node", action.name),))
        case actions.EvictPod() | actions.DeletePod() | actions.NominatePod() | actions.SetDeletionCost():
            return frozenset((("Pod", f"{action.namespace}/{action.name}"),))
        case actions.RestartDeployment():
            return frozenset((("Deployment", f"{action.namespace}/{action.name}"),))
        case actions.ScaleWorkload():
            return frozenset(((action.kind, f"{action.namespace}/{action.name}"),))
        case actions.PublishEvent():
            name = f"{action.namespace}/{action.name}" if action.namespace else action.name
            return frozenset(((action.kind, name),))
        case actions.PatchMetadata() | actions.PatchStatus() | actions.DeleteObject():
            return frozenset(((action.kind, action.name),))
        case _:
            return frozenset()


def _build_result_lines(action_result: ActionResult, names: ObjectNames) -> Iterator[HistoryLine]:
    """Yield the line about an action and its result; none if a note covers it, or if it is of no interest."""
    action = action_result.action
    match action:
        case actions.PublishEvent() if action.reason in _REASONS_COVERED_BY_NOTES:
            return
        case actions.PatchMetadata() if not action.message or action.finalizers is None:
            return
        case actions.PatchStatus():
            return
        case actions.PublishEvent():
            text, reason = f"event {action.reason}", action.message
        case actions.CreateNodeClaim():
            text, reason = f"NodeClaim {action.claim.name} created", action.message
        case actions.TerminateInstances():
            instance_ids = sorted(id_ for id_ in action.instance_ids if ("Instance", id_) in names)
            text, reason = describe_action(msgspec.structs.replace(action, instance_ids=tuple(instance_ids)))
        case _:
            text, reason = describe_action(action)
    reason_text = f"{reason}{_describe_failure(action_result)}".removeprefix("; ")
    yield text, reason_text, action_result.result == "failed", isinstance(action, actions.PublishEvent)


def _describe_failure(action_result: ActionResult) -> str:
    return "" if action_result.result == "done" else f"; {action_result.result}: {action_result.message}"


def _is_requested(request: FleetRequest, unavailable: UnavailableOffering) -> bool:
    return unavailable.capacity_type in ("", request.capacity_type) and any(
        unavailable.instance_type in ("", override.instance_type) and unavailable.zone in ("", override.zone)
        for config in request.configs
        for override in config.overrides
    )


def _format_offering(offering: UnavailableOffering) -> str:
    parts = (
        offering.capacity_type,
        offering.instance_type or "all instance types",
        offering.zone and f"in {offering.zone}",
        offering.subnet_id,
    )
    return " ".join(part for part in parts if part)
