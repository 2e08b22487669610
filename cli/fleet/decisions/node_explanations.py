"""Why each node exists and why it is kept: the answers of `joiner explain`, alternatives and verdicts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from cli.explain.answers import explain_node_record
from cli.explain.evidence import Evidence
from cli.explain.node_records import NodeRecord
from cli.explain.phrases import format_instant
from cli.fleet.decisions.cheapest_offerings import AlternativeFinder
from cli.fleet.document.fleet_decisions import NodeWhy
from cli.fleet.recording.fleet_recorder import RecordedNode
from shared.model.decisions.disruption_verdict import SILENT_REASONS
from shared.report.journal.journal import DecisionNote
from shared.state.node_prices import PriceList

_NAMES: Final = "names"
"""The answer that the page does not need: names and times are in other parts of the document."""


def build_node_explanations(
    nodes: Sequence[RecordedNode],
    evidence: Evidence,
    price_list: PriceList,
    keep_reasons: Mapping[str, str],
) -> tuple[tuple[NodeWhy, ...], tuple[int | None, ...]]:
    """Return the explanations, and the index of each node's explanation.

    *keep_reasons* are the current reasons against the disruption of nodes, by name; without one, the node's last
    verdict in the journal is used.
    """
    finder = AlternativeFinder(price_list)
    records_by_claim = _group_records(evidence.node_records)
    explanations: list[NodeWhy] = []
    numbers: list[int | None] = []
    for recorded_node in nodes:
        record = _find_record(records_by_claim, recorded_node)
        explanation = _explain_node(recorded_node, record, evidence, finder, keep_reasons)
        is_empty = explanation == NodeWhy()
        numbers.append(None if is_empty else len(explanations))
        explanations += [] if is_empty else [explanation]
    return tuple(explanations), tuple(numbers)


def _group_records(records: Sequence[NodeRecord]) -> dict[str, list[NodeRecord]]:
    records_by_claim: dict[str, list[NodeRecord]] = {}
    for record in records:
        records_by_claim.setdefault(record.claim, []).append(record)
    return records_by_claim


def _find_record(records_by_claim: Mapping[str, list[NodeRecord]], recorded_node: RecordedNode) -> NodeRecord | None:
    """Return the record of the node; if its NodeClaim was recreated, the record of the time when it ended."""
    records = records_by_claim.get(recorded_node.node.claim, []) if recorded_node.node.claim else []
    if recorded_node.ended_at is None:
        return records[-1] if records else None
    ended_at = recorded_node.ended_at
    matches = (record for record in reversed(records) if record.asked_at is None or record.asked_at <= ended_at)
    return next(matches, None)


def _explain_node(
    recorded_node: RecordedNode,
    record: NodeRecord | None,
    evidence: Evidence,
    finder: AlternativeFinder,
    keep_reasons: Mapping[str, str],
) -> NodeWhy:
    node = recorded_node.node
    answers = explain_node_record(evidence, record) if record is not None and record.asked_at is not None else ()
    lines = tuple(
        f"{answer.question}: {sentence}"
        for answer in answers
        if answer.question != _NAMES
        for sentence in answer.sentences
    )
    return NodeWhy(
        lines=lines,
        alternatives=finder.find_alternatives(node.node_claim) if node.node_claim is not None else (),
        blocked_by=tuple(_list_keep_reasons(recorded_node, evidence, keep_reasons)),
    )


def _list_keep_reasons(
    recorded_node: RecordedNode, evidence: Evidence, keep_reasons: Mapping[str, str]
) -> Iterator[str]:
    """Yield the reason why the node is kept now, or why it was kept until it was removed."""
    name = recorded_node.node.name
    if name in keep_reasons:
        yield from filter(None, (keep_reasons[name],))
        return
    verdicts = [
        (at, note)
        for at, note in evidence.iterate_notes("Node", name)
        if not note.links and at >= recorded_node.started_at and not _is_transient(note, recorded_node)
    ]
    if not verdicts or verdicts[-1][1].verdict == "disrupted":
        return
    at, note = verdicts[-1]
    if recorded_node.ended_at is None:
        yield f"{note.reason} (since {format_instant(at)})"
    elif at <= recorded_node.ended_at:
        yield f"until its removal: {note.reason} (verdict of {format_instant(at)})"


def _is_transient(note: DecisionNote, recorded_node: RecordedNode) -> bool:
    """Return whether the verdict does not tell why a removed node was kept before."""
    return recorded_node.ended_at is not None and note.reason.partition(":")[0] in SILENT_REASONS
