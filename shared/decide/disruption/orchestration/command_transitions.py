"""Orchestration of a disruption command: one transition for each cluster snapshot.

Each phase is written down under the planner's lease before its actions are performed, and actions are repeated until
the cluster shows their effect. If an invocation dies, or has lost the lease without noticing, the next invocation
continues from the written phase.

* PROPOSED: the taint and the condition are on the nodes; the command is validated again after a delay.
* VALIDATED: validation passed; the replacements are requested. Nothing is validated again until they exist.
* LAUNCHED: the replacements are requested; each must become initialized.
* SURGING: Deployments were restarted; their old pods must leave the nodes. Only for a surge drain.
* INITIALIZED: the point of no return; the NodeClaims are deleted.
* DRAINING: the NodeClaims are deleting; the lifecycle drains their nodes.
* DONE, ROLLED_BACK: the end.

A command without replacements goes from PROPOSED directly to SURGING or INITIALIZED. What a command that was rolled
back leaves behind is removed by `shared.decide.disruption.orchestration.cleanup`.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from msgspec.structs import replace

from shared.decide.disruption.orchestration.command_actions import (
    OBSERVATION_DELAY,
    build_creations,
    describe_to_nodes,
    find_missing_replacements,
    requeue_disruption,
)
from shared.decide.disruption.orchestration.command_results import (
    CommandTransition,
    advance_committed,
    explain_protection,
    fail_command,
    roll_back_command,
)
from shared.decide.disruption.orchestration.command_state import MIN_COMMAND_TIMEOUT, with_launched_phase, with_phase
from shared.decide.disruption.orchestration.command_targets import (
    is_claim_unreadable,
    list_staying_targets,
)
from shared.decide.disruption.orchestration.disruption_taint import find_mark_time, mark_node
from shared.decide.disruption.orchestration.surge_drain import advance_surging, begin_drain
from shared.model.core.formatting import format_count, join_names
from shared.model.decisions.command import (
    UNKNOWN_PHASE_TIMEOUT,
    CommandInvalidation,
    CommandState,
    DisruptionCommand,
    DisruptionPauses,
    Phase,
)
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode, is_deleting_or_marked

CommandCheck: TypeAlias = Callable[[ClusterState, DisruptionCommand], CommandInvalidation | None]

VALIDATION_DELAYS: Final[Mapping[str, timedelta]] = {
    "Emptiness": timedelta(seconds=5),
    "MultiNode": timedelta(seconds=15),
    "SingleNode": timedelta(seconds=15),
}
"""Delay between proposal and validation, by method. Methods that are not listed have no delay."""
REVOCABLE_PHASES: Final[frozenset[Phase]] = frozenset(("PROPOSED", "VALIDATED", "LAUNCHED", "SURGING"))
NO_PAUSES: Final = DisruptionPauses()


def advance_command(
    cluster_state: ClusterState,
    command_state: CommandState,
    validator: CommandCheck,
    *,
    time_limit: timedelta = MIN_COMMAND_TIMEOUT,
    pauses: DisruptionPauses = NO_PAUSES,
) -> CommandTransition:
    """Return the next transition of a command, if possible now; *time_limit* is the limit for the whole command.

    If NodeClaims cannot be read at all, the command stays as it is.
    """
    if not command_state.is_open or cluster_state.snapshot.is_unserved("nodeclaims.karpenter.sh"):
        return CommandTransition(command_state=command_state)
    pause_message = (
        pauses.find_command_pause_message(command_state.command) if command_state.phase in REVOCABLE_PHASES else ""
    )
    if pause_message:
        return roll_back_command(command_state, f"disruption is paused: {pause_message}", cluster_state.taken_at)
    if command_state.phase == "PROPOSED":
        return _advance_proposed(cluster_state, command_state, _with_pause_check(validator, pauses), time_limit)
    if command_state.phase == "VALIDATED":
        return _advance_validated(cluster_state, command_state, _with_pause_check(validator, pauses))
    if command_state.phase == "LAUNCHED":
        return _advance_launched(cluster_state, command_state, time_limit)
    if command_state.phase == "UNKNOWN":
        advance = _advance_unknown
    else:
        advance = advance_surging if command_state.phase == "SURGING" else advance_committed
    return advance(cluster_state, command_state)


def _advance_unknown(cluster_state: ClusterState, command_state: CommandState) -> CommandTransition:
    """UNKNOWN: leave the command to the newer version that wrote its phase, but not forever."""
    if cluster_state.taken_at - command_state.phase_since <= UNKNOWN_PHASE_TIMEOUT:
        return CommandTransition(command_state=command_state)
    message = "a newer version of Joiner left it in a phase that this version does not know"
    return roll_back_command(command_state, message, cluster_state.taken_at)


def _with_pause_check(validator: CommandCheck, pauses: DisruptionPauses) -> CommandCheck:
    def validate(cluster_state: ClusterState, command: DisruptionCommand) -> CommandInvalidation | None:
        pools = sorted({target.pool for target in command.targets})
        pause_message = next(
            (pause_message for pool in pools if (pause_message := pauses.find_pause_message(pool, command.reason))), ""
        )
        return (
            CommandInvalidation(message=f"disruption is paused: {pause_message}")
            if pause_message
            else validator(cluster_state, command)
        )

    return validate


def _advance_proposed(
    cluster_state: ClusterState, command_state: CommandState, validator: CommandCheck, time_limit: timedelta
) -> CommandTransition:
    """PROPOSED: ensure that the nodes are marked, wait for the delay, then validate the command again."""
    command, now = command_state.command, cluster_state.taken_at
    staying_claim_uids = {
        state.claim.meta.uid for state in list_staying_targets(cluster_state, command) if state.claim is not None
    }
    missing_nodes = frozenset(target.node for target in command.targets if target.claim_uid not in staying_claim_uids)
    if missing_nodes:
        return _remove_targets(
            command_state,
            CommandInvalidation(
                message=f"{_format_node_names(missing_nodes)} was deleted by another client", nodes=missing_nodes
            ),
            now,
        )
    if now - command_state.proposed_at > time_limit:
        return roll_back_command(command_state, "its nodes could not be tainted in time", now)
    delay = VALIDATION_DELAYS.get(command.method, timedelta())
    staying_nodes = list_staying_targets(cluster_state, command)
    mark_times = [find_mark_time(state, command.reason) for state in staying_nodes]
    unmarked_nodes = [state for state, instant in zip(staying_nodes, mark_times, strict=True) if instant is None]
    if unmarked_nodes:
        mark_actions = [action for state in unmarked_nodes for action in mark_node(state, command.reason, now)]
        return CommandTransition(
            command_state=command_state,
            actions=(*mark_actions, requeue_disruption(command_state, max(delay, OBSERVATION_DELAY))),
        )
    validation_time = (
        max(command_state.proposed_at, *(instant for instant in mark_times if instant is not None)) + delay
    )
    if validation_time > now:
        return CommandTransition(
            command_state=command_state, actions=(requeue_disruption(command_state, validation_time - now),)
        )
    invalidation = validator(cluster_state, command)
    return (
        _launch_replacements(cluster_state, command_state)
        if invalidation is None
        else _remove_targets(command_state, invalidation, now)
    )


def _launch_replacements(cluster_state: ClusterState, command_state: CommandState) -> CommandTransition:
    """Request the replacements; if the command has none, commit it."""
    if not command_state.command.replacements:
        return begin_drain(cluster_state, command_state)
    next_state = with_phase(command_state, "VALIDATED", cluster_state.taken_at, "the command is still valid")
    return CommandTransition(command_state=next_state, actions=build_creations(command_state, cluster_state))


def _advance_validated(
    cluster_state: ClusterState, command_state: CommandState, validator: CommandCheck
) -> CommandTransition:
    """VALIDATED, and an earlier invocation did not finish: request the missing replacements."""
    command, now = command_state.command, cluster_state.taken_at
    missing_replacements = find_missing_replacements(cluster_state, command)
    if not missing_replacements:
        return CommandTransition(command_state=with_launched_phase(command_state, now))
    if len(list_staying_targets(cluster_state, command)) < len(command.targets):
        return roll_back_command(
            command_state, "a node was deleted by another client before its replacement was created", now
        )
    if len(missing_replacements) == len(command.replacements):
        invalidation = validator(cluster_state, command)
        if invalidation is not None:
            return roll_back_command(command_state, invalidation.message, now)
    return CommandTransition(command_state=command_state, actions=build_creations(command_state, cluster_state))


def _advance_launched(
    cluster_state: ClusterState, command_state: CommandState, time_limit: timedelta
) -> CommandTransition:
    """LAUNCHED: wait until every replacement has been initialized at least once."""
    command, now = command_state.command, cluster_state.taken_at
    staying_nodes = list_staying_targets(cluster_state, command)
    if not staying_nodes:
        return advance_committed(
            cluster_state, with_phase(command_state, "INITIALIZED", now, "its nodes were deleted by another client")
        )
    initialized_claims = set(command_state.initialized)
    for replacement in command.replacements:
        state = cluster_state.node_by_claim.get(replacement.claim.name)
        claim = state.claim if state is not None else None
        if claim is not None and not claim.is_deleting() and claim.is_initialized():
            initialized_claims.add(replacement.claim.name)
        elif (
            replacement.claim.name not in initialized_claims
            and not is_claim_unreadable(cluster_state, replacement.claim.name)
            and (claim is None or _is_missing_or_deleting(state))
        ):
            return _fail_replacement(
                command_state, replacement.claim.name, "was deleted" if claim is None else "is being deleted", now
            )
    uninitialized_claims = [
        pending_replacement.claim.name
        for pending_replacement in command.replacements
        if pending_replacement.claim.name not in initialized_claims
    ]
    updated_state = replace(command_state, initialized=tuple(sorted(initialized_claims)))
    if uninitialized_claims:
        if now - command_state.proposed_at > time_limit:
            return _fail_replacement(updated_state, uninitialized_claims[0], "was not initialized in time", now)
        count_text = f"{format_count(len(uninitialized_claims), 'replacement')}"
        message = f"Waiting for {count_text} to be initialized: {join_names(uninitialized_claims, 3)}"
        return CommandTransition(
            command_state=updated_state,
            actions=tuple(describe_to_nodes(cluster_state, command, "DisruptionWaitingReadiness", message)),
        )
    if protection := explain_protection(cluster_state, command, staying_nodes):
        return roll_back_command(updated_state, protection, now)
    return begin_drain(cluster_state, updated_state)


def _remove_targets(command_state: CommandState, invalidation: CommandInvalidation, now: datetime) -> CommandTransition:
    """Continue without the nodes that *invalidation* names, if the other targets do not depend on them."""
    command = command_state.command
    remaining_targets = tuple(target for target in command.targets if target.node not in invalidation.nodes)
    if command.method != "Emptiness" or not invalidation.nodes or not remaining_targets:
        return roll_back_command(command_state, invalidation.message, now)
    smaller_command_state = replace(
        command_state, command=replace(command, targets=remaining_targets), message=invalidation.message
    )
    return CommandTransition(
        command_state=smaller_command_state, actions=(requeue_disruption(command_state, timedelta()),)
    )


def _fail_replacement(command_state: CommandState, replacement: str, cause: str, now: datetime) -> CommandTransition:
    return fail_command(command_state, f"replacement {replacement} {cause}", now)


def _is_missing_or_deleting(state: StateNode | None) -> bool:
    return state is None or is_deleting_or_marked(state)


def _format_node_names(nodes: frozenset[str]) -> str:
    return join_names(sorted(nodes), 1)
