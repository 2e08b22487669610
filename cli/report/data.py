"""The data of a report, read from the journal: fleet, cost over time, decisions, blocked nodes and pods."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime

import msgspec

from cli.explain.evidence import Evidence
from cli.report.blocked import BlockedGroup, group_blocked_nodes, group_blocked_pods, list_recent_problems
from cli.report.decisions import ReportedDecision, list_decisions
from cli.report.fleet import (
    PROVISION_INTERVAL,
    FleetChange,
    FleetSample,
    NodePoolRow,
    ReportedNode,
    build_node_rows,
    build_pool_rows,
    choose_bar_seconds,
    complete_node_records,
    compute_changes,
    compute_cost_usd,
    compute_fleet_samples,
    count_instance_types,
    select_current_records,
)
from shared.decide.disruption.pauses import SUCCESSFUL_PHASES
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.state.cluster_state import ClusterState


class PendingPodsSample(msgspec.Struct, frozen=True, kw_only=True):
    """The number of pods without a node from a point in time on."""

    at: datetime
    pods: float
    without_place: float


class FleetReport(msgspec.Struct, frozen=True, kw_only=True):
    """All data of a report."""

    source: str
    began: datetime
    ended: datetime
    is_live: bool
    """Whether a live cluster was read; otherwise the last snapshot of the journal is used, if there is one."""
    unreadable: tuple[str, ...]
    cycles: dict[str, int]
    """Number of cycles by function."""
    failures: tuple["CycleFailure", ...]
    fleet: tuple[FleetSample, ...]
    waiting: tuple[PendingPodsSample, ...]
    changes: tuple[FleetChange, ...]
    change_seconds: int
    """Length of one of *changes*."""
    usd: float
    """Cost of instances in the covered time."""
    saved_usd_per_hour: float
    """Savings of all completed commands."""
    pools: tuple[NodePoolRow, ...]
    """Most expensive first."""
    types: tuple["InstanceTypeRow", ...]
    """At the end of the covered time, most expensive first."""
    nodes: tuple[ReportedNode, ...]
    """At the end of the covered time, by pool and name."""
    decisions: tuple[ReportedDecision, ...]
    """Newest first."""
    blocked_nodes: tuple[BlockedGroup, ...]
    blocked_pods: tuple[BlockedGroup, ...]
    problems: tuple[Problem, ...]
    """Problems at the end of the covered time."""


class CycleFailure(msgspec.Struct, frozen=True, kw_only=True):
    """An error that cycles failed with."""

    error: str
    times: int
    last: datetime


class InstanceTypeRow(msgspec.Struct, frozen=True, kw_only=True):
    """Instances of one instance type and capacity type."""

    name: str
    nodes: int
    usd_per_hour: float


def build_report(evidence: Evidence, first: ClusterSnapshot | None, *, is_live: bool) -> FleetReport:
    """Build the report; *first* is the earliest snapshot of the journal, None if there is none."""
    ended = evidence.journal.now
    began = evidence.cycles[0].entry.at if evidence.cycles else ended
    cluster_states = [ClusterState(cluster) for cluster in (first, evidence.live_cluster) if cluster is not None]
    records = complete_node_records(evidence.node_records, cluster_states)
    current_records = select_current_records(records, evidence, is_live=is_live)
    bar_seconds = choose_bar_seconds(ended - began)
    return FleetReport(
        source=evidence.journal.source,
        began=began,
        ended=ended,
        is_live=is_live,
        unreadable=evidence.journal.messages,
        cycles=dict(sorted(Counter(cycle.entry.function for cycle in evidence.cycles).items())),
        failures=tuple(_iterate_failures(evidence)),
        fleet=tuple(compute_fleet_samples(evidence, records)),
        waiting=tuple(_iterate_pending_pods(evidence)),
        changes=tuple(compute_changes(records, began, ended, bar_seconds)),
        change_seconds=bar_seconds,
        usd=compute_cost_usd(records, began, ended),
        saved_usd_per_hour=sum(_compute_savings_by_command(evidence).values()),
        pools=build_pool_rows(records, current_records, began, ended),
        types=tuple(
            InstanceTypeRow(name=name, nodes=n, usd_per_hour=price)
            for name, n, price in count_instance_types(current_records)
        ),
        nodes=build_node_rows(evidence, current_records),
        decisions=list_decisions(evidence.cycles),
        blocked_nodes=group_blocked_nodes(evidence, current_records),
        blocked_pods=group_blocked_pods(evidence, is_live=is_live),
        problems=list_recent_problems(evidence),
    )


def _iterate_failures(evidence: Evidence) -> Iterator[CycleFailure]:
    times_by_error: dict[str, list[datetime]] = defaultdict(list)
    for cycle in evidence.cycles:
        if cycle.entry.error:
            times_by_error[f"{cycle.entry.function}: {cycle.entry.error}"].append(cycle.entry.at)
    for error, times in sorted(times_by_error.items(), key=lambda item: (-len(item[1]), item[0])):
        yield CycleFailure(error=error, times=len(times), last=max(times))


def _iterate_pending_pods(evidence: Evidence) -> Iterator[PendingPodsSample]:
    """Yield the number of pods that provision planned for; a gap between its entries means zero pending pods."""
    last: datetime | None = None
    for cycle in evidence.cycles:
        entry, counts = cycle.entry, cycle.entry.counts
        if entry.function != "provision" or "PendingPods" not in counts:
            continue
        if last is not None and entry.at - last > 2 * PROVISION_INTERVAL:
            yield PendingPodsSample(at=last + PROVISION_INTERVAL, pods=0.0, without_place=0.0)
        unschedulable_pods = counts.get("UnschedulablePods", 0.0)
        yield PendingPodsSample(at=entry.at, pods=counts["PendingPods"], without_place=unschedulable_pods)
        last = entry.at
    if last is not None and evidence.journal.now - last > 2 * PROVISION_INTERVAL:
        yield PendingPodsSample(at=last + PROVISION_INTERVAL, pods=0.0, without_place=0.0)


def _compute_savings_by_command(evidence: Evidence) -> dict[str, float]:
    """Return the USD per hour that each completed command saves, by command id."""
    return {
        note.name: note.usd_per_hour
        for _, note in evidence.iterate_notes("Command")
        if note.verdict in SUCCESSFUL_PHASES
    }
