"""The data of a report, read from the journal: fleet, cost over time, decisions, blocked nodes and pods."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from cli.explain.evidence import Evidence
from cli.report import fleet as fleet_data
from cli.report.blocked import BlockedGroup, group_blocked_nodes, group_blocked_pods, list_recent_problems
from cli.report.decisions import ReportedDecision, list_decisions
from shared.decide.disruption.pauses import SUCCESSFUL_PHASES
from shared.decide.node_class.canary_status import CanarySummary, list_canaries
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.model.kubernetes.pod_classes import is_provisionable
from shared.report.costs.cost_ledger import ONE_HOUR, CommitmentHour
from shared.state.cluster_state import ClusterState
from shared.state.schedule_status import ScheduleStatus, list_schedule_statuses


class PendingPodsSample(msgspec.Struct, frozen=True, kw_only=True):
    """The number of pending pods from a point in time on, without pods that still run on draining nodes."""

    at: datetime
    pods: float
    without_place: float = msgspec.field(name="unschedulable")
    """The unschedulable pods among them."""


class FleetReport(msgspec.Struct, frozen=True, kw_only=True):
    """All data of a report."""

    source: str
    cluster: str
    """Its name; "" if it is unknown."""
    began: datetime
    ended: datetime
    is_live: bool = msgspec.field(name="live")
    """Whether a live cluster was read; otherwise the last snapshot of the journal is used, if there is one."""
    unreadable: tuple[str, ...]
    cycles: dict[str, int]
    """Number of cycles by function."""
    failures: tuple["CycleFailure", ...]
    fleet: tuple[fleet_data.FleetSample, ...]
    waiting: tuple[PendingPodsSample, ...] = msgspec.field(name="pending_pods")
    changes: tuple[fleet_data.FleetChange, ...]
    change_seconds: int
    """Length of one of *changes*."""
    usd: float
    """Cost of instances in the covered time."""
    saved_usd_per_hour: float = msgspec.field(name="savings_usd_per_hour")
    """Savings of all completed commands."""
    pools: tuple[fleet_data.NodePoolRow, ...] = msgspec.field(name="node_pools")
    """Most expensive first."""
    types: tuple[fleet_data.InstanceTypeRow, ...] = msgspec.field(name="instance_types")
    """At the end of the covered time, most expensive first."""
    nodes: tuple[fleet_data.ReportedNode, ...]
    """At the end of the covered time, by pool and name."""
    decisions: tuple[ReportedDecision, ...]
    """Newest first."""
    blocked_nodes: tuple[BlockedGroup, ...]
    blocked_pods: tuple[BlockedGroup, ...]
    problems: tuple[Problem, ...]
    """Problems at the end of the covered time."""
    schedules: tuple[ScheduleStatus, ...] = ()
    canaries: tuple[CanarySummary, ...] = ()
    """At the time of the last snapshot."""
    commitments: tuple[CommitmentHour, ...] = msgspec.field(default=(), name="commitment_hours")
    """What commitments cover in the hours of the covered time; empty if the setting `commitments` is off."""


class CycleFailure(msgspec.Struct, frozen=True, kw_only=True):
    """An error that cycles failed with."""

    error: str
    times: int
    last: datetime


def build_report(
    evidence: Evidence,
    first: ClusterSnapshot | None,
    *,
    cluster_name: str,
    is_live: bool,
    commitment_hours: Iterable[CommitmentHour] = (),
) -> FleetReport:
    """Build the report; *first* is the earliest snapshot of the journal, None if there is none.

    *commitment_hours* are those of the cost reports.
    """
    ended = evidence.journal.now
    began = evidence.cycles[0].entry.at if evidence.cycles else ended
    cluster_states = [ClusterState(cluster) for cluster in (first, evidence.live_cluster) if cluster is not None]
    records = fleet_data.complete_node_records(evidence.node_records, cluster_states)
    current_records = fleet_data.select_current_records(records, evidence, is_live=is_live)
    bar_seconds = fleet_data.choose_bar_seconds(ended - began)
    blocked_pods = group_blocked_pods(evidence, is_live=is_live)
    return FleetReport(
        source=evidence.journal.source,
        cluster=cluster_name,
        began=began,
        ended=ended,
        is_live=is_live,
        unreadable=evidence.journal.messages,
        cycles=dict(sorted(Counter(cycle.entry.function for cycle in evidence.cycles).items())),
        failures=tuple(_iterate_failures(evidence)),
        fleet=tuple(fleet_data.compute_fleet_samples(evidence, records, current_records)),
        waiting=tuple(_iterate_pending_pods(evidence, blocked_pods, is_live=is_live)),
        changes=tuple(fleet_data.compute_changes(records, began, ended, bar_seconds)),
        change_seconds=bar_seconds,
        usd=fleet_data.compute_cost_usd(records, began, ended),
        saved_usd_per_hour=sum(_compute_savings_by_command(evidence).values()),
        pools=fleet_data.build_pool_rows(records, current_records, began, ended),
        types=fleet_data.count_instance_types(current_records),
        nodes=fleet_data.build_node_rows(evidence, current_records),
        decisions=list_decisions(evidence.cycles),
        blocked_nodes=group_blocked_nodes(evidence, current_records),
        blocked_pods=blocked_pods,
        problems=list_recent_problems(evidence),
        schedules=() if evidence.live_cluster is None else list_schedule_statuses(evidence.live_cluster),
        canaries=() if evidence.live_cluster is None else list_canaries(evidence.live_cluster),
        commitments=tuple(hour for hour in commitment_hours if began <= hour.hour + ONE_HOUR and hour.hour < ended),
    )


def _iterate_failures(evidence: Evidence) -> Iterator[CycleFailure]:
    times_by_error: dict[str, list[datetime]] = defaultdict(list)
    for cycle in evidence.cycles:
        if cycle.entry.error:
            times_by_error[f"{cycle.entry.function}: {cycle.entry.error}"].append(cycle.entry.at)
    for error, times in sorted(times_by_error.items(), key=lambda item: (-len(item[1]), item[0])):
        yield CycleFailure(error=error, times=len(times), last=max(times))


def _iterate_pending_pods(
    evidence: Evidence, blocked_pods: Iterable[BlockedGroup], *, is_live: bool
) -> Iterator[PendingPodsSample]:
    """Yield the number of pending pods that provision planned for; a gap between its entries means zero pending pods.

    With a live cluster, the last sample is that cluster.
    """
    last: datetime | None = None
    for cycle in evidence.cycles:
        entry, counts = cycle.entry, cycle.entry.counts
        if entry.function != "provision" or "PendingPods" not in counts:
            continue
        if last is not None and entry.at - last > 2 * fleet_data.PROVISION_INTERVAL:
            yield PendingPodsSample(at=last + fleet_data.PROVISION_INTERVAL, pods=0.0, without_place=0.0)
        pods = counts["PendingPods"] - counts.get("ReschedulablePods", 0.0)
        yield PendingPodsSample(at=entry.at, pods=pods, without_place=min(counts.get("UnschedulablePods", 0.0), pods))
        last = entry.at
    if is_live and evidence.live_cluster is not None:
        pending_count = sum(is_provisionable(pod) for pod in evidence.live_cluster.pods)
        blocked_count = sum(len(group.names) for group in blocked_pods)
        yield PendingPodsSample(at=evidence.journal.now, pods=float(pending_count), without_place=float(blocked_count))
    elif last is not None and evidence.journal.now - last > 2 * fleet_data.PROVISION_INTERVAL:
        yield PendingPodsSample(at=last + fleet_data.PROVISION_INTERVAL, pods=0.0, without_place=0.0)


def _compute_savings_by_command(evidence: Evidence) -> dict[str, float]:
    """Return the USD per hour that each completed command saves, by command id."""
    return {
        note.name: note.usd_per_hour
        for _, note in evidence.iterate_notes("Command")
        if note.verdict in SUCCESSFUL_PHASES
    }
