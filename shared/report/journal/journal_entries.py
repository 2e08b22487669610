"""Decisions as notes of the journal: in words, and each once until it changes."""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.model.cloud_provider.instance_type import Catalog
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, format_usd_per_hour
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODECLASS, NODEPOOL, RESERVATION_ID, ZONE
from shared.model.decisions.action import Action, PatchMetadata
from shared.model.decisions.command import (
    CommandState,
    CommandTarget,
    DisruptionCommand,
    DisruptionPauses,
    format_pause,
)
from shared.model.decisions.disruption_verdict import (
    MAX_NODES_WITH_EVENTS,
    SILENT_REASONS,
    DisruptedVerdict,
    KeptVerdict,
    Verdict,
)
from shared.model.decisions.placement import Placement
from shared.report.journal.journal import LAUNCHED_VERDICT, DecisionNote

REPORT_INTERVAL: Final = timedelta(hours=1)
"""How far back the journal must be read for a verdict that is still valid."""
MAX_VERDICTS_PER_ENTRY: Final = 5000
"""Verdicts that fit into one journal entry."""
KEPT_EVENT_INTERVAL: Final = timedelta(minutes=15)
"""Minimum time between two events about why a node is kept: the reason changes with every pod."""
BLOCKED_EVENT_INTERVAL: Final = timedelta(minutes=2)
"""Minimum time between two events about what blocks the disruption of a node."""
_MEMORY_KEY: Final = "verdicts"


class ReportedVerdicts(msgspec.Struct, kw_only=True):
    """The verdicts that this container has reported since all were reported last."""

    since: datetime
    verdicts: dict[str, tuple[str, str]] = {}
    events: dict[str, tuple[str, datetime]] = {}
    """The last event and its time, by node."""


def get_reported_verdicts(memory: MutableMapping[str, object] | None) -> ReportedVerdicts | None:
    """Return a copy of the reported verdicts in *memory*."""
    reported_verdicts = memory.get(_MEMORY_KEY) if memory is not None else None
    return _copy_verdicts(reported_verdicts) if isinstance(reported_verdicts, ReportedVerdicts) else None


def build_memory(reported_verdicts: ReportedVerdicts | None) -> dict[str, object]:
    """Return the memory of which `get_reported_verdicts` returns *reported_verdicts*."""
    return {} if reported_verdicts is None else {_MEMORY_KEY: _copy_verdicts(reported_verdicts)}


def select_new_verdicts(
    verdicts: Iterable[Verdict], memory: MutableMapping[str, object] | None, now: datetime
) -> tuple[Verdict, ...]:
    """Return the verdicts that were not reported yet, and all of them once an hour, sorted by node.

    The result has at most `MAX_VERDICTS_PER_ENTRY` verdicts. Without a *memory*, all verdicts are new.
    """
    reported_verdicts = _get_current_verdicts(memory, now)
    new_verdicts: list[Verdict] = []
    for verdict in sorted(verdicts, key=lambda verdict: verdict.node):
        verdict_and_reason = (verdict.verdict, verdict.summary)
        if (
            reported_verdicts.verdicts.get(verdict.node) != verdict_and_reason
            and len(new_verdicts) < MAX_VERDICTS_PER_ENTRY
        ):
            reported_verdicts.verdicts[verdict.node] = verdict_and_reason
            new_verdicts.append(verdict)
    return tuple(new_verdicts)


def select_event_verdicts(
    new_verdicts: Iterable[Verdict],
    verdicts: Iterable[Verdict],
    memory: MutableMapping[str, object] | None,
    now: datetime,
) -> tuple[Verdict, ...]:
    """Return the *verdicts* that get an event now, sorted by node: all disruptions, and new verdicts that last.

    A node with a recent event gets no other one for a while; the verdict that is valid then is published then.
    """
    reported_verdicts, new_nodes = (
        _get_current_verdicts(memory, now),
        {new_verdict.node for new_verdict in new_verdicts},
    )
    event_verdicts: list[Verdict] = []
    event_count = 0
    for verdict in sorted(verdicts, key=lambda verdict: verdict.node):
        is_disrupted = isinstance(verdict, DisruptedVerdict)
        if is_disrupted and verdict.node in new_nodes:
            event_verdicts.append(verdict)
        if is_disrupted or verdict.reason in SILENT_REASONS or event_count == MAX_NODES_WITH_EVENTS:
            continue
        last_event = reported_verdicts.events.get(verdict.node)
        if verdict.node not in new_nodes and (last_event is None or last_event[0] == verdict.summary):
            continue
        if last_event is None or now - last_event[1] >= (
            KEPT_EVENT_INTERVAL if isinstance(verdict, KeptVerdict) else BLOCKED_EVENT_INTERVAL
        ):
            reported_verdicts.events[verdict.node] = (verdict.summary, now)
            event_verdicts.append(verdict)
            event_count += 1
    return tuple(event_verdicts)


def build_node_notes(verdicts: Iterable[Verdict]) -> Iterator[DecisionNote]:
    """Yield a note for each verdict."""
    for verdict in verdicts:
        yield DecisionNote(kind="Node", name=verdict.node, verdict=verdict.verdict, reason=verdict.summary)


