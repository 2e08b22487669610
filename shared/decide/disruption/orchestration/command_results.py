"""The last transitions of a disruption command: it is committed and carried out, or it is rolled back."""

from datetime import datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.decide.disruption.orchestration.command_actions import OBSERVATION_DELAY, build_deletions
from shared.decide.disruption.orchestration.command_state import with_phase
from shared.decide.disruption.orchestration.command_targets import (
    find_target,
    is_claim_unreadable,
    list_staying_targets,
)
from shared.model.decisions.action import Action
from shared.model.decisions.command import CommandState, DisruptionCommand
from shared.model.kubernetes.do_not_disrupt import is_node_protected, is_scale_down_disabled
from shared.model.kubernetes.pod_classes import is_disruptable
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode

MAX_RECORDED_FAILURES: Final = 5
"""Number of failures that a command state remembers."""


class CommandTransition(msgspec.Struct, frozen=True, kw_only=True):
    """One transition: *command_state* is written if it has changed, then *actions* are performed."""

    command_state: CommandState
    actions: tuple[Action, ...] = ()


def commit_command(cluster_state: ClusterState, command_state: CommandState) -> CommandTransition:
    """Record that the nodes will be removed in any case, and delete their NodeClaims."""
    next_state = with_phase(command_state, "INITIALIZED", cluster_state.taken_at, "its NodeClaims are being deleted")
    return CommandTransition(command_state=next_state, actions=build_deletions(cluster_state, next_state))


def advance_committed(cluster_state: ClusterState, command_state: CommandState) -> CommandTransition:
    """INITIALIZED or DRAINING: delete the remaining NodeClaims until all nodes are gone."""
    if all(
        find_target(cluster_state, target) is None and not is_claim_unreadable(cluster_state, target.claim)
        for target in command_state.command.targets
    ):
        return CommandTransition(
            command_state=with_phase(command_state, "DONE", cluster_state.taken_at, "its nodes are terminated")
        )
    if list_staying_targets(cluster_state, command_state.command):
        return CommandTransition(
            command_state=command_state, actions=build_deletions(cluster_state, command_state, OBSERVATION_DELAY)
        )
    if command_state.phase == "DRAINING":
        return CommandTransition(command_state=command_state)
    return CommandTransition(
        command_state=with_phase(command_state, "DRAINING", cluster_state.taken_at, "its nodes are drained")
    )


def roll_back_command(
    command_state: CommandState, message: str, now: datetime, actions: tuple[Action, ...] = ()
) -> CommandTransition:
    """Return the transition that ends the command without removing its nodes."""
    return CommandTransition(command_state=with_phase(command_state, "ROLLED_BACK", now, message), actions=actions)


def fail_command(
    command_state: CommandState, message: str, now: datetime, actions: tuple[Action, ...] = ()
) -> CommandTransition:
    """Roll the command back and record a failure; repeated failures pause the disruption of its NodePool."""
    failures = (*command_state.failures, now)[-MAX_RECORDED_FAILURES:]
    return roll_back_command(replace(command_state, failures=failures), message, now, actions)


def explain_protection(
    cluster_state: ClusterState, command: DisruptionCommand, staying_nodes: tuple[StateNode, ...]
) -> str:
    """Return which node has been protected from disruption since the proposal; "" if none has."""
    now = cluster_state.taken_at
    protected_node = next((state for state in staying_nodes if _is_protected(state, command, now)), None)
    return f"{protected_node.name} is now protected from disruption" if protected_node is not None else ""


def _is_protected(state: StateNode, command: DisruptionCommand, now: datetime) -> bool:
    """Return whether the node or one of its pods has been protected from disruption since the proposal."""
    claim = state.claim
    if command.reason == "Drifted" and claim is not None and claim.termination_grace_period is not None:
        return is_node_protected(state.meta)
    if command.reason != "Drifted" and is_scale_down_disabled(state.meta):
        return True
    return is_node_protected(state.meta) or any(not is_disruptable(pod, now) for pod in state.pods)
