"""The lifecycle cycle: advances each NodeClaim and node by its next steps."""

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from shared.cycles.setup.decision_driver import DecisionDriver
from shared.cycles.setup.run_cycle import LIFECYCLE_LEASE, CycleReport, run_and_report, run_with_lease
from shared.decide.common.events import sort_events_last
from shared.decide.launch.fleets.launch_template import plan_template_deletions
from shared.decide.launch.fleets.unavailable_offerings import build_capacity_error_record
from shared.decide.lifecycle import reconcile
from shared.decide.lifecycle.node_claim.garbage_collection import without_spared_instances
from shared.decide.lifecycle.scheduled_scaling import decide_scheduled_scaling
from shared.decide.lifecycle.status.node_overlay import describe_node_overlays
from shared.decide.lifecycle.termination.eviction_results import describe_evictions
from shared.decide.lifecycle.termination.node_class import find_releasable_node_classes, is_finalizer_removal
from shared.decide.provisioning.nominated_node_names import NodeReservations, plan_nominations
from shared.decide.scheduling.templates.node_overlays import evaluate_overlays
from shared.decide.scheduling.templates.node_pool_hash import compute_node_pool_hash
from shared.model.cluster import ClusterSnapshot
from shared.model.decisions import decision_requests as requests
from shared.model.decisions.action import Action, FollowUp, MarkUnavailable
from shared.model.decisions.action_outcome import OUT_OF_TIME_MESSAGE, Outcome
from shared.model.decisions.decision_answers import CleanupDue, ExistingTemplates, SparedInstances
from shared.model.decisions.decision_requests import DecisionProcess, PerformActions
from shared.ports.storage import FencingToken
from shared.ports.world import World
from shared.report.journal.decision_record import DecisionInputs, DecisionSummary, build_inputs
from shared.report.journal.replay_inputs import strip_launch_groups
from shared.state.cluster_state import ClusterState
from shared.state.nominations import find_replacement_claims
from shared.take.kubernetes.optional_resources import SCALED_LISTS
from shared.take.snapshot import SnapshotRequest, take_snapshot

LIFECYCLE_REQUEST: Final = SnapshotRequest(instances=True, launch_groups=True, zonal_shifts=True)


def run_lifecycle(world: World, trigger: str) -> CycleReport:
    """Advance every NodeClaim and node by the steps that are possible now."""

    def run_cycle(fence: FencingToken) -> CycleReport:
        is_tick = trigger == "schedule"
        request = LIFECYCLE_REQUEST
        if world.settings.scheduled_scaling == "on":
            request = replace(request, lists=(*request.lists, *SCALED_LISTS))
        cluster = take_snapshot(world, replace(request, statuses=is_tick))
        inputs = replace(build_inputs(world.settings), launch_groups=strip_launch_groups(cluster.launch_groups))
        return DecisionDriver(world, fence, cluster, is_tick=is_tick).run(advance_lifecycle(cluster, inputs), inputs)

    return run_and_report(
        "lifecycle", world, trigger, lambda: run_with_lease(LIFECYCLE_LEASE, "lifecycle", world, run_cycle)
    )


def advance_lifecycle(cluster: ClusterSnapshot, inputs: DecisionInputs) -> DecisionProcess[CycleReport]:
    """Perform the possible steps of every claim and node."""
    cluster_state, settings = ClusterState(cluster), inputs.decode_settings()
    node_reservations = plan_nominations(cluster_state) if settings.pod_nominations == "Enabled" else NodeReservations()
    actions = reconcile.decide_lifecycle(
        cluster_state,
        hashes={pool.name: compute_node_pool_hash(pool) for pool in cluster.node_pools},
        cluster_name=settings.cluster_name,
        closed_nodes=node_reservations.closed_nodes,
        nominations_by_node=node_reservations.nominations_by_node,
        replacement_claim_by_pod=find_replacement_claims(cluster_state),
    )
    spared_instances: SparedInstances = yield requests.FindSparedInstances(actions=actions)
    actions = without_spared_instances(actions, cluster, spared_instances.instance_ids)
    departing_classes = find_releasable_node_classes(cluster)
    cleanup_actions: tuple[Action, ...] | None = ()
    if departing_classes:
        cleanup_actions = yield from _find_unused_templates(cluster, settings.cluster_name, departing_classes)
    cleanup_outcomes: tuple[Outcome, ...] = yield PerformActions(actions=cleanup_actions or (), is_last=True)
    if cleanup_actions is None or any(
        outcome.result != "done" for outcome in cleanup_outcomes
    ):  # a node class stays until all its launch templates are deleted
        actions = tuple(action for action in actions if not is_finalizer_removal(action, departing_classes))
    scaling = decide_scheduled_scaling(cluster) if settings.scheduled_scaling == "on" else ()
    if settings.spot_history == "on":
        marks = (action for action in actions if isinstance(action, MarkUnavailable))
        reason = "instances that EC2 ended for lack of capacity"
        actions = (*actions, *build_capacity_error_record(marks, cluster.taken_at, reason))
    actions = (*node_reservations.nominations, *sort_events_last((*scaling, *actions)))
    outcomes = cleanup_outcomes
    outcomes += yield PerformActions(actions=actions, is_guarded=True, is_last=True)
    eviction_events = describe_evictions(outcomes, cluster)
    overlaid_cluster: ClusterSnapshot = yield requests.ApplyOverlays()
    overlay_verdicts = evaluate_overlays(overlaid_cluster).verdicts
    overlay_actions = describe_node_overlays(
        overlaid_cluster.node_overlays, overlay_verdicts, overlaid_cluster.taken_at
    )
    outcomes += yield PerformActions(actions=(*eviction_events, *overlay_actions), is_last=True)
    if not departing_classes:
        cleanup: CleanupDue = yield requests.CheckCleanupDue()
        if cleanup.is_due:
            cleanup_actions = yield from _find_unused_templates(cluster, settings.cluster_name)
            outcomes += yield PerformActions(actions=cleanup_actions or (), is_last=True)
    if any(outcome.message == OUT_OF_TIME_MESSAGE for outcome in outcomes):
        reason = "the time limit was reached before all actions were done"
        follow_up = FollowUp(function="lifecycle", after=timedelta(), message=reason)
        outcomes += yield PerformActions(actions=(follow_up,))
    return CycleReport(cluster=cluster, outcomes=outcomes, summary=DecisionSummary(decided=len(outcomes)))


def _find_unused_templates(
    cluster: ClusterSnapshot, cluster_name: str, departing_classes: Collection[str] = ()
) -> DecisionProcess[tuple[Action, ...] | None]:
    """Return the deletions of unused launch templates.

    Empty while the row of a launch cannot be read; None if EC2 did not respond.
    """
    if any(problem.kind == "launch-group" for problem in cluster.problems):
        return ()
    existing: ExistingTemplates = yield requests.ListLaunchTemplates()
    if existing.templates is None:
        return None
    return plan_template_deletions(
        existing.templates, cluster.launch_groups, cluster_name, cluster.taken_at, departing_classes
    )
