"""The disrupt cycle: starts and advances disruption commands."""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.cycles.interactions.settled_run import SettledRun, find_settled_run, store_settled_run
from shared.cycles.interactions.workload_history import update_forecasts
from shared.cycles.setup.decision_driver import DecisionDriver
from shared.cycles.setup.options_from_settings import build_disruption_settings, build_scheduling_options
from shared.cycles.setup.planning_snapshot import VALIDATION_REQUEST, take_planning_snapshot
from shared.cycles.setup.run_cycle import PLANNER_LEASE, CycleReport, run_and_report, run_with_lease
from shared.cycles.setup.time_limit import Deadline, build_time_check, get_time_left
from shared.decide.common.requeue_delays import keep_earliest_requeues
from shared.decide.disruption.disruption_controller import decide_node_disruption
from shared.decide.disruption.disruption_requeues import plan_continuation, plan_disruption_requeues
from shared.decide.disruption.drift.drifted_condition import describe_drift
from shared.decide.disruption.events import describe_verdicts
from shared.decide.disruption.input_problems import find_disruption_problems
from shared.decide.disruption.node_repair import NodeRepairDecision, decide_node_repair, is_unhealthy
from shared.decide.disruption.orchestration.command_targets import find_expected_nodes
from shared.decide.disruption.orchestration.orchestration_queue import build_orchestration_queue
from shared.decide.disruption.pauses import describe_pauses, list_paused_reasons, parse_pause_settings
from shared.decide.disruption.plan_mode import convert_to_planned, describe_planned
from shared.decide.disruption.scale_down_order.deletion_costs import plan_deletion_costs
from shared.decide.launch.money.limit_prices import measure_limit_usage
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.model.decisions.action import Action, FollowUp, PublishEvent
from shared.model.decisions.action_outcome import Outcome
from shared.model.decisions.command import DisruptionPauses
from shared.model.decisions.decision_requests import DecisionProcess, PerformActions
from shared.model.decisions.disruption_verdict import Verdict
from shared.model.decisions.placement import SchedulingOptions
from shared.ports.storage import FencingToken
from shared.ports.world import World
from shared.report.journal.decision_record import DecisionInputs, DecisionSummary, build_inputs
from shared.report.journal.journal_entries import (
    build_command_notes,
    build_memory,
    build_node_notes,
    build_pause_notes,
    get_reported_verdicts,
    select_event_verdicts,
    select_new_verdicts,
)
from shared.report.log import log
from shared.report.metrics.cycle_metrics import compute_fleet_metrics
from shared.report.metrics.emf import MONEY_USED
from shared.state.cluster_state import ClusterState
from shared.store.commands import delete_old_commands, read_commands, read_cursor, write_cursor

DISRUPT_REQUEST: Final = msgspec.structs.replace(VALIDATION_REQUEST, instances=True)


def run_disrupt(world: World, trigger: str) -> CycleReport:
    """Advance open commands, then evaluate every node and begin new commands."""

    def run_cycle(fence: FencingToken) -> CycleReport:
        cluster = take_planning_snapshot(world, DISRUPT_REQUEST)
        problems: list[Problem] = []
        commands = read_commands(world, problems)
        if world.settings.mode != "plan":
            delete_old_commands(commands, world)
        cursor, deadline = read_cursor(world), Deadline(build_time_check(world))
        forecasts, run_times = update_forecasts(world, cluster, fence, problems)
        inputs = replace(
            build_inputs(world.settings),
            command_states=tuple(commands.values()),
            cursor=cursor.body,
            reported_verdicts=get_reported_verdicts(world.memory),
            forecasts=forecasts,
            run_times=run_times,
        )
        settled_run = find_settled_run(world.memory, trigger, cluster, inputs)
        if settled_run is not None:
            log("INFO", "nothing has changed", world, {"evaluated_at": settled_run.cluster.taken_at})
            return CycleReport(cluster=cluster, counts=settled_run.counts, problems=(*problems, *settled_run.problems))
        time_left = get_time_left(world)
        report = DecisionDriver(world, fence, cluster).run(decide_disruption(cluster, inputs, deadline), inputs)
        if world.memory is not None:
            world.memory.update(report.memory)
        write_cursor(cursor, report.cursor, world, fence)
        settled_run = SettledRun(
            cluster=cluster,
            inputs=inputs,
            counts=report.counts,
            problems=report.problems,
            duration=time_left - get_time_left(world),
        )
        store_settled_run(world.memory, settled_run if report.is_settled else None)
        return replace(report, problems=(*problems, *report.problems))

    return run_and_report("disrupt", world, trigger, lambda: run_with_lease(PLANNER_LEASE, "disrupt", world, run_cycle))


class DisruptionReport(CycleReport, frozen=True, kw_only=True):
    """What one cycle decided about disruption."""

    cursor: str
    """Where the next sweep starts."""
    memory: dict[str, object]
    """The verdicts that are reported, for the memory of the container."""
    is_settled: bool
    """Whether all nodes were evaluated and nothing is left to do: no command, no unhealthy node, no pause."""


