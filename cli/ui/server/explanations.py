"""Explanations of one object for the page: the answers and the history of `joiner explain`, with links."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, get_args

from cli.explain.answers import explain_object
from cli.explain.evidence import Evidence, UnknownObject
from cli.explain.kinds import ExplainKind
from cli.explain.node_records import NodeRecord
from cli.explain.page import describe_journal_coverage
from cli.explain.phrases import Explanation, format_instant
from cli.fleet.decisions.decision_list import build_replay_command
from cli.journal.journal_decisions import list_journal_decisions

DECISION: Final = "decision"
_MAX_LINKS: Final = 30
_LINK_KINDS: Final = {"Node": "node", "NodeClaim": "nodeclaim", "Pod": "pod", "NodePool": "nodepool"}


def build_explanation(evidence: Evidence, kind: str, name: str) -> dict[str, Any]:
    """Return the lines and links about the object *name*; *kind* is one of `joiner explain`, or `decision`.

    Raises:
        UnknownObject: nothing is known about it, or there is no such kind.
    """
    if kind == DECISION:
        return _explain_decision(evidence, name)
    explain_kind = next((known_kind for known_kind in get_args(ExplainKind) if known_kind == kind), None)
    if explain_kind is None:
        raise UnknownObject(f"unknown kind {kind!r}: write one of {', '.join((*get_args(ExplainKind), DECISION))}")
    explanation = explain_object(evidence, explain_kind, name)
    return {
        "lines": [*_list_lines(explanation), describe_journal_coverage(evidence)],
        "links": _list_links(_list_related_objects(evidence, explanation)),
    }


def _list_lines(explanation: Explanation) -> Iterator[str]:
    for answer in explanation.answers:
        yield from (f"{answer.question}: {sentence}" for sentence in answer.sentences)
    for entry in explanation.history:
        repetition = f" ({entry.times} times until {entry.last_at:%H:%M:%S})" if entry.times > 1 else ""
        reason = f": {entry.reason}" if entry.reason else ""
        yield f"{format_instant(entry.at)}  {entry.function}  {entry.text}{repetition}{reason}"


def _list_related_objects(evidence: Evidence, explanation: Explanation) -> Iterator[tuple[str, str]]:
    kind, name = explanation.kind, explanation.name
    for record in evidence.node_records:
        is_on_node = kind == "pod" and name in record.pods
        if is_on_node or (kind == "nodepool" and record.pool == name):
            yield _get_node_link(record)
        elif kind in ("node", "nodeclaim") and name in (record.claim, record.node, record.instance):
            yield "NodePool", record.pool
            yield from (("Pod", pod) for pod in record.pods)


def _get_node_link(record: NodeRecord) -> tuple[str, str]:
    return ("Node", record.node) if record.node else ("NodeClaim", record.claim)


def _explain_decision(evidence: Evidence, key: str) -> dict[str, Any]:
    cycle = next((cycle for cycle in evidence.cycles if cycle.key == key), None)
    if cycle is None:
        raise UnknownObject(f"decision {key} not found: the journal may have been read for a shorter time")
    decisions = list_journal_decisions([cycle])
    lines = [f"{cycle.entry.function}, invoked by {cycle.entry.trigger} at {format_instant(cycle.entry.at)} UTC"]
    lines += [f"{decision.summary}{f': {decision.reason}' if decision.reason else ''}" for decision in decisions]
    lines += [f"{name}: {value:g}" for name, value in sorted(cycle.entry.counts.items())]
    if replay_command := build_replay_command(cycle, evidence.journal.source):
        lines.append(f"decide again: {replay_command}")
    return {"lines": lines, "links": _list_links(pair for decision in decisions for pair in decision.objects)}


def _list_links(objects: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    links = dict.fromkeys((_LINK_KINDS[kind], name) for kind, name in objects if kind in _LINK_KINDS and name)
    return [{"kind": kind, "name": name} for kind, name in list(links)[:_MAX_LINKS]]
