"""The provision cycle: turns pending pods into NodeClaims and instances."""

from collections.abc import Iterable, Iterator
from datetime import timedelta

from msgspec.structs import replace

from shared.apply.executor import apply_actions
from shared.cycles.interactions.dry_runs import run_dry_runs
from shared.cycles.setup.decision_driver import DecisionDriver
from shared.cycles.setup.group_usage import publish_group_usage
from shared.cycles.setup.options_from_settings import (
    build_budget_policy,
    build_launch_policy,
    build_scheduling_options,
)
from shared.cycles.setup.planning_snapshot import take_planning_snapshot
from shared.cycles.setup.run_cycle import PLANNER_LEASE, CycleReport, run_and_report, run_with_lease
from shared.cycles.setup.time_limit import Deadline, build_time_check
from shared.decide.disruption.orchestration.command_targets import exclude_running_pods, list_leaving_nodes
from shared.decide.launch.fleets.fleet_result import BREAKER_OPEN_REASON
from shared.decide.launch.fleets.launch_planning import LaunchPolicy
from shared.decide.launch.fleets.launch_retries import launch_in_rounds
from shared.decide.provisioning import provisioner
from shared.decide.provisioning.capacity_buffers import describe_buffers
from shared.decide.provisioning.gang_planning import plan_pods
from shared.decide.provisioning.monthly_budget import plan_within_budget, restrict_capacity_types
from shared.decide.provisioning.provisioning_requests import describe_requests
from shared.decide.provisioning.static_capacity import decide_static_capacity
from shared.decide.provisioning.superseded_claims import (
    delete_superseded_claims,
    find_superseded_claims,
    without_claims,
)
from shared.decide.provisioning.triggers import explain_provisioning_need
from shared.errors import Fault
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.model.decisions.action import DeleteObject, FollowUp, PublishEvent
from shared.model.decisions.action_outcome import Outcome
from shared.model.decisions.decision_requests import DecisionProcess, PerformActions
from shared.model.decisions.month_costs import MonthCosts, find_budget_state
from shared.model.decisions.placement import Placement
from shared.ports.storage import FencingToken
from shared.ports.world import World
from shared.report.costs.month_costs import ROW_KIND, ROW_NAME, read_month_costs
from shared.report.journal.decision_record import DecisionInputs, DecisionSummary, build_inputs
from shared.report.journal.journal import DecisionNote
from shared.report.journal.journal_entries import build_launch_notes, build_pod_notes
from shared.report.metrics.cycle_metrics import compute_catalog_ages, count_pending_pods, count_reschedulable_pods
from shared.state.cluster_state import ClusterState
from shared.store.commands import read_commands
from shared.take.feature_gated_snapshot import take_planning_trigger_snapshot
from shared.take.snapshot import PLANNING_REQUEST


def run_provision(world: World, trigger: str) -> CycleReport:
    """Create NodeClaims for pending pods, and launch instances for NodeClaims."""

    def run_cycle(fence: FencingToken) -> CycleReport:
        pending_snapshot = take_planning_trigger_snapshot(world)
        if not explain_provisioning_need(ClusterState(pending_snapshot)):
            group_problems = publish_group_usage(world) if world.settings.group else ()
            return CycleReport(
                cluster=pending_snapshot, counts=count_pending_pods(Placement()), problems=group_problems
            )
        cluster = take_planning_snapshot(world, PLANNING_REQUEST)
        problems: list[Problem] = []
        command_states = tuple(read_commands(world, problems).values())
        inputs = replace(
            build_inputs(world.settings),
            command_states=command_states,
            overtaken=fence.overtaken,
            month_costs=_read_month_costs(world, problems),
        )
        deadline, driver = Deadline(build_time_check(world)), DecisionDriver(world, fence, cluster)
        report = driver.run(decide_provisioning(cluster, inputs, deadline), inputs)
        dry_run_outcomes = apply_actions(run_dry_runs(cluster, world, problems), world)
        return replace(report, outcomes=report.outcomes + dry_run_outcomes, problems=tuple(problems))

    return run_and_report(
        "provision", world, trigger, lambda: run_with_lease(PLANNER_LEASE, "provision", world, run_cycle)
    )


