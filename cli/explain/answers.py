"""Explanation of one object: questions with answers, and its history. Nothing is guessed."""

from collections.abc import Iterable, Iterator

from cli.explain.evidence import Evidence, describe_workload, find_full_name
from cli.explain.group_answers import UNKNOWN_DELETION_REASON, explain_command, explain_node_pool
from cli.explain.history import MAX_LISTED_NAMES, HistoryEntry, ObjectNames, build_history
from cli.explain.kinds import EXPLAIN_KINDS, ExplainKind
from cli.explain.live_state import describe_live_state
from cli.explain.node_records import NodeRecord, find_node_record
from cli.explain.phrases import (
    Explanation,
    ExplanationAnswer,
    build_answer,
    compute_cost,
    describe_intended_pods,
    describe_launched_offering,
    describe_node_record,
    format_cost,
    format_instant,
)
from cli.journal.evictions import iterate_evictions
from cli.planning.unschedulable import group_messages_by_pool
from shared.model.core.formatting import format_count, join_names
from shared.report.journal.journal import DecisionNote


def explain_object(evidence: Evidence, kind: ExplainKind, query: str) -> Explanation:
    """Return everything that is known about the object that *query* identifies.

    Raises:
        UnknownObject: nothing is known about it.
    """
    name = find_full_name(evidence, kind, query)
    match kind:
        case "pod":
            return _explain_pod(evidence, name, describe_workload(evidence, query, name))
        case "nodepool":
            return explain_node_pool(evidence, name)
        case "command":
            return explain_command(evidence, name)
        case _:
            return _explain_node(evidence, kind, name)


def _explain_pod(evidence: Evidence, name: str, workload_text: str) -> Explanation:
    dated_notes = list(evidence.iterate_notes("Pod", name))
    answers = [
        *build_answer("workload", workload_text),
        *build_answer("current state", *describe_live_state(evidence.live_cluster, "pod", name)),
    ]
    if dated_notes:
        at, last_note = dated_notes[-1]
        kind, _, place = last_note.verdict.partition("/")
        if place and kind in ("node", "nodeclaim"):
            answers += _explain_placement(evidence, [note for _, note in dated_notes], kind, place)
        else:
            reasons = (
                f"{f'NodePool {join_names(pools, MAX_LISTED_NAMES)}: ' if pools else ''}{words}"
                for pools, words in group_messages_by_pool(last_note.reason)
            )
            answers += build_answer("unschedulable", f"{last_note.verdict} at {format_instant(at)}", *reasons)
    else:
        answers += build_answer("scheduled by", "kube-scheduler: the journal has no Joiner decision about this pod")
    answers += build_answer("evicted", *_list_evictions(evidence, name))
    return Explanation(kind="pod", name=name, answers=tuple(answers), history=_build_pod_history(evidence, name))


def _build_pod_history(evidence: Evidence, pod: str) -> tuple[HistoryEntry, ...]:
    """Return the history of *pod*, and the outcome of the NodeClaims that were created for it."""
    pod_events = build_history(evidence.cycles, frozenset((("Pod", pod),)))
    claim_names: ObjectNames = frozenset(
        ("NodeClaim", record.claim) for record in evidence.node_records if pod in record.pods
    )
    claim_events = (
        event
        for event in build_history(evidence.cycles, claim_names)
        if event.is_failed or event.text.startswith("NodeClaim ")
    )
    positions = {cycle.key: position for position, cycle in enumerate(evidence.cycles)}
    return tuple(sorted(dict.fromkeys((*claim_events, *pod_events)), key=lambda event: positions[event.cycle_key]))


def _explain_placement(
    evidence: Evidence, notes: list[DecisionNote], kind: str, place: str
) -> Iterator[ExplanationAnswer]:
    record = find_node_record(evidence.node_records, place)
    if record is None:
        yield from build_answer("node", f"{kind} {place}: {notes[-1].reason}")
        return
    yield from build_answer("node", describe_node_record(record))
    claim_notes = [note for note in notes if note.verdict.startswith("nodeclaim/")]
    is_created_for_pod = bool(claim_notes) and claim_notes[-1].verdict == f"nodeclaim/{record.claim}"
    reason = f"the node was created for this pod: {record.asked_why}" if is_created_for_pod else notes[-1].reason
    yield from build_answer("reason", reason)
    yield from build_answer("instance", describe_launched_offering(record))
    other_pods = [pod for pod in record.pods if pod != notes[-1].name]
    if is_created_for_pod and other_pods:
        names = join_names(other_pods, MAX_LISTED_NAMES)
        yield from build_answer("also created for", f"{format_count(len(other_pods), 'other pod')}: {names}")


