"""What is blocked and why: unschedulable pods, nodes that cannot be removed, excluded objects; grouped by reason."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

import msgspec

from cli.explain.evidence import Evidence
from cli.explain.node_records import NodeRecord
from cli.planning.unschedulable import group_messages_by_pool
from cli.report.fleet import map_last_verdicts
from shared.model.core.metadata import Problem
from shared.model.kubernetes.pod_classes import is_provisionable

MAX_VERDICT_AGE: Final = timedelta(minutes=5)
"""Maximum age of a pod's last verdict.

Provision plans pending pods every minute: a pod with an older verdict is scheduled.
"""
MAX_PROBLEM_AGE: Final = timedelta(hours=1)


class BlockedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes or pods with the same verdict and reasons."""

    verdict: str = msgspec.field(name="status")
    reasons: tuple[str, ...] = msgspec.field(name="reasons")
    names: tuple[str, ...]
    """Sorted."""


def group_blocked_nodes(evidence: Evidence, records: Iterable[NodeRecord]) -> tuple[BlockedGroup, ...]:
    """Return the reasons why *records* are kept, those of most nodes first."""
    names = {record.node for record in records if record.deleted_at is None}
    names_by_verdict: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, note in map_last_verdicts(evidence).items():
        if name in names and note.verdict != "disrupted":
            names_by_verdict[note.verdict, note.reason].append(name)
    return _build_groups(
        (verdict, (reason,) if reason else (), node_names) for (verdict, reason), node_names in names_by_verdict.items()
    )


def group_blocked_pods(evidence: Evidence, *, is_live: bool) -> tuple[BlockedGroup, ...]:
    """Return the reasons why pending pods are unschedulable, those of most pods first."""
    live_pods = evidence.live_cluster.pods if evidence.live_cluster is not None else ()
    pending_pods = {pod.name for pod in live_pods if is_provisionable(pod)}
    last = {note.name: (at, note) for at, note in evidence.iterate_notes("Pod")}
    pods_by_verdict: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for name, (at, note) in last.items():
        if "/" not in note.verdict and (
            name in pending_pods if is_live else evidence.journal.now - at <= MAX_VERDICT_AGE
        ):
            pods_by_verdict[note.verdict, tuple(_split_reasons(note.reason, name.partition("/")[2]))].append(name)
    return _build_groups((verdict, reasons, pod_names) for (verdict, reasons), pod_names in pods_by_verdict.items())


def _split_reasons(message: str, pod_name: str) -> Iterator[str]:
    """Yield the reasons of each NodePool.

    The pod's own name, which is also part of its volume claims' names, is masked so that equal reasons can be grouped.
    """
    text = re.sub(rf"(?<![a-z0-9]){re.escape(pod_name)}(?![a-z0-9])", "<pod>", message) if pod_name else message
    for pools, words in group_messages_by_pool(text):
        yield f"NodePool {', '.join(pools)}: {words}" if pools else words


def _build_groups(verdict_rows: Iterable[tuple[str, tuple[str, ...], list[str]]]) -> tuple[BlockedGroup, ...]:
    groups = (
        BlockedGroup(verdict=verdict, reasons=reasons, names=tuple(sorted(names)))
        for verdict, reasons, names in verdict_rows
    )
    return tuple(sorted(groups, key=lambda group: (-len(group.names), group.verdict, group.reasons)))


def list_recent_problems(evidence: Evidence) -> tuple[Problem, ...]:
    """Return the problems found by the last cycle of each function, if it is not older than `MAX_PROBLEM_AGE`."""
    last_entry_by_function = {cycle.entry.function: cycle.entry for cycle in evidence.cycles}
    recent = (entry for entry in last_entry_by_function.values() if evidence.journal.now - entry.at <= MAX_PROBLEM_AGE)
    problem_by_key = {
        (problem.kind, problem.name, problem.message): problem for entry in recent for problem in entry.problems
    }
    return tuple(problem_by_key[key] for key in sorted(problem_by_key))
