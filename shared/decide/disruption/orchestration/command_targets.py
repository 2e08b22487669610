"""The nodes of disruption commands, and the nodes and pods of commands that other decisions must consider."""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from shared.decide.disruption.orchestration.disruption_taint import is_marked_for_disruption
from shared.model.decisions.command import CommandState, CommandTarget, DisruptionCommand, Phase
from shared.model.decisions.placement import Placement
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode, is_deleting_or_marked

LEAVING_PHASES: Final[frozenset[Phase]] = frozenset(("LAUNCHED", "SURGING", "INITIALIZED", "DRAINING"))
"""From these phases on, the pods of the targets are planned as if their nodes were already draining."""


def find_target(cluster_state: ClusterState, target: CommandTarget) -> StateNode | None:
    """Return the state node of *target*, or None if it does not exist any more."""
    state = cluster_state.node_by_claim.get(target.claim)
    is_same_claim = state is not None and state.claim is not None and state.claim.meta.uid == target.claim_uid
    return state if is_same_claim else None


def list_staying_targets(cluster_state: ClusterState, command: DisruptionCommand) -> tuple[StateNode, ...]:
    """Return the targets of *command* that are not deleting yet."""
    target_states = (find_target(cluster_state, target) for target in command.targets)
    return tuple(state for state in target_states if state is not None and not is_deleting_or_marked(state))


def is_claim_unreadable(cluster_state: ClusterState, claim: str) -> bool:
    """Return whether *claim* may exist although it cannot be read."""
    return any(problem.kind == "NodeClaim" and problem.name == claim for problem in cluster_state.snapshot.problems)


def list_marked_nodes(cluster_state: ClusterState) -> frozenset[str]:
    """Return the names of nodes with a disruption taint or condition; cleanup may be removing these right now."""
    return frozenset(state.name for state in cluster_state.nodes if is_marked_for_disruption(state))


def list_command_nodes(command_states: Iterable[CommandState]) -> frozenset[str]:
    """Return the names of the nodes in open commands."""
    return frozenset(
        node
        for command_state in command_states
        if command_state.is_open
        for node in command_state.command.list_node_names()
    )


def list_leaving_nodes(command_states: Iterable[CommandState]) -> frozenset[str]:
    """Return the names of nodes with pods to plan: they are deleted as soon as their replacements are initialized."""
    return frozenset(
        node
        for command_state in command_states
        if command_state.phase in LEAVING_PHASES
        for node in command_state.command.list_node_names()
    )


def find_expected_nodes(cluster_state: ClusterState, command_states: Iterable[CommandState]) -> dict[str, str]:
    """Return the names of the state nodes that pods of open commands are expected on, by pod."""
    node_by_pod: dict[str, str] = {}
    for command_state in command_states:
        for pod, expected_node in command_state.command.nominations if command_state.is_open else ():
            state = cluster_state.node_by_claim.get(expected_node)
            node_by_pod[pod] = state.name if state is not None else expected_node
    return node_by_pod


def exclude_running_pods(placement: Placement, cluster_state: ClusterState, leaving_nodes: frozenset[str]) -> Placement:
    """Return *placement* without the pods that still run on *leaving_nodes*; these only reserve their capacity.

    Their replacements are in flight; if these fail, the pods stay where they are.
    """
    if not leaving_nodes:
        return placement
    marked_nodes = {state.name for state in cluster_state.nodes if state.is_marked_for_deletion()}
    staying_nodes = leaving_nodes - marked_nodes
    running_pods = {pod.name for pod in cluster_state.snapshot.pods if pod.node_name in staying_nodes}
    if not running_pods:
        return placement
    existing_placements = (
        replace(fit, pods=tuple(name for name in fit.pods if name not in running_pods)) for fit in placement.existing
    )
    return replace(
        placement,
        existing=tuple(fit for fit in existing_placements if fit.pods),
        new_nodes=tuple(node for node in placement.new_nodes if not running_pods.issuperset(node.pods)),
        unschedulable=tuple(
            unschedulable_pod
            for unschedulable_pod in placement.unschedulable
            if unschedulable_pod.pod not in running_pods
        ),
    )
