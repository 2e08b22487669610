"""Validation of a proposed command: meanwhile pods may have arrived, budgets changed, or capacity been used."""

from collections.abc import Mapping

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.budgets.spot_share_tracker import SpotShareTracker, format_share_refusal
from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.consolidation_policy import (
    explain_consolidation_refusal,
    explain_emptiness_refusal,
    explain_replacement_refusal,
)
from shared.decide.disruption.disruption_context import DEFAULT_SETTINGS, NO_EXPECTED_PODS, DisruptionContext
from shared.decide.disruption.simulation.exceeded_share import find_exceeded_share
from shared.decide.disruption.simulation.new_nodes import open_planned_node
from shared.model.core.formatting import format_count, join_names
from shared.model.core.labels import NODEPOOL
from shared.model.decisions.command import CommandInvalidation, DisruptionCommand
from shared.model.decisions.disruption_verdict import BlockedVerdict, KeptVerdict
from shared.model.decisions.placement import SchedulingOptions
from shared.state.cluster_state import ClusterState

DEFAULT_SCHEDULING_OPTIONS = SchedulingOptions()


def validate_command(
    cluster_state: ClusterState,
    command: DisruptionCommand,
    command_nodes: frozenset[str] = frozenset(),
    *,
    node_by_pod: Mapping[str, str] = NO_EXPECTED_PODS,
    options: SchedulingOptions = DEFAULT_SCHEDULING_OPTIONS,
    settings: DisruptionSettings = DEFAULT_SETTINGS,
) -> CommandInvalidation | None:
    """Return why *command* must not be executed, or None if it may be.

    *command_nodes*: names of nodes in other running commands; *node_by_pod*: where their pods are expected.

    Its nodes must still be candidates of its method, its budgets must allow it, and its pods must fit on the available
    capacity and its replacements, whichever instance types these become. Preferences that hold now are kept, as in the
    proposal. The savings are not computed again.
    """
    context = DisruptionContext(cluster_state, options, command_nodes, node_by_pod, settings)
    candidates: list[Candidate] = []
    message_by_node: dict[str, str] = {}
    for target in command.targets:
        candidate = _find_candidate(target.node, target.claim_uid, command, context)
        if isinstance(candidate, Candidate):
            candidates.append(candidate)
        else:
            message_by_node[target.node] = f"{candidate.reason}: {candidate.message}"
    if message_by_node:
        return CommandInvalidation(
            message=f"{min(message_by_node)}: {message_by_node[min(message_by_node)]}", nodes=frozenset(message_by_node)
        )
    invalidation = _check_budgets(candidates, command, context)
    if invalidation is not None:
        return invalidation
    if command.reason == "Empty":
        return _check_spot_shares(candidates, SpotShareTracker(cluster_state, command_nodes))
    return _check_placement(candidates, command, context) if command.reason == "Underutilized" else None


def _find_candidate(
    node: str, uid: str, command: DisruptionCommand, context: DisruptionContext
) -> Candidate | BlockedVerdict | KeptVerdict:
    state = context.cluster_state.node_by_name.get(node)
    if state is None or state.claim is None or state.claim.meta.uid != uid:
        return BlockedVerdict(node=node, reason="Gone", message="the node changed since the command was computed")
    candidate = context.evaluate_node(state, eventual=command.reason == "Drifted")
    if isinstance(candidate, BlockedVerdict):
        return candidate
    if command.reason == "Empty":
        return explain_emptiness_refusal(candidate, context.cluster_state, context.buffer_nodes) or candidate
    if command.reason == "Drifted":
        kept_verdict = KeptVerdict(node=node, reason="NotDrifted", message="the node is no longer drifted")
        return candidate if context.has_drifted(candidate.state) else kept_verdict
    if candidate.is_empty():
        return KeptVerdict(node=node, reason="Empty", message="the node is now empty")
    explain_refusal = explain_replacement_refusal if command.replacements else explain_consolidation_refusal
    return explain_refusal(candidate, context.cluster_state) or candidate


def _check_budgets(
    candidates: list[Candidate], command: DisruptionCommand, context: DisruptionContext
) -> CommandInvalidation | None:
    """Return the targets that budgets do not allow; later targets are excluded first."""
    candidates_over_budget: list[Candidate] = []
    for candidate in candidates:
        if context.budget_tracker.has_budget_for((candidate,), command.reason):
            context.budget_tracker.reserve((candidate,))
        else:
            candidates_over_budget.append(candidate)
    if not candidates_over_budget:
        return None
    return CommandInvalidation(
        message=context.budget_tracker.explain_exhausted_budget(candidates_over_budget[0].pool, command.reason),
        nodes=frozenset(candidate_over_budget.name for candidate_over_budget in candidates_over_budget),
    )


def _check_spot_shares(candidates: list[Candidate], tracker: SpotShareTracker) -> CommandInvalidation | None:
    """Return the empty targets that stay because of the Spot share of their NodePool."""
    verdict_by_node: dict[str, KeptVerdict] = {}
    for candidate in tracker.sort_spot_first(candidates):
        verdict = tracker.find_verdict(candidate)
        if verdict is None:
            tracker.remove(candidate)
        else:
            verdict_by_node[candidate.name] = verdict
    if not verdict_by_node:
        return None
    return CommandInvalidation(message=verdict_by_node[min(verdict_by_node)].message, nodes=frozenset(verdict_by_node))


def _check_placement(
    candidates: list[Candidate], command: DisruptionCommand, context: DisruptionContext
) -> CommandInvalidation | None:
    setup = context.set_up_simulation(candidates, (), keeps_anti_affinity=True)
    context.close_recently_changed_nodes(setup)
    simulation = setup.simulation
    simulation.begin(max_new_nodes=len(command.replacements))
    number_by_node = dict(simulation.node_numbers)
    pods = [pod for candidate in candidates for pod in simulation.clear_node(simulation.node_numbers[candidate.name])]
    for replacement in command.replacements:
        number = open_planned_node(
            simulation, replacement.claim.meta.get_label(NODEPOOL), replacement.claim.requirements
        )
        if number is None:
            return CommandInvalidation(message=f"replacement {replacement.claim.name} can no longer be launched")
        number_by_node[replacement.claim.name] = len(simulation.packing.existing_nodes) + number
    type_masks = [node.mask for node in simulation.packing.open_nodes]
    node_by_pod = {pod: number_by_node[home] for pod, home in command.nominations if home in number_by_node}
    unplaced_pods = [pod for pod_class in simulation.place_pods_at(pods, node_by_pod) for pod in pod_class.pods]
    unplannable_pods = [
        pod.name for candidate in candidates for pod in candidate.state.pods if pod.name in setup.unplannable_pods
    ]
    homeless_pods = [*unplannable_pods, *(pod.name for pod in unplaced_pods)]
    if homeless_pods:
        is_kept = any(setup.find_kept_term_owner(pod) for pod in unplaced_pods)
        condition = " where preferred anti-affinity that holds now is met" if is_kept else ""
        return CommandInvalidation(
            message=(
                f"{format_count(len(homeless_pods), 'pod')} can no longer be scheduled{condition}: "
                f"{join_names(homeless_pods, 3)}"
            )
        )
    exceeded_pool = find_exceeded_share(simulation)
    if exceeded_pool:
        return CommandInvalidation(message=format_share_refusal(exceeded_pool))
    if [node.mask for node in simulation.packing.open_nodes] != type_masks:
        return CommandInvalidation(message="some instance types of a replacement no longer fit its pods")
    return None
