"""Frame of every cycle: its lease, its journal entry, its metrics and its faults."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.apply.executor import apply_actions
from shared.cycles.setup.options_from_settings import build_money_policy
from shared.cycles.setup.shared_cache import store_large_lists
from shared.decide.disruption.fleet_summary import build_fleet_summary
from shared.decide.prometheus.compute_metrics import SNAPSHOT_AGE, compute_ages, compute_metrics
from shared.errors import Fault, Throttled
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.model.core.metrics.metric_samples import MetricSamples
from shared.model.decisions.action import Action, FollowUp, Function
from shared.model.decisions.action_outcome import Outcome
from shared.ports.storage import FencingToken
from shared.ports.world import World
from shared.report.event_bus.send_events import send_entry_events
from shared.report.journal.decision_record import (
    DecisionInputs,
    DecisionSummary,
    should_store_record,
    write_record,
)
from shared.report.journal.journal import ActionResult, DecisionNote, JournalEntry, build_cycle_id, record_entry
from shared.report.journal.replay_inputs import redact_action
from shared.report.journal.snapshot_digest import compute_encoded_digest, encode_snapshot
from shared.report.log import add_log_fields, log
from shared.report.metrics.api_calls import count_calls_since, find_call_overrun, get_call_counts
from shared.report.metrics.cycle_metrics import compute_cluster_metrics, count_action_results, is_fleet_summary_due
from shared.report.metrics.emf import emit_metrics
from shared.report.remote_write.send_metrics import is_write_due, write_metrics
from shared.state.cluster_state import ClusterState
from shared.store.catalog import build_catalog_key
from shared.store.lease import hold_lease
from shared.store.shared_cache.code_digest import compute_code_digest


def emit_fleet_summary(cluster: ClusterSnapshot, world: World) -> None:
    """Write a log line for each group of nodes."""
    for line in build_fleet_summary(ClusterState(cluster), world.settings.cluster_name, world.settings.cost_label):
        log("INFO", "fleet summary", world, msgspec.to_builtins(line))


PLANNER_LEASE: Final = "planner"
"""The lease of the functions that decide the number of nodes: they must not decide on two snapshots at once."""
LIFECYCLE_LEASE: Final = "keeper"
"""The lease of lifecycle: two concurrent drains would send the same evictions twice."""
CATALOG_LEASE: Final = "resolver"
"""The lease of catalog, which can run longer than the lease: two concurrent catalogs waste work but do no harm."""


LEASE_RETRY_DELAY: Final = timedelta(seconds=5)
FAULT_RETRY_DELAY: Final = timedelta(seconds=10)
"""Delay of the next cycle after one that could not observe or do something."""
TICK_FUNCTIONS: Final[tuple[Function, ...]] = ("disrupt", "lifecycle", "provision")


class CycleReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one cycle observed and did."""

    cluster: ClusterSnapshot | None = None
    outcomes: tuple[Outcome, ...] = ()
    counts: dict[str, float] = {}
    by_zone: tuple[tuple[str, int], ...] = ()
    """Pending pods by zone, as in `Placement`."""
    notes: tuple[DecisionNote, ...] = ()
    problems: tuple[Problem, ...] = ()
    unsettled: tuple[int, ...] = ()
    """Indices of the messages for which an action failed."""
    quiet: bool = False
    """Whether the cycle needs no journal entry, because nothing happened."""
    inputs: DecisionInputs | None = None
    """The inputs of the decision in addition to *cluster*; None: the decision cannot be replayed."""
    before: ClusterSnapshot | None = None
    """The snapshot of the decision, where *cluster* is the state after it."""
    summary: DecisionSummary | None = None


def run_with_lease(
    lease: str, function: Function, world: World, cycle: Callable[[FencingToken], CycleReport]
) -> CycleReport:
    """Run *cycle* while holding *lease*; if another function holds it, requeue after a short delay."""
    with hold_lease(world, lease) as fence:
        if fence is not None:
            return cycle(fence)
    follow_ups: tuple[Action, ...] = (
        FollowUp(function=function, after=LEASE_RETRY_DELAY, message=f"another run holds the lease {lease}"),
    )
    return CycleReport(outcomes=apply_actions(follow_ups, world))


def run_and_report(function: Function, world: World, trigger: str, cycle: Callable[[], CycleReport]) -> CycleReport:
    """Run *cycle* and report it, also if it fails.

    All log lines of the cycle have the keys `function`, `trigger` and `cycle`; its segment of the trace has the
    annotations `function`, `cycle` and `cluster`.

    Raises:
        Fault: raised by the cycle; nothing was concluded from what could not be read.
    """
    started_at = world.clock()
    cycle_id = build_cycle_id(function, started_at, world.name)
    annotations = {"function": function, "cycle": cycle_id, "cluster": world.settings.cluster_name}
    with add_log_fields(function=function, trigger=trigger, cycle=cycle_id), world.trace(function, **annotations):
        return _run_and_report(function, world, trigger, started_at, cycle)