def decide_provisioning(
    cluster: ClusterSnapshot, inputs: DecisionInputs, deadline: Deadline, *, has_launches: bool = True
) -> DecisionProcess[CycleReport]:
    """Decide about pending pods and static NodePools, then launch NodeClaims unless *has_launches* is False."""
    settings, leaving_nodes = inputs.decode_settings(), list_leaving_nodes(inputs.command_states)
    superseded_claims = find_superseded_claims(cluster, inputs.overtaken)
    planned_cluster = without_claims(cluster, superseded_claims)
    cluster_state = ClusterState(planned_cluster)
    budget = find_budget_state(build_budget_policy(settings), inputs.month_costs, cluster.taken_at)
    budgeted_state = ClusterState(restrict_capacity_types(planned_cluster, budget)) if budget.step else cluster_state
    planned_pods = plan_within_budget(
        lambda withheld: plan_pods(
            budgeted_state,
            excluded=leaving_nodes,
            withheld=withheld,
            options=build_scheduling_options(settings),
            is_over=deadline,
        ),
        planned_cluster,
        budget,
    )
    placement = exclude_running_pods(planned_pods.without_buffer_pods(), cluster_state, leaving_nodes)
    static_actions = decide_static_capacity(cluster_state) if settings.gates.static_capacity else ()
    actions = (
        *provisioner.build_placement_actions(cluster_state, placement),
        *describe_buffers(planned_pods, planned_cluster),
        *describe_requests(planned_pods.resolved_requests, planned_pods.placement, cluster_state),
        *static_actions,
    )
    if not deadline.describe_cut():
        actions += tuple(delete_superseded_claims(superseded_claims, actions))
    outcomes: tuple[Outcome, ...] = yield PerformActions(actions=actions, is_guarded=True)
    counts = count_pending_pods(placement, planned_pods.buffer_pod_names) | compute_catalog_ages(cluster)
    counts |= count_reschedulable_pods(placement, cluster)
    notes = tuple(build_pod_notes(placement))
    if has_launches:
        launch_outcomes = yield from launch_node_claims(
            build_launch_policy(settings), has_leaving_nodes=bool(leaving_nodes)
        )
        launched_actions = (outcome.action for outcome in launch_outcomes if outcome.result == "done")
        trip_notes = tuple(_describe_breaker_trips(launch_outcomes))
        outcomes += launch_outcomes
        counts["LaunchBreakerTrips"] = float(len(trip_notes))
        notes += (*build_launch_notes(launched_actions, cluster), *trip_notes)
    return CycleReport(
        cluster=cluster,
        outcomes=outcomes,
        counts=counts,
        by_zone=placement.by_zone,
        notes=notes,
        summary=DecisionSummary(decided=len(outcomes), cut=deadline.describe_cut()),
    )


def _read_month_costs(world: World, problems: list[Problem]) -> MonthCosts | None:
    """Return the costs of the month if there is a budget; without them, new nodes are not restricted."""
    if not world.settings.monthly_budget_usd:
        return None
    try:
        row = read_month_costs(world)
    except Fault as fault:
        problems.append(Problem(kind=ROW_KIND, name=ROW_NAME, message=f"{type(fault).__name__}: {fault}"))
        return None
    return None if row is None else row[0]


def launch_node_claims(policy: LaunchPolicy, *, has_leaving_nodes: bool) -> DecisionProcess[tuple[Outcome, ...]]:
    """Launch every claim that has no instance.

    If a NodeClaim is deleted by liveness, disrupt runs: an open command may wait for this replacement.
    """
    outcomes = yield from launch_in_rounds(policy)
    if has_leaving_nodes and any(isinstance(outcome.action, DeleteObject) for outcome in outcomes):
        follow_up = FollowUp(
            function="disrupt", after=timedelta(), message="a NodeClaim was deleted: it may be a replacement"
        )
        outcomes += yield PerformActions(actions=(follow_up,))
    return outcomes


def _describe_breaker_trips(outcomes: Iterable[Outcome]) -> Iterator[DecisionNote]:
    """Yield a note for each NodePool whose launches the circuit breaker stops."""
    for launch_outcome in outcomes:
        action = launch_outcome.action
        if isinstance(action, PublishEvent) and action.reason == BREAKER_OPEN_REASON:
            yield DecisionNote(kind="NodePool", name=action.name, verdict=action.reason, reason=action.message)