def decide_disruption(
    cluster: ClusterSnapshot, inputs: DecisionInputs, deadline: Deadline
) -> DecisionProcess[DisruptionReport]:
    """Advance commands, evaluate every node, begin new commands."""
    cluster_state, settings = ClusterState(cluster), inputs.decode_settings()
    scheduling_options, disruption_settings = build_scheduling_options(settings), build_disruption_settings(settings)
    disruption_settings = replace(disruption_settings, forecasts=inputs.forecasts, run_times=inputs.run_times)
    pauses = parse_pause_settings(
        settings.disruption_paused, settings.drift_pause_percent, settings.outcome_check_minutes
    )
    is_stopped, is_disruption_active = settings.mode == "plan", settings.disruption != "plan"
    queue = build_orchestration_queue(
        cluster_state, inputs.command_states, pauses, scheduling_options, disruption_settings, is_stopped=is_stopped
    )
    busy_nodes = queue.list_busy_nodes()
    yield from queue.advance_commands()
    repairs = decide_node_repair(cluster_state, queue.pauses) if settings.gates.node_repair else NodeRepairDecision()
    repair_outcomes: tuple[Outcome, ...] = yield PerformActions(actions=repairs.actions, is_guarded=True)
    busy_nodes |= queue.list_busy_nodes() | repairs.nodes
    disruption_decision = decide_node_disruption(
        cluster_state,
        options=scheduling_options,
        paused_reasons=list_paused_reasons(queue.pauses),
        cursor=inputs.cursor,
        is_time_over=deadline,
        command_nodes=busy_nodes,
        node_by_pod=find_expected_nodes(cluster_state, queue.command_states.values()),
        settings=disruption_settings,
        command_states=queue.command_states.values(),
    )
    yield from queue.begin_commands(disruption_decision.commands if is_disruption_active else (), deadline)
    yield from queue.remove_leftovers()
    cost_outcomes: tuple[Outcome, ...] = ()
    if settings.pod_deletion_cost == "on" and is_disruption_active and not is_stopped:
        cost_actions = plan_deletion_costs(
            cluster_state, command_nodes=queue.list_busy_nodes(), paused_reasons=list_paused_reasons(queue.pauses)
        )
        cost_outcomes = yield PerformActions(actions=cost_actions, is_guarded=True, is_last=True)
    verdicts = repairs.with_verdicts(
        disruption_decision.verdicts if is_disruption_active else convert_to_planned(disruption_decision.verdicts)
    )
    memory = build_memory(inputs.reported_verdicts)
    new_verdicts = select_new_verdicts(verdicts, memory, cluster.taken_at)
    event_verdicts = select_event_verdicts(new_verdicts, verdicts, memory, cluster.taken_at)
    event_actions = _list_event_actions(queue.pauses, verdicts, event_verdicts, cluster_state)
    if not is_stopped:  # mode `plan` stores no cursor
        continuations = plan_continuation(inputs.cursor, disruption_decision.cursor)
        event_actions = keep_earliest_requeues((*event_actions, *continuations))
    event_outcomes: tuple[Outcome, ...] = yield PerformActions(actions=event_actions)
    outcomes = (*queue.outcomes, *repair_outcomes, *cost_outcomes, *event_outcomes)
    return DisruptionReport(
        cluster=cluster,
        outcomes=outcomes,
        counts=queue.compute_metrics()
        | repairs.count_metrics()
        | compute_fleet_metrics(cluster_state)
        | _count_money_used(cluster_state, scheduling_options),
        notes=(
            *build_command_notes(queue.changed_states),
            *build_pause_notes(queue.pauses),
            *build_node_notes(new_verdicts),
        ),
        problems=(*queue.problems, *disruption_settings.list_problems(), *find_disruption_problems(cluster_state)),
        summary=DecisionSummary(decided=len(outcomes), cut=deadline.describe_cut() or queue.write_failure),
        cursor=disruption_decision.cursor,
        memory=memory,
        is_settled=not (
            disruption_decision.commands
            or disruption_decision.cursor
            or deadline.describe_cut()
            or queue.has_work()
            or any(map(is_unhealthy, cluster.nodes))
            or not all(map(_is_report, outcomes))
        ),
    )


def _count_money_used(cluster_state: ClusterState, options: SchedulingOptions) -> dict[str, float]:
    """Return the used part of the limit in USD per hour that is closest to its end; empty without such limits."""
    usages = measure_limit_usage(cluster_state, options.money)
    return {MONEY_USED: max(usage.used_percent for usage in usages)} if usages else {}


def _is_report(outcome: Outcome) -> bool:
    """Return whether *outcome* is that of an event or a requested run, and not of a change of the cluster."""
    return isinstance(outcome.action, PublishEvent | FollowUp) and outcome.result != "failed"


def _list_event_actions(
    pauses: DisruptionPauses,
    verdicts: Iterable[Verdict],
    event_verdicts: Iterable[Verdict],
    cluster_state: ClusterState,
) -> tuple[Action, ...]:
    """Return the events about nodes and NodePools, and the next runs that they need."""
    return (
        *describe_pauses(pauses, cluster_state.snapshot),
        *describe_verdicts(event_verdicts, verdicts, cluster_state),
        *describe_planned(verdicts, cluster_state),
        *describe_drift(cluster_state),
        *plan_disruption_requeues(cluster_state.nodes, cluster_state.snapshot),
    )