def _run_and_report(
    function: Function, world: World, trigger: str, started_at: datetime, cycle: Callable[[], CycleReport]
) -> CycleReport:
    calls_before = get_call_counts(world)
    try:
        report = cycle()
    except Fault as fault:
        error, calls = f"{type(fault).__name__}: {fault}", count_calls_since(calls_before, world)
        record_entry(
            JournalEntry(function=function, trigger=trigger, at=started_at, cluster="", error=error, calls=calls), world
        )
        emit_metrics({"CycleFailures": 1.0, "ThrottledCalls": float(isinstance(fault, Throttled))}, world)
        if function in TICK_FUNCTIONS:
            # SQS delivers a message again only after several timeouts of the function, and the next tick is a minute
            # away.
            apply_actions(
                (FollowUp(function=function, after=FAULT_RETRY_DELAY, message=f"failed: {type(fault).__name__}"),),
                world,
            )
        raise
    if not report.quiet:
        with world.trace("report"):
            _record_report(report, function, world, trigger, started_at, calls_before)
    store_large_lists(world)
    return report


def _record_report(
    report: CycleReport,
    function: Function,
    world: World,
    trigger: str,
    started_at: datetime,
    calls_before: Mapping[str, int],
) -> None:
    """Write the journal entry, the metrics and the fleet summary of a cycle."""
    calls = count_calls_since(calls_before, world)
    problems = {*report.problems, *find_call_overrun(function, calls, len(report.outcomes))}
    results = tuple(
        ActionResult(action=redact_action(outcome.action), result=outcome.result, message=outcome.message)
        for outcome in report.outcomes
    )
    entry = JournalEntry(
        function=function,
        trigger=trigger,
        at=started_at,
        cluster="",
        counts=report.counts | compute_cluster_metrics(function, trigger, report.cluster, results),
        notes=report.notes,
        problems=tuple(sorted({*problems, *(report.cluster.problems if report.cluster is not None else ())})),
        results=results,
        calls=calls,
    )
    entry, snapshot_error = _with_snapshot(entry, report, world)
    is_recorded = record_entry(entry, world, snapshot_error)
    emit_metrics(entry.counts | count_action_results(entry.results, entry.problems), world, report.by_zone)
    send_entry_events(entry if is_recorded else None, world)
    if report.cluster is not None and is_write_due(function, report.cluster.taken_at, world):
        write_metrics(partial(_compute_written_metrics, report.cluster, world), report.cluster.taken_at, world)
    if report.cluster is not None and is_fleet_summary_due(function, trigger, report.cluster):
        emit_fleet_summary(report.cluster, world)


def _compute_written_metrics(cluster: ClusterSnapshot, world: World) -> MetricSamples:
    """Return the metrics that `remote-write-metrics` includes; the snapshot is always new, so its age is left out."""
    ages = compute_ages(cluster, cluster.taken_at)
    metrics = compute_metrics(
        ClusterState(cluster), build_money_policy(world.settings), world.settings.remote_write_metrics
    )
    return {**{name: ages[name] for name in ages if name != SNAPSHOT_AGE}, **metrics}


def _with_snapshot(entry: JournalEntry, report: CycleReport, world: World) -> tuple[JournalEntry, str]:
    """Return *entry* with the digest and key of its snapshot, and the error if the snapshot could not be stored.

    With 20,000 pods the snapshot is 50 MB of JSON: it is only encoded for an entry that is stored.
    """
    cluster = report.before or report.cluster
    if cluster is None or not entry.is_significant:
        return entry, ""
    body = encode_snapshot(cluster)
    entry = replace(entry, cluster=compute_encoded_digest(body, cluster))
    is_wanted = should_store_record(world, (outcome.action for outcome in report.outcomes), report.notes)
    if report.inputs is None or report.summary is None or not is_wanted:
        return entry, ""
    key, snapshot_error = write_record(body, _get_catalog_key(cluster), report.inputs, report.summary, world)
    return (replace(entry, snapshot=key, code=compute_code_digest()), "") if key else (entry, snapshot_error)


def _get_catalog_key(cluster: ClusterSnapshot) -> str:
    """Return the bucket key of the cluster's catalog, "" if there is no catalog or it has no time."""
    catalog = cluster.catalog
    return build_catalog_key(catalog) if catalog is not None and (catalog.built_at or catalog.priced_at) else ""
