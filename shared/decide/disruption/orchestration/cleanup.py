"""Cleanup of unfinished disruptions, whether or not the command table still contains them."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

from shared.decide.disruption.orchestration.disruption_taint import unmark_node
from shared.model.core.labels import COMMAND
from shared.model.decisions.action import Action, DeleteObject
from shared.model.decisions.command import CommandState
from shared.state.cluster_state import ClusterState
from shared.state.state_node import is_deleting_or_marked

CLEANUP_PERIOD: Final = timedelta(minutes=30)
"""How long after the rollback of a command its replacements are cleaned up."""


def clean_up_commands(cluster_state: ClusterState, command_states: Iterable[CommandState]) -> tuple[Action, ...]:
    """Remove taints, conditions and unused replacements that belong to no open command."""
    if cluster_state.snapshot.is_unserved("nodeclaims.karpenter.sh"):
        return ()
    all_states = tuple(command_states)
    active_claim_uids = {
        target.claim_uid
        for open_command_state in all_states
        if open_command_state.is_open
        for target in open_command_state.command.targets
    }
    actions: list[Action] = []
    for state in cluster_state.nodes:
        if state.claim is not None and state.claim.meta.uid not in active_claim_uids:
            actions.extend(unmark_node(state))
    for command_state in all_states:
        if (
            command_state.phase == "ROLLED_BACK"
            and cluster_state.taken_at - command_state.phase_since <= CLEANUP_PERIOD
        ):
            actions.extend(_delete_unused_replacements(cluster_state, command_state))
    return tuple(actions)


def _delete_unused_replacements(cluster_state: ClusterState, command_state: CommandState) -> Iterator[DeleteObject]:
    """Delete the replacements that were never used; the other replacements become ordinary nodes."""
    command = command_state.command
    for replacement in command.replacements:
        state = cluster_state.node_by_claim.get(replacement.claim.name)
        claim = state.claim if state is not None else None
        if state is None or claim is None or claim.meta.get_annotation(COMMAND) != command.command_id:
            continue
        is_used = (
            claim.is_initialized()
            or state.is_nominated(cluster_state.taken_at)
            or any(not pod.is_daemon() for pod in state.pods)
        )
        if not is_used and not is_deleting_or_marked(state):
            yield DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, message="rolled_back")