def build_command_notes(command_states: Iterable[CommandState]) -> Iterator[DecisionNote]:
    """Yield a note for each command that advanced, and one for each of its nodes."""
    for command_state in command_states:
        command = command_state.command
        reason = (
            f"{command_state.message}; {_summarize_command(command)}"
            if command_state.message != command.message
            else _summarize_command(command)
        )
        yield DecisionNote(
            kind="Command",
            name=command.command_id,
            verdict=command_state.phase,
            reason=reason,
            links=tuple(link for target in command.targets for link in _build_links(target)),
            replaced_by=tuple(by.claim.name for by in command.replacements),
            usd_per_hour=command.savings_usd_per_hour,
            disruption_reason=command.reason,
        )
        for target in command.targets:
            reason = f"{command.command_id}: {command_state.message}"
            links = (f"Command/{command.command_id}",)
            yield DecisionNote(kind="Node", name=target.node, verdict=command_state.phase, reason=reason, links=links)


def _build_links(target: CommandTarget) -> tuple[str, str]:
    return f"Node/{target.node}", f"NodeClaim/{target.claim}"


def build_launch_notes(actions: Iterable[Action], cluster: ClusterSnapshot) -> Iterator[DecisionNote]:
    """Yield a note for each claim that got an instance by *actions*: the offering and its price."""
    for action in actions:
        if not isinstance(action, PatchMetadata) or action.kind != "NodeClaim":
            continue
        labels = dict(action.labels)
        if INSTANCE_TYPE in labels:
            price = _find_price(labels, cluster)
            description = ", ".join((labels[INSTANCE_TYPE], labels[CAPACITY_TYPE], f"in {labels[ZONE]}"))
            reason = f"{description}, {format_usd_per_hour(price)}" if price else description
            yield DecisionNote(
                kind="NodeClaim", name=action.name, verdict=LAUNCHED_VERDICT, reason=reason, usd_per_hour=price
            )


def _find_price(labels: Mapping[str, str], cluster: ClusterSnapshot) -> float:
    """Return the price of the offering that *labels* describe, 0 if it is not in the catalog any more."""
    catalog = cluster.catalog
    types = (
        catalog.get_instance_types(labels.get(NODECLASS, ""), labels.get(NODEPOOL, "")) if catalog is not None else ()
    )
    offering_key = (labels[INSTANCE_TYPE], labels[ZONE], labels[CAPACITY_TYPE], labels.get(RESERVATION_ID, ""))
    for kind in types:
        for offering in kind.offerings:
            if (kind.name, offering.zone, offering.capacity_type, offering.reservation_id) == offering_key:
                return offering.billed_usd_per_hour
    return 0.0


def build_pause_notes(paused: DisruptionPauses) -> Iterator[DecisionNote]:
    """Yield a note for each pause."""
    for pause in paused.items:
        yield DecisionNote(
            kind="NodePool", name=pause.pool or "*", verdict="DisruptionPaused", reason=format_pause(pause)
        )


def build_pod_notes(placement: Placement) -> Iterator[DecisionNote]:
    """Yield a note for each pod in *placement*."""
    for node in placement.new_nodes:
        reason = f"new node, cheapest instance type {node.cheapest.instance_type}"
        yield from (
            DecisionNote(kind="Pod", name=pod, verdict=f"nodeclaim/{node.name}", reason=reason) for pod in node.pods
        )
    for fit in placement.existing:
        yield from (
            DecisionNote(kind="Pod", name=pod, verdict=f"node/{fit.node}", reason="fits an existing node")
            for pod in fit.pods
        )
    for verdict in placement.unschedulable:
        yield DecisionNote(
            kind="Pod", name=verdict.pod, verdict=verdict.reason, reason=verdict.message, cause=verdict.cause or ""
        )


def _summarize_command(command: DisruptionCommand) -> str:
    names = ", ".join(target.node for target in command.targets)
    replacement_names = ", ".join(replacement.claim.name for replacement in command.replacements)
    saved = f"saves {format_usd_per_hour(command.savings_usd_per_hour)}" if command.savings_usd_per_hour else ""
    savings = f", {saved}" if saved and saved not in command.message else ""
    by_replacements = f" by {replacement_names}" if replacement_names else ""
    summary = f"{command.method} ({command.reason}) of {names}{by_replacements}{savings}"
    return f"{summary}: {command.message}" if command.message else summary


def _get_current_verdicts(memory: MutableMapping[str, object] | None, now: datetime) -> ReportedVerdicts:
    reported_verdicts = memory.get(_MEMORY_KEY) if memory is not None else None
    if not isinstance(reported_verdicts, ReportedVerdicts) or now - reported_verdicts.since >= REPORT_INTERVAL:
        last_events = reported_verdicts.events if isinstance(reported_verdicts, ReportedVerdicts) else {}
        recent_events = {name: event for name, event in last_events.items() if now - event[1] < REPORT_INTERVAL}
        reported_verdicts = ReportedVerdicts(since=now, verdicts={}, events=recent_events)
        if memory is not None:
            memory[_MEMORY_KEY] = reported_verdicts
    return reported_verdicts


def _copy_verdicts(reported_verdicts: ReportedVerdicts) -> ReportedVerdicts:
    return msgspec.structs.replace(
        reported_verdicts, verdicts=dict(reported_verdicts.verdicts), events=dict(reported_verdicts.events)
    )


def build_catalog_note(catalog: Catalog, key: str) -> DecisionNote:
    """Return the note of a new catalog."""
    sold = ", ".join(f"{format_count(len(types), 'instance type')} for {name}" for name, types in catalog.by_node_class)
    priced = f", prices of {catalog.priced_at:%Y-%m-%d %H:%M}" if catalog.priced_at is not None else ""
    return DecisionNote(kind="Catalogue", name=key, verdict="made", reason=f"{sold}{priced}")
