"""Explanations of NodePools and commands, which consist of several machines."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from cli.explain.evidence import Evidence
from cli.explain.history import MAX_LISTED_NAMES, ObjectNames, build_history
from cli.explain.live_state import describe_live_state
from cli.explain.node_records import NodeRecord, find_node_record
from cli.explain.phrases import (
    Explanation,
    build_answer,
    compute_cost,
    describe_launched_offering,
    describe_node_record,
    format_cost,
    format_instant,
)
from cli.planning.unschedulable import group_messages_by_pool
from cli.terminal.text import format_clock
from shared.model.core.formatting import format_count, join_names

UNKNOWN_DELETION_REASON = "its NodeClaim was deleted, by whom the journal does not say"
"""The reason for a removed machine that no function terminated for a reason of its own."""


def explain_node_pool(evidence: Evidence, name: str) -> Explanation:
    """Return everything that is known about the NodePool *name*."""
    records = [record for record in evidence.node_records if record.pool == name]
    running_nodes = [record for record in records if record.terminated_at is None and record.deleted_at is None]
    cost = compute_cost(records, evidence.journal.now)
    deletion_counts = Counter(
        record.deleted_why or UNKNOWN_DELETION_REASON
        for record in records
        if record.deleted_why or record.terminated_at is not None
    )
    answers = [
        *build_answer("now", *describe_live_state(evidence.live_cluster, "nodepool", name)),
        *build_answer("machines", f"{len(records)} known, {len(running_nodes)} there at the end" if records else ""),
        *build_answer(
            "bought as",
            *_render_counts(Counter(_format_offering(record) for record in records if record.instance_type)),
        ),
        *build_answer("removed because", *_render_counts(deletion_counts)),
        *build_answer("why not removed", *_render_verdicts(evidence, running_nodes)),
        *build_answer("turned down", *_render_rejections(evidence, name)),
        *build_answer(
            "cost", format_cost(cost), f"${cost.usd_per_hour:.4f} per hour at the end" if cost is not None else ""
        ),
    ]
    names: ObjectNames = frozenset((("NodePool", name), *(("NodeClaim", record.claim) for record in records)))
    lines = tuple(
        event
        for event in build_history(evidence.cycles, names)
        if event.text.startswith(("NodeClaim ", "NodePool ", "problem ")) or event.is_failed
    )
    return Explanation(kind="nodepool", name=name, answers=tuple(answers), cost=cost, history=lines)


def _format_offering(record: NodeRecord) -> str:
    return f"{record.instance_type}, {record.capacity_type}, in {record.zone}"


def _render_counts(counts: Counter[str]) -> Iterator[str]:
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    yield from (f"{number} x {text}" for text, number in ranked[:MAX_LISTED_NAMES])
    if len(ranked) > MAX_LISTED_NAMES:
        yield f"… and {format_count(len(ranked) - MAX_LISTED_NAMES, 'other')}"


def _render_verdicts(evidence: Evidence, records: Iterable[NodeRecord]) -> Iterator[str]:
    nodes = {record.node for record in records}
    last_notes = {
        note.name: note for _, note in evidence.iterate_notes("Node") if note.name in nodes and not note.links
    }
    yield from _render_counts(Counter(f"{note.verdict}: {note.reason}" for note in last_notes.values()))


def _render_rejections(evidence: Evidence, name: str) -> Iterator[str]:
    """Yield why pods that are still pending do not fit the NodePool."""
    last_notes = {note.name: note for _, note in evidence.iterate_notes("Pod")}
    rejection_counts = Counter(
        words
        for note in last_notes.values()
        if "/" not in note.verdict
        for pools, words in group_messages_by_pool(note.reason)
        if name in pools
    )
    yield from _render_counts(rejection_counts)


def explain_command(evidence: Evidence, name: str) -> Explanation:
    """Return everything that is known about the command *name*."""
    notes = list(evidence.iterate_notes("Command", name))
    began, first_note = notes[0]
    ended, last_note = notes[-1]
    node_names = [link.partition("/")[2] for link in first_note.links]
    replaced_nodes = list(
        dict.fromkeys(
            record for record in (find_node_record(evidence.node_records, name) for name in node_names) if record
        )
    )
    new_nodes = [
        record
        for record in (find_node_record(evidence.node_records, claim) for claim in first_note.replaced_by)
        if record
    ]
    answers = [
        *build_answer(
            "is",
            f"{last_note.verdict} since {format_instant(ended)}, {format_clock(ended - began)} after it was proposed",
        ),
        *build_answer(
            "why",
            first_note.reason,
            _remove_summary(last_note.reason, first_note.reason) if last_note is not first_note else "",
        ),
        *build_answer(
            "nodes that go",
            *(describe_node_record(record) for record in replaced_nodes),
            "" if replaced_nodes else join_names(node_names, None),
        ),
        *build_answer(
            "in their place",
            *(f"{describe_node_record(record)}: {describe_launched_offering(record)}" for record in new_nodes),
        ),
        *build_answer("saves", f"${last_note.usd_per_hour:.4f} per hour" if last_note.usd_per_hour else ""),
        *build_answer("steps", ", ".join(f"{note.verdict} {format_instant(at)}" for at, note in notes)),
    ]
    names = frozenset((("Command", name),)).union(*(record.list_names() for record in (*replaced_nodes, *new_nodes)))
    command_cycles = [cycle for cycle in evidence.cycles if began <= cycle.entry.at <= ended]
    lines = (
        msgspec.structs.replace(event, reason=_remove_summary(event.reason, first_note.reason))
        for event in build_history(command_cycles, names)
    )
    return Explanation(kind="command", name=name, answers=tuple(answers), history=tuple(lines))


def _remove_summary(words: str, summary: str) -> str:
    """Return *words* without the summary that every step of a command repeats."""
    return words.removesuffix(f"; {summary}")
