"""Explanations of NodePools and commands, which concern several nodes."""

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
    format_offering,
)
from cli.planning.unschedulable import group_messages_by_pool
from shared.model.core.formatting import format_count, format_elapsed, format_usd_per_hour, join_names

UNKNOWN_DELETION_REASON = "its NodeClaim was deleted; the journal does not record by which user or program"
"""The reason for a removed node that no function terminated for a reason of its own."""


def explain_node_pool(evidence: Evidence, name: str) -> Explanation:
    """Return everything that is known about the NodePool *name*."""
    records = [record for record in evidence.node_records if record.pool == name]
    current_records = [record for record in records if record.terminated_at is None and record.deleted_at is None]
    cost = compute_cost(records, evidence.journal.now)
    deletion_counts = Counter(
        record.deleted_why or UNKNOWN_DELETION_REASON
        for record in records
        if record.deleted_why or record.terminated_at is not None
    )
    offering_counts = Counter(format_offering(record) for record in records if record.instance_type)
    counts_text = f"{len(records)} in this period, {len(current_records)} still running" if records else ""
    price_text = f"{format_usd_per_hour(cost.usd_per_hour)} for the running nodes" if cost is not None else ""
    answers = (
        *build_answer("current state", *describe_live_state(evidence.live_cluster, "nodepool", name)),
        *build_answer("nodes", counts_text),
        *build_answer("instances", *_render_counts(offering_counts)),
        *build_answer("removed", *_render_counts(deletion_counts)),
        *build_answer("not disrupted", *_render_verdicts(evidence, current_records)),
        *build_answer("rejected pods", *_render_rejections(evidence, name)),
        *build_answer("cost", format_cost(cost), price_text),
    )
    names: ObjectNames = frozenset((("NodePool", name), *(("NodeClaim", record.claim) for record in records)))
    lines = tuple(
        event
        for event in build_history(evidence.cycles, names)
        if event.text.startswith(("NodeClaim ", "NodePool ", "problem ")) or event.is_failed
    )
    return Explanation(kind="nodepool", name=name, answers=answers, cost=cost, history=lines)


def _render_counts(counts: Counter[str]) -> Iterator[str]:
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    yield from (f"{number} x {text}" for text, number in ranked[:MAX_LISTED_NAMES])
    if len(ranked) > MAX_LISTED_NAMES:
        yield f"… and {format_count(len(ranked) - MAX_LISTED_NAMES, 'other')}"


def _render_verdicts(evidence: Evidence, records: Iterable[NodeRecord]) -> Iterator[str]:
    nodes = {record.node for record in records}
    notes = (note for _, note in evidence.iterate_notes("Node") if note.name in nodes and not note.links)
    last_notes = {note.name: note for note in notes}
    yield from _render_counts(Counter(f"{note.verdict}: {note.reason}" for note in last_notes.values()))


def _render_rejections(evidence: Evidence, name: str) -> Iterator[str]:
    """Yield why pods that are still unschedulable do not fit the NodePool."""
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
    (began, first_note), (ended, last_note) = notes[0], notes[-1]
    node_names = [link.partition("/")[2] for link in first_note.links]
    removed_records, new_records = (
        tuple(dict.fromkeys(record for name in names if (record := find_node_record(evidence.node_records, name))))
        for names in (node_names, first_note.replaced_by)
    )
    replacement_texts = (f"{describe_node_record(new)}: {describe_launched_offering(new)}" for new in new_records)
    answers = (
        *build_answer(
            "state",
            f"{last_note.verdict} since {format_instant(ended)}, {format_elapsed(ended - began)} after the proposal",
        ),
        *build_answer(
            "reason",
            first_note.reason,
            _remove_summary(last_note.reason, first_note.reason) if last_note is not first_note else "",
        ),
        *build_answer(
            "removes", *map(describe_node_record, removed_records), "" if removed_records else join_names(node_names)
        ),
        *build_answer("launches", *replacement_texts),
        *build_answer("saves", format_usd_per_hour(last_note.usd_per_hour) if last_note.usd_per_hour else ""),
        *build_answer("progress", ", ".join(f"{note.verdict} {format_instant(at)}" for at, note in notes)),
    )
    records = (*removed_records, *new_records)
    names = frozenset((("Command", name),)).union(*(record.list_names() for record in records))
    command_cycles = [cycle for cycle in evidence.cycles if began <= cycle.entry.at <= ended]
    lines = (
        msgspec.structs.replace(event, reason=_remove_summary(event.reason, first_note.reason))
        for event in build_history(command_cycles, names)
    )
    return Explanation(kind="command", name=name, answers=answers, history=tuple(lines))


def _remove_summary(words: str, summary: str) -> str:
    """Return *words* without the summary that every step of a command repeats."""
    return words.removesuffix(f"; {summary}")
