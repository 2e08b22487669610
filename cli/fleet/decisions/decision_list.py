"""The decisions and markers of a fleet document, from the decisions of a journal."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, cast, get_args

from cli.explain.node_records import NodeRecord
from cli.fleet.decisions.decision_titles import build_decision_title, build_offering_text
from cli.fleet.decisions.disruption_commands import get_command, group_phases, list_phase_lines, merge_phases
from cli.fleet.decisions.object_index import ObjectIndex
from cli.fleet.document.fleet_decisions import DecisionKind, FleetDecision, FleetMarker, MarkerKind
from cli.fleet.document.json_format import convert_to_milliseconds
from cli.journal.journal import Cycle
from cli.journal.journal_decisions import JournalDecision, list_journal_decisions

_REPLAYABLE_FUNCTIONS: Final = ("provision", "disrupt", "interrupt", "lifecycle", "catalog")
_MAX_LISTED_PODS: Final = 20
_MARKER_KIND_BY_DECISION_KIND: Final[dict[DecisionKind, MarkerKind]] = {
    "interrupt": "interruption",
    "fault": "failure",
    "deploy": "deployment",
}


def build_fleet_decisions(
    cycles: Iterable[Cycle], index: ObjectIndex, records: Sequence[NodeRecord], replay_source: str
) -> list[FleetDecision]:
    """Return the decisions, oldest first; *replay_source* is the value of ``--journal``, "" if there is none.

    The phases of a disruption command are one decision, at the time of the first phase.
    """
    records_by_name = {name: record for record in records for name in record.list_names()}
    return [
        _build_decision(phases, index, records_by_name, replay_source)
        for phases in group_phases(list_journal_decisions(cycles))
    ]


def _build_decision(
    phases: Sequence[JournalDecision],
    index: ObjectIndex,
    records_by_name: Mapping[tuple[str, str], NodeRecord],
    replay_source: str,
) -> FleetDecision:
    decision = merge_phases(phases)
    entry = decision.cycle.entry
    return FleetDecision(
        t=convert_to_milliseconds(entry.at),
        id=decision.cycle.key,
        function=entry.function,
        kind=cast("DecisionKind", decision.kind if decision.kind in get_args(DecisionKind) else "other"),
        title=build_decision_title(decision, records_by_name),
        lines=tuple(_list_lines(decision, phases)),
        nodes=index.find_nodes(decision.objects, entry.at),
        pods=index.find_pods(decision.objects, entry.at),
        saves_usd_per_hour=decision.saves_usd_per_hour,
        replay=build_replay_command(decision.cycle, replay_source) or None,
    )


def _list_lines(decision: JournalDecision, phases: Sequence[JournalDecision]) -> Iterator[str]:
    if decision.reason:
        yield decision.reason
    pods = [name for kind, name in decision.objects if kind == "Pod"]
    if pods:
        listed_pods = ", ".join(pods[:_MAX_LISTED_PODS])
        yield f"pods: {listed_pods}" + (f" and {len(pods) - _MAX_LISTED_PODS} more" if pods[_MAX_LISTED_PODS:] else "")
    yield from list_phase_lines(phases)
    yield f"command {command}" if (command := get_command(decision)) else decision.summary
    yield f"function {decision.cycle.entry.function}, invoked by {decision.cycle.entry.trigger}"


def build_replay_command(cycle: Cycle, replay_source: str) -> str:
    """Return the command that decides *cycle* again; "" if its inputs were not recorded."""
    entry = cycle.entry
    if not replay_source or not entry.snapshot or entry.function not in _REPLAYABLE_FUNCTIONS:
        return ""
    return f"joiner replay {entry.function} {entry.at.astimezone(UTC):%Y-%m-%dT%H:%M:%S} --journal {replay_source}"


def build_fleet_markers(
    cycles: Iterable[Cycle], records: Iterable[NodeRecord], decisions: Sequence[FleetDecision]
) -> list[FleetMarker]:
    """Return the markers, oldest first: launches, terminations, interruptions, failures, and new versions of Joiner."""
    markers = [*_list_record_markers(records), *_list_decision_markers(decisions), *_list_version_markers(cycles)]
    return sorted(markers, key=lambda marker: (marker.t, marker.kind, marker.title))


def _list_record_markers(records: Iterable[NodeRecord]) -> Iterator[FleetMarker]:
    for record in records:
        offering = build_offering_text(record) or "instance"
        if record.launched_at is not None and record.asked_at is not None:
            yield _build_marker(record.launched_at, "launch", f"{offering} launched", record.asked_why)
        if record.terminated_at is not None:
            yield _build_marker(record.terminated_at, "terminate", f"{offering} terminated", record.deleted_why)


def _build_marker(at: datetime, kind: MarkerKind, title: str, text: str) -> FleetMarker:
    return FleetMarker(t=convert_to_milliseconds(at), kind=kind, title=title, text=text)


def _list_decision_markers(decisions: Sequence[FleetDecision]) -> Iterator[FleetMarker]:
    for position, decision in enumerate(decisions):
        kind = _MARKER_KIND_BY_DECISION_KIND.get(decision.kind)
        if kind is not None:
            text = decision.lines[0] if decision.lines else ""
            yield FleetMarker(t=decision.t, kind=kind, title=decision.title, text=text, decision=position)


def _list_version_markers(cycles: Iterable[Cycle]) -> Iterator[FleetMarker]:
    """Yield a marker when a function runs with other code than before."""
    last_code = ""
    for cycle in cycles:
        code = cycle.entry.code
        if code and last_code and code != last_code:
            text = f"Code {last_code} was replaced with {code}."
            yield FleetMarker(
                t=convert_to_milliseconds(cycle.entry.at), kind="deployment", title="Joiner updated", text=text
            )
        last_code = code or last_code
