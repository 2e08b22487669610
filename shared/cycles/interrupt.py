"""The interrupt cycle: reads interruption messages and terminates the affected nodes."""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from shared.cycles.setup.decision_driver import DecisionDriver
from shared.cycles.setup.options_from_settings import build_scheduling_options
from shared.cycles.setup.planning_snapshot import VALIDATION_REQUEST, take_planning_snapshot
from shared.cycles.setup.run_cycle import PLANNER_LEASE, CycleReport, run_and_report
from shared.cycles.setup.time_limit import Deadline, build_time_check
from shared.decide.common.events import sort_events_last
from shared.decide.disruption.savings.interruption_events import record_interruptions
from shared.decide.lifecycle.interruption.interruption import (
    build_annotation_retries,
    decide_interruptions,
    find_unsettled_messages,
)
from shared.decide.lifecycle.interruption.messages import parse_interruption_message
from shared.decide.provisioning import provisioner
from shared.decide.provisioning.capacity_buffers import BufferedPlacement
from shared.decide.provisioning.gang_planning import plan_pods
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.model.decisions.action import CreateNodeClaim, DeleteObject, MarkUnavailable, PatchMetadata, TaintNode
from shared.model.decisions.action_outcome import Outcome
from shared.model.decisions.decision_requests import DecisionProcess, PerformActions
from shared.model.decisions.interruption_message import InterruptionMessage, UnknownMessage
from shared.ports.world import World
from shared.report.journal.decision_record import DecisionInputs, DecisionSummary, build_inputs
from shared.report.journal.journal_entries import build_pod_notes
from shared.state.cluster_state import ClusterState
from shared.store.lease import hold_lease


def run_interrupt(world: World, trigger: str, bodies: Iterable[str]) -> CycleReport:
    """Handle interruption messages: place the pods elsewhere, taint the node, and let lifecycle drain it."""
    parsed_messages = tuple(parse_interruption_message(body) for body in bodies)
    problems = tuple(
        Problem(kind="Message", name="interruption queue", message=message.reason)
        for message in parsed_messages
        if isinstance(message, UnknownMessage) and not message.harmless
    )
    messages = tuple(message for message in parsed_messages if isinstance(message, InterruptionMessage))

    def run_cycle() -> CycleReport:
        if not messages:
            return CycleReport(problems=problems)
        with hold_lease(world, PLANNER_LEASE) as fence:
            cluster, deadline = take_planning_snapshot(world, VALIDATION_REQUEST), Deadline(build_time_check(world))
            inputs = replace(build_inputs(world.settings), messages=messages, is_planner=fence is not None)
            report = DecisionDriver(world, fence, cluster).run(handle_interruptions(cluster, inputs, deadline), inputs)
        unsettled_messages = find_unsettled_messages(parsed_messages, report.outcomes, cluster)
        return replace(report, problems=problems, unsettled=unsettled_messages)

    return run_and_report("interrupt", world, trigger, run_cycle)


URGENT_ACTIONS: Final = (TaintNode, MarkUnavailable)
"""Actions for a message that are done before planning, in this order: no new pod is placed on the node or its offering.

All offerings are recorded together, and do not separate taints that can be parallel.
"""


def handle_interruptions(
    cluster: ClusterSnapshot, inputs: DecisionInputs, deadline: Deadline
) -> DecisionProcess[CycleReport]:
    """Handle interruption messages: urgent actions first, then new nodes for the affected pods, then the rest."""
    observed_state = ClusterState(cluster)
    actions = decide_interruptions(observed_state, inputs.messages)
    urgent_actions = tuple(
        action for action_type in URGENT_ACTIONS for action in actions if isinstance(action, action_type)
    )
    outcomes: tuple[Outcome, ...] = yield PerformActions(actions=urgent_actions)
    outcomes += yield PerformActions(actions=tuple(build_annotation_retries(outcomes)))
    ending_claims = frozenset(action.name for action in actions if isinstance(action, DeleteObject))
    unavailable_offerings = (action.offering for action in actions if isinstance(action, MarkUnavailable))
    cluster_state = ClusterState(replace(cluster, unavailable=(*cluster.unavailable, *unavailable_offerings)))
    ending_nodes = frozenset(node.name for claim, node in cluster_state.node_by_claim.items() if claim in ending_claims)
    # Without the lease another function is planning: the follow-up of the message will plan these pods.
    is_planned = inputs.is_planner and ending_nodes
    planned_pods = BufferedPlacement()
    if is_planned:
        options = build_scheduling_options(inputs.decode_settings())
        planned_pods = plan_pods(cluster_state, excluded=ending_nodes, options=options, is_over=deadline)
    placement = planned_pods.without_buffer_pods()
    scheduling_actions = provisioner.build_placement_actions(cluster_state, placement)
    guarded_actions = tuple(
        action for action in scheduling_actions if isinstance(action, CreateNodeClaim | PatchMetadata)
    )
    outcomes += yield PerformActions(actions=guarded_actions, is_guarded=True)
    remaining_actions = sort_events_last(action for action in actions if not isinstance(action, URGENT_ACTIONS))
    history_actions = record_interruptions(observed_state, inputs.messages, inputs.decode_settings().eviction_price_usd)
    outcomes += yield PerformActions(actions=(*history_actions, *remaining_actions), is_last=True)
    return CycleReport(
        cluster=cluster,
        outcomes=outcomes,
        notes=tuple(build_pod_notes(placement)),
        summary=DecisionSummary(decided=len(outcomes), cut=deadline.describe_cut()),
    )
