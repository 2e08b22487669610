"""The history of objects as text: the notes and actions of the journal about them."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from cli.explain.journal import Cycle
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
    for text, reason, is_failed, is_event in (
        *_build_action_lines(entry, names),
        *_build_note_lines(entry, names),
        *_build_problem_lines(entry, names),
    ):
        history_entry = HistoryEntry(
            at=entry.at,
            last_at=entry.at,
            function=entry.function,
            text=text,
            reason=reason,
            is_failed=is_failed,
            cycle_key=cycle.key,
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
            if note.kind == "Pod":
                text = f"planned for {note.verdict}" if "/" in note.verdict else note.verdict
            else:
                text = f"{note.kind} {note.name} {note.verdict}"
            yield text, note.reason, False, False


def _build_problem_lines(entry: JournalEntry, names: ObjectNames) -> Iterator[HistoryLine]:
    for problem in entry.problems:
        if (problem.kind, problem.name) in names:
            yield f"problem with {problem.kind} {problem.name}", problem.message, True, False


def _build_action_lines(entry: JournalEntry, names: ObjectNames) -> Iterator[HistoryLine]:
    """Yield lines about the actions, in order; many similar actions are one line, at the position of the first."""
    is_summarized = {actions.MarkUnavailable: False, actions.EvictPod: False}
    for action_result in entry.results:
        action = action_result.action
        if list_action_objects(action) & names:
            yield from _build_result_lines(action_result, names)
        elif isinstance(action, actions.MarkUnavailable) and not is_summarized[actions.MarkUnavailable]:
            is_summarized[actions.MarkUnavailable] = True
            yield from _build_refusal_lines(entry, names)
        elif isinstance(action, actions.EvictPod | actions.DeletePod) and not is_summarized[actions.EvictPod]:
            is_summarized[actions.EvictPod] = True
            yield from _build_eviction_lines(entry, names)


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
            offerings_by_reason.setdefault(action.message.partition(": ")[0], []).append(
                _format_offering(action.offering)
            )
    for reason, offerings in offerings_by_reason.items():
        yield (
            f"EC2 refused {format_count(len(offerings), 'offering')}",
            f"{reason}: {join_names(offerings, MAX_LISTED_NAMES)}",
            True,
            False,
        )


def _build_eviction_lines(entry: JournalEntry, names: ObjectNames) -> Iterator[HistoryLine]:
    """Yield lines about the pods that were evicted from, or deleted on, the nodes in *names*."""
    pods_by_cause: dict[tuple[str, str, str], list[str]] = {}
    for action_result in entry.results:
        action = action_result.action
        if isinstance(action, actions.EvictPod | actions.DeletePod) and ("Node", action.node) in names:
            verb = "evicted from" if isinstance(action, actions.EvictPod) else "deleted on"
            pods_by_cause.setdefault(
                (f"{verb} {action.node}", action.message, _describe_failure(action_result)), []
            ).append(_format_pod_name(action))
    for (verb, reason, failure), pods in pods_by_cause.items():
        yield (
            f"{format_count(len(pods), 'pod')} {verb}",
            f"{reason}: {join_names(pods, MAX_LISTED_NAMES)}{failure}",
            bool(failure),
            False,
        )


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
        case actions.EvictPod() | actions.DeletePod() | actions.NominatePod():
            return frozenset((("Pod", _format_pod_name(action)),))
        case actions.PublishEvent():
            name = f"{action.namespace}/{action.name}" if action.namespace else action.name
            return frozenset(((action.kind, name),))
        case actions.PatchMetadata() | actions.PatchStatus() | actions.DeleteObject():
            return frozenset(((action.kind, action.name),))
        case _:
            return frozenset()


def _build_result_lines(action_result: ActionResult, names: ObjectNames) -> Iterator[HistoryLine]:
    """Yield the line about an action and its result; none if a note covers it, or if it is of no interest."""
    description = _describe_action(action_result.action, names)
    if description is not None:
        failure = _describe_failure(action_result)
        yield (
            description[0],
            f"{description[1]}{failure}".removeprefix("; "),
            action_result.result == "failed",
            isinstance(action_result.action, actions.PublishEvent),
        )


def _describe_action(action: actions.Action, names: ObjectNames) -> tuple[str, str] | None:  # noqa: C901, PLR0911 - one case each
    match action:
        case actions.CreateNodeClaim():
            return f"NodeClaim {action.claim.name} created", action.message
        case actions.LaunchInstances():
            return "CreateFleet", action.message
        case actions.TerminateInstances():
            instance_ids = sorted(
                instance_id for instance_id in action.instance_ids if ("Instance", instance_id) in names
            )
            return f"{', '.join(instance_ids)} terminated", action.message
        case actions.TaintNode():
            keys = ", ".join(taint.key for taint in action.taints)
            return (
                f"Node {action.name} tainted: {keys}" if keys else f"Node {action.name}: taints removed",
                action.message,
            )
        case actions.RegisterNode():
            return f"Node {action.name} registered", action.message
        case actions.EvictPod():
            return f"evicted from {action.node}", action.message
        case actions.DeletePod():
            return f"deleted on {action.node}", f"{action.message}; {action.grace_seconds} s of grace"
        case actions.NominatePod():
            return f"kube-scheduler told of {action.node}", action.message
        case actions.PublishEvent() if action.reason not in _REASONS_COVERED_BY_NOTES:
            return action.reason, action.message
        case actions.PatchMetadata() if action.message and action.finalizers is not None:
            return f"{action.kind} {action.name} released", action.message
        case actions.DeleteObject():
            return f"{action.kind} {action.name} deleted", action.message
        case _:
            return None


def _describe_failure(action_result: ActionResult) -> str:
    return "" if action_result.result == "done" else f"; {action_result.result}: {action_result.message}"


def _format_pod_name(action: actions.EvictPod | actions.DeletePod | actions.NominatePod) -> str:
    return f"{action.namespace}/{action.name}"


def _is_requested(request: FleetRequest, unavailable: UnavailableOffering) -> bool:
    return unavailable.capacity_type in ("", request.capacity_type) and any(
        unavailable.instance_type in ("", override.instance_type) and unavailable.zone in ("", override.zone)
        for config in request.configs
        for override in config.overrides
    )


def _format_offering(offering: UnavailableOffering) -> str:
    parts = (
        offering.capacity_type,
        offering.instance_type or "every type",
        offering.zone and f"in {offering.zone}",
        offering.subnet_id,
    )
    return " ".join(part for part in parts if part)