def _list_evictions(evidence: Evidence, name: str) -> Iterator[str]:
    for cycle in evidence.cycles:
        for pod, action in iterate_evictions(cycle):
            if pod == name:
                record = find_node_record(evidence.node_records, action.node)
                cause = f" (NodeClaim {record.claim}: {record.deleted_why})" if record and record.deleted_why else ""
                yield f"{format_instant(cycle.entry.at)} from {action.node}: {action.message}{cause}"


def _explain_node(evidence: Evidence, kind: ExplainKind, name: str) -> Explanation:
    record = find_node_record(evidence.node_records, name) or NodeRecord(claim="", node=name)
    live_states = (
        *describe_live_state(evidence.live_cluster, "node", record.node),
        *describe_live_state(evidence.live_cluster, "nodeclaim", record.claim),
    )
    history = build_history(evidence.cycles, frozenset(record.list_names() | {(EXPLAIN_KINDS[kind], name)}))
    return Explanation(
        kind=kind,
        name=name,
        answers=explain_node_record(evidence, record, live_states),
        cost=compute_cost([record], evidence.journal.now),
        history=history,
    )


def explain_node_record(
    evidence: Evidence, record: NodeRecord, live_states: Iterable[str] = ()
) -> tuple[ExplanationAnswer, ...]:
    """Return why the node of *record* was launched, with which instance type, and why it is kept or removed."""
    return (
        *build_answer("names", describe_node_record(record) if record.claim else ""),
        *build_answer("current state", *live_states),
        *build_answer("created for", describe_intended_pods(record)),
        *build_answer("reason", record.asked_why, *_find_replaced_nodes(evidence, record)),
        *build_answer("instance", describe_launched_offering(record)),
        *build_answer(*_explain_removal(evidence, record)),
        *build_answer("cost", format_cost(compute_cost([record], evidence.journal.now))),
    )


def _find_replaced_nodes(evidence: Evidence, record: NodeRecord) -> Iterator[str]:
    """Yield the nodes that *record* replaces, with the command."""
    for _, note in evidence.iterate_notes("Command"):
        if record.claim and record.claim in note.replaced_by:
            replaced_nodes = dict.fromkeys(link.partition("/")[2] for link in note.links if link.startswith("Node/"))
            yield f"replaces {join_names(replaced_nodes, MAX_LISTED_NAMES)}: command {note.name}"
            return


def _explain_removal(evidence: Evidence, record: NodeRecord) -> tuple[str, str, str]:
    """Return why the node is removed, or why it is not: question, answer and command."""
    node_notes = evidence.iterate_notes("Node", record.node) if record.node else ()
    dated_notes = [(at, note) for at, note in node_notes if record.asked_at is None or at >= record.asked_at]
    command_text = ""
    if commands := [(at, note) for at, note in dated_notes if note.links]:
        at, note = commands[-1]
        command_text = f"command {note.reason.partition(': ')[0]}: {note.verdict} since {format_instant(at)}"
    if record.deleted_at is not None:
        return "removed", record.deleted_why, command_text
    if record.terminated_at is not None:
        return "removed", UNKNOWN_DELETION_REASON, command_text
    verdicts = [(at, note) for at, note in dated_notes if not note.links]
    if not verdicts:
        return "not disrupted", "", command_text
    since, last_note = verdicts[-1]
    for at, note in reversed(verdicts):
        if (note.verdict, note.reason) != (last_note.verdict, last_note.reason):
            break
        since = at
    question = "disrupted" if last_note.verdict == "disrupted" else "not disrupted"
    return question, f"{last_note.verdict}: {last_note.reason} (since {format_instant(since)})", command_text
