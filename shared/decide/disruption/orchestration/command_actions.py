"""Actions of a disruption command: create replacements, delete NodeClaims, emit events, requeue."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Final

from msgspec.structs import replace

from shared.decide.common.events import build_claim_events
from shared.decide.disruption.orchestration.command_targets import list_staying_targets
from shared.model.core.formatting import format_count
from shared.model.core.labels import COMMAND
from shared.model.core.metadata import build_pairs
from shared.model.decisions.action import Action, CreateNodeClaim, DeleteObject, FollowUp
from shared.model.decisions.command import CommandState, DisruptionCommand
from shared.model.decisions.disruption_verdict import MAX_NODES_WITH_EVENTS
from shared.state.cluster_state import ClusterState

OBSERVATION_DELAY: Final = timedelta(seconds=1)
"""Delay before the next run after nodes were marked or deleted again; without it, a stale list would cause a busy
loop.
"""


def build_creations(command_state: CommandState, cluster_state: ClusterState) -> tuple[Action, ...]:
    """Return the actions that request the missing replacements."""
    command = command_state.command
    message = f"Launching {format_count(len(command.replacements), 'replacement')} for {command.reason}"
    return (
        *(
            _annotate_creation(replacement, command)
            for replacement in find_missing_replacements(cluster_state, command)
        ),
        *describe_to_nodes(cluster_state, command, "DisruptionLaunching", message),
        FollowUp(
            function="provision", after=timedelta(), message=f"{command.command_id} is waiting for its replacements"
        ),
    )


def find_missing_replacements(cluster_state: ClusterState, command: DisruptionCommand) -> tuple[CreateNodeClaim, ...]:
    """Return the replacements that have no NodeClaim."""
    return tuple(
        replacement for replacement in command.replacements if replacement.claim.name not in cluster_state.node_by_claim
    )


def build_deletions(
    cluster_state: ClusterState, command_state: CommandState, after: timedelta = timedelta()
) -> tuple[Action, ...]:
    """Return the actions that delete the remaining NodeClaims.

    *after*: delay of the follow-up; a repeated deletion may only be not visible yet, so it needs no immediate run.
    """
    command = command_state.command
    claims = [state.claim for state in list_staying_targets(cluster_state, command) if state.claim is not None]
    return (
        *(
            DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, message=command.reason.lower())
            for claim in claims
        ),
        *describe_to_nodes(cluster_state, command, "DisruptionTerminating", f"Disrupting: {command.reason}"),
        FollowUp(
            function="lifecycle",
            after=after,
            message=f"{command.command_id} deletes {format_count(len(claims), 'NodeClaim')}",
        ),
    )


def requeue_disruption(command_state: CommandState, after: timedelta) -> FollowUp:
    """Return the follow-up that runs disruption again for a proposed command."""
    return FollowUp(function="disrupt", after=after, message=f"{command_state.command.command_id} is proposed")


def describe_to_nodes(
    cluster_state: ClusterState, command: DisruptionCommand, reason: str, message: str
) -> Iterator[Action]:
    """Yield events with *message* for the remaining nodes of the command, up to a limit."""
    for state in islice(list_staying_targets(cluster_state, command), MAX_NODES_WITH_EVENTS):
        if state.claim is not None:
            nodes = () if state.node is None else (state.node,)
            yield from build_claim_events(state.claim, nodes, reason, message, cluster_state.taken_at)


def _annotate_creation(creation: CreateNodeClaim, command: DisruptionCommand) -> CreateNodeClaim:
    """Annotate the NodeClaim with the command id; unfinished commands are found by this annotation."""
    meta = creation.claim.meta
    annotated_meta = replace(meta, annotations=build_pairs(dict(meta.annotations) | {COMMAND: command.command_id}))
    return replace(creation, claim=replace(creation.claim, meta=annotated_meta))
