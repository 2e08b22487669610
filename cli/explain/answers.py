"""Explanation of one object: questions with answers, and its history. Nothing is guessed."""

from collections.abc import Iterator

from cli.explain.evidence import Evidence, find_full_name
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
    describe_record_end,
    format_cost,
    format_instant,
)
from cli.planning.unschedulable import group_messages_by_pool
from shared.model.core.formatting import format_count, join_names
from shared.model.decisions.action import DeletePod, EvictPod
from shared.report.journal.journal import DecisionNote


def explain_object(evidence: Evidence, kind: ExplainKind, object_name: str) -> Explanation:
    """Return everything that is known about *object_name*.

    Raises:
        UnknownObject: nothing is known about it.
    """
    name = find_full_name(evidence, kind, object_name)
    match kind:
        case "pod":
            return _explain_pod(evidence, name)
        case "nodepool":
            return explain_node_pool(evidence, name)
        case "command":
            return explain_command(evidence, name)
        case _:
            return _explain_node(evidence, kind, name)


def _explain_pod(evidence: Evidence, name: str) -> Explanation:
    dated_notes = list(evidence.iterate_notes("Pod", name))
    notes = [note for _, note in dated_notes]
    answers = [*build_answer("now", *describe_live_state(evidence.live_cluster, "pod", name))]
    if notes:
        last_note = notes[-1]
        kind, _, place = last_note.verdict.partition("/")
        if place and kind in ("node", "nodeclaim"):
            answers += _explain_placement(evidence, notes, kind, place)
        else:
            reasons = (
                f"{f'pool {join_names(pools, MAX_LISTED_NAMES)}: ' if pools else ''}{words}"
                for pools, words in group_messages_by_pool(last_note.reason)
            )
            answers += build_answer(
                "goes nowhere", f"{last_note.verdict}, as of {format_instant(dated_notes[-1][0])}", *reasons
            )
    else:
        answers += build_answer(
            "placed by", "kube-scheduler alone, as far as the journal goes: it was never planned for"
        )
    answers += build_answer("moved", *_list_evictions(evidence, name))
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
    cycle_positions = {cycle.key: position for position, cycle in enumerate(evidence.cycles)}
    return tuple(
        sorted(dict.fromkeys((*claim_events, *pod_events)), key=lambda event: cycle_positions[event.cycle_key])
    )


def _explain_placement(
    evidence: Evidence, notes: list[DecisionNote], kind: str, place: str
) -> Iterator[ExplanationAnswer]:
    record = find_node_record(evidence.node_records, place)
    if record is None:
        yield from build_answer("goes to", f"{kind} {place}: {notes[-1].reason}")
        return
    yield from build_answer("went to" if record.terminated_at is not None else "goes to", describe_node_record(record))
    claim_notes = [note for note in notes if note.verdict.startswith("nodeclaim/")]
    is_created_for_pod = bool(claim_notes) and claim_notes[-1].verdict == f"nodeclaim/{record.claim}"
    yield from build_answer(
        "why there", f"it was made for it: {record.asked_why}" if is_created_for_pod else notes[-1].reason
    )
    yield from build_answer("bought as", describe_launched_offering(record))
    other_pod_count = len(record.pods) - 1
    if is_created_for_pod and other_pod_count > 0:
        other_pods = [pod for pod in record.pods if pod != notes[-1].name]
        yield from build_answer(
            "beside", f"{format_count(other_pod_count, 'other pod')}: {join_names(other_pods, MAX_LISTED_NAMES)}"
        )
    if record.usd_per_hour:
        yield from build_answer("costs", f"the node ${record.usd_per_hour:.4f} per hour{describe_record_end(record)}")


def _list_evictions(evidence: Evidence, name: str) -> Iterator[str]:
    for cycle in evidence.cycles:
        for action_result in cycle.entry.results:
            action = action_result.action
            if (
                isinstance(action, EvictPod | DeletePod)
                and f"{action.namespace}/{action.name}" == name
                and action_result.result == "done"
            ):
                deletion_reason = _format_deletion_reason(evidence, action.node)
                yield f"{format_instant(cycle.entry.at)}: from {action.node}: {action.message}{deletion_reason}"


def _format_deletion_reason(evidence: Evidence, node: str) -> str:
    record = find_node_record(evidence.node_records, node)
    return f" ({record.claim}: {record.deleted_why})" if record is not None and record.deleted_why else ""


def _explain_node(evidence: Evidence, kind: ExplainKind, name: str) -> Explanation:
    record = find_node_record(evidence.node_records, name) or NodeRecord(claim="", node=name)
    names = record.list_names() | {(EXPLAIN_KINDS[kind], name)}
    answers = [
        *build_answer("is", describe_node_record(record) if record.claim else ""),
        *build_answer(
            "now",
            *describe_live_state(evidence.live_cluster, "node", record.node),
            *describe_live_state(evidence.live_cluster, "nodeclaim", record.claim),
        ),
        *build_answer("made for", describe_intended_pods(record)),
        *build_answer("why", record.asked_why, *_find_replaced_nodes(evidence, record)),
        *build_answer("bought as", describe_launched_offering(record)),
        *build_answer(*_explain_removal(evidence, record)),
    ]
    cost = compute_cost([record], evidence.journal.now)
    answers += build_answer("cost", format_cost(cost))
    return Explanation(
        kind=kind,
        name=name,
        answers=tuple(answers),
        cost=cost,
        history=build_history(evidence.cycles, frozenset(names)),
    )


def _find_replaced_nodes(evidence: Evidence, record: NodeRecord) -> Iterator[str]:
    """Yield the nodes that *record* replaces, with the command."""
    for _, note in evidence.iterate_notes("Command"):
        if record.claim and record.claim in note.replaced_by:
            replaced_nodes = dict.fromkeys(link.partition("/")[2] for link in note.links if link.startswith("Node/"))
            yield f"in place of {join_names(replaced_nodes, MAX_LISTED_NAMES)}: command {note.name}"
            return


def _explain_removal(evidence: Evidence, record: NodeRecord) -> tuple[str, str, str]:
    """Return why the node is removed, or why it stays: question, answer and command."""
    node_notes = evidence.iterate_notes("Node", record.node) if record.node else ()
    verdicts = [(at, note) for at, note in node_notes if record.asked_at is None or at >= record.asked_at]
    commands = [(at, note) for at, note in verdicts if note.links]
    command_text = ""
    if commands:
        at, note = commands[-1]
        command_text = f"command {note.reason.partition(': ')[0]} is {note.verdict} since {format_instant(at)}"
    if record.deleted_at is not None:
        return "removed because", record.deleted_why, command_text
    if record.terminated_at is not None:
        return "removed because", UNKNOWN_DELETION_REASON, command_text
    verdicts = [(at, note) for at, note in verdicts if not note.links]
    if not verdicts:
        return "why not removed", "", command_text
    last_note = verdicts[-1][1]
    since = verdicts[-1][0]
    for at, note in reversed(verdicts):
        if (note.verdict, note.reason) != (last_note.verdict, last_note.reason):
            break
        since = at
    question = "goes because" if last_note.verdict == "disrupted" else "why not removed"
    return question, f"{last_note.verdict}: {last_note.reason} (so since {format_instant(since)})", command_text
