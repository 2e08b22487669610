"""Liveness: deletes NodeClaims that did not start in time, are too old or lost their instance."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from shared.decide.common.events import build_claim_events
from shared.decide.common.requeue_delays import MIN_REQUEUE_DELAY, requeue_at
from shared.decide.lifecycle.node_claim.early_end import find_early_end
from shared.decide.lifecycle.node_claim.expiration import find_expiration, requeue_at_expiration
from shared.decide.lifecycle.node_claim.garbage_collection import find_halted_instance, find_missing_instance
from shared.decide.lifecycle.reconcile_context import LifecycleContext, StepResult
from shared.model.core.metadata import find_condition, is_condition_true
from shared.model.decisions.action import Action, DeleteObject, FollowUp
from shared.model.karpenter.node_claim import NodeClaim
from shared.state.node_claim_state import NodeClaimState, is_held

LAUNCH_TIMEOUT: Final = timedelta(minutes=5)
REGISTRATION_TIMEOUT: Final = timedelta(minutes=15)

FindReason: TypeAlias = Callable[[NodeClaimState, LifecycleContext], str]


def delete_failed_claim(claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:
    """Delete the NodeClaim for the first reason that holds; its finalizer does the rest."""
    claim = claim_state.claim
    reason = next((reason for find_reason in REASON_CHECKS if (reason := find_reason(claim_state, context))), "")
    if not reason:
        return StepResult(
            claim=claim, after=(*requeue_at_expiration(claim, context), *_requeue_at_deadlines(claim, context.now))
        )
    words = _MESSAGE_BY_REASON[reason]
    events = build_claim_events(
        claim, claim_state.nodes, "DisruptionTerminating", f"Deleting {claim.name}: {words}", context.now
    )
    actions: tuple[Action, ...] = (
        DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, message=reason),
        *events,
        FollowUp(function="lifecycle", after=MIN_REQUEUE_DELAY, message=f"{claim.name} is deleted"),
    )
    return StepResult(claim=claim, after=actions)


def find_launch_timeout(claim_state: NodeClaimState, context: LifecycleContext) -> str:
    """Return "launch_timeout" if no instance was launched in time, else ""."""
    claim = claim_state.claim
    is_late = (
        not is_condition_true(claim.conditions, "Launched")
        and _compute_wait(claim, "Launched", context.now) >= LAUNCH_TIMEOUT
    )
    return "launch_timeout" if is_late and not claim.provider_id else ""


def find_registration_timeout(claim_state: NodeClaimState, context: LifecycleContext) -> str:
    """Return "registration_timeout" if no node registered in time, else ""."""
    claim = claim_state.claim
    is_unregistered = not is_condition_true(claim.conditions, "Registered")
    is_late = is_unregistered and _compute_wait(claim, "Registered", context.now) >= REGISTRATION_TIMEOUT
    return "registration_timeout" if is_late and not context.is_node_possibly_unreadable(claim) else ""


def find_deleted_node(claim_state: NodeClaimState, context: LifecycleContext) -> str:  # noqa: ARG001 - one signature for all causes
    """Return "node_deleted" if a Node that our finalizer holds was deleted, else ""."""
    return (
        "node_deleted" if any(node.meta.deleted_at is not None and is_held(node) for node in claim_state.nodes) else ""
    )


def find_ended_instance(claim_state: NodeClaimState, context: LifecycleContext) -> str:
    """Return "instance_terminated" if EC2 ended the instance before its node registered, else ""."""
    return "instance_terminated" if find_early_end(claim_state.claim, context) is not None else ""


REASON_CHECKS: Final[tuple[FindReason, ...]] = (
    find_launch_timeout,
    find_registration_timeout,
    find_expiration,
    find_missing_instance,
    find_halted_instance,
    find_ended_instance,
    find_deleted_node,
)
_MESSAGE_BY_REASON: Final = {
    "launch_timeout": "no instance was launched within 5m",
    "registration_timeout": "no node registered within 15m",
    "expired": "it has reached its expireAfter",
    "garbage_collected": "its instance was terminated",
    "instance_stopped": "its instance is stopped",
    "instance_terminated": "its instance is terminated",
    "node_deleted": "its node was deleted",
}


def _compute_wait(claim: NodeClaim, type_: str, now: datetime) -> timedelta:
    old_condition = find_condition(claim.conditions, type_)
    return now - ((old_condition.since if old_condition is not None else None) or claim.meta.created_at or now)


def _requeue_at_deadlines(claim: NodeClaim, now: datetime) -> Iterator[FollowUp]:
    """Requeue the lifecycle when the NodeClaim will be deleted, unless it is launched or registered by then."""
    for type_, timeout in (("Launched", LAUNCH_TIMEOUT), ("Registered", REGISTRATION_TIMEOUT)):
        if not is_condition_true(claim.conditions, type_):
            due = now + timeout - _compute_wait(claim, type_, now)
            yield from requeue_at(due, now, f"{claim.name} is deleted if it is not {type_.lower()}")
