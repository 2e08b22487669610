"""Registration health: a NodePool's `NodeRegistrationHealthy`, from its last four finished launches.

A successful registration is seen on the NodeClaim. A failed NodeClaim is deleted, so an annotation of the NodePool
records it for as long as it counts. The history is reset when the NodePool or its node class changes, because the cause
of the failure may be fixed. Nothing depends on the condition; the NodePool is still used.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import msgspec

from shared.decide.lifecycle.node_claim.liveness import LAUNCH_TIMEOUT, REGISTRATION_TIMEOUT
from shared.decide.lifecycle.reconcile_context import LifecycleContext
from shared.model.core.conditions import AWAITING_RECONCILIATION, with_condition
from shared.model.core.labels import NODEPOOL, REGISTRATION_HEALTH
from shared.model.core.metadata import Condition, find_condition, is_condition_true
from shared.model.decisions.action import PatchMetadata
from shared.model.karpenter.health.registration_history import RegistrationHistory, parse_registration_history
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_pool import NodePool

NODE_REGISTRATION_HEALTHY: Final = "NodeRegistrationHealthy"
MAX_RECENT_LAUNCHES: Final = 4
MIN_FAILURES_FOR_UNHEALTHY: Final = 2
"""The number of failures among `MAX_RECENT_LAUNCHES` from which the NodePool is unhealthy."""


class _LaunchResult(msgspec.Struct, frozen=True, kw_only=True, order=True):
    at: datetime
    name: str
    is_registered: bool


def with_registration_health(
    conditions: tuple[Condition, ...], pool: NodePool, context: LifecycleContext
) -> tuple[Condition, ...]:
    """Set the NodePool's registration health condition among *conditions*."""
    recorded_history, history = parse_registration_history(pool), _compute_history(pool, context)
    old_condition = (
        find_condition(conditions, NODE_REGISTRATION_HEALTHY)
        if recorded_history is None or recorded_history.generations == history.generations
        else None
    )
    recent_results = _list_recent_results(pool, history, context)
    failed_claims = [launch_result.name for launch_result in recent_results if not launch_result.is_registered]
    status_fields = (
        ("Unknown", AWAITING_RECONCILIATION, "")
        if old_condition is None
        else (old_condition.status, old_condition.reason, old_condition.message)
    )
    if len(failed_claims) >= MIN_FAILURES_FOR_UNHEALTHY and status_fields[0] != "False":
        status_fields = ("False", *_build_failure_reason(failed_claims[-1], context))
    elif len(failed_claims) < MIN_FAILURES_FOR_UNHEALTHY and any(
        launch_result.is_registered for launch_result in recent_results
    ):
        status_fields = ("True", "", "")
    return with_condition(conditions, NODE_REGISTRATION_HEALTHY, *status_fields, context.now, pool.meta.generation)


def record_registration_history(pool: NodePool, context: LifecycleContext) -> tuple[PatchMetadata, ...]:
    """Record the NodeClaims that failed to register in the NodePool's annotation, if they are not there yet."""
    history = _compute_history(pool, context)
    failed = {
        launch_result.name: launch_result.at
        for launch_result in _list_recent_results(pool, history, context)
        if not launch_result.is_registered
    }
    history = msgspec.structs.replace(history, failed=failed)
    if history == parse_registration_history(pool):
        return ()
    text = msgspec.json.encode(history).decode()
    message = "registrations of its latest nodes"
    return (
        PatchMetadata(kind="NodePool", name=pool.name, annotations=((REGISTRATION_HEALTH, text),), message=message),
    )


def _compute_history(pool: NodePool, context: LifecycleContext) -> RegistrationHistory:
    """Return the NodePool's history; an empty one, beginning now, if the NodePool or its node class has changed."""
    node_class = next(
        (
            candidate_class
            for candidate_class in context.cluster_state.snapshot.node_classes
            if candidate_class.name == pool.node_class.name
        ),
        None,
    )
    generations = f"{pool.meta.generation}/{node_class.meta.generation if node_class is not None else 0}"
    history = parse_registration_history(pool)
    if history is not None and history.generations == generations:
        return history
    # If the NodePool was never evaluated, every visible NodeClaim counts.
    return RegistrationHistory(
        generations=generations, since=context.now if history is not None else _find_history_start(pool, context)
    )


def _find_history_start(pool: NodePool, context: LifecycleContext) -> datetime:
    return (
        (pool.meta.created_at or context.now)
        if find_condition(pool.conditions, NODE_REGISTRATION_HEALTHY) is None
        else context.now
    )


def _list_recent_results(
    pool: NodePool, history: RegistrationHistory, context: LifecycleContext
) -> list[_LaunchResult]:
    results = {_LaunchResult(at=at, name=name, is_registered=False) for name, at in history.failed.items()}
    for claim in context.cluster_state.snapshot.node_claims:
        if claim.meta.get_label(NODEPOOL) == pool.name and not _is_of_replaced_pool(claim, pool):
            results.update(end for end in _yield_launch_result(claim, context) if end.at > history.since)
    return sorted(results)[-MAX_RECENT_LAUNCHES:]


def _is_of_replaced_pool(claim: NodeClaim, pool: NodePool) -> bool:
    """Return whether the NodeClaim belongs to an earlier NodePool with the same name."""
    return any(owner.kind == "NodePool" and owner.uid != pool.meta.uid for owner in claim.meta.owners)


def _yield_launch_result(claim: NodeClaim, context: LifecycleContext) -> Iterator[_LaunchResult]:
    registered_condition = find_condition(claim.conditions, "Registered")
    if registered_condition is not None and registered_condition.status == "True":
        if registered_condition.since is not None:
            yield _LaunchResult(at=registered_condition.since, name=claim.name, is_registered=True)
        return
    finished_before = claim.meta.deleted_at or context.now
    deadline = _compute_liveness_deadline(claim)
    if deadline is not None and deadline <= finished_before and not context.is_node_possibly_unreadable(claim):
        yield _LaunchResult(at=deadline, name=claim.name, is_registered=False)


def _compute_liveness_deadline(claim: NodeClaim) -> datetime | None:
    """Return when liveness deletes a NodeClaim that does not register."""
    launched, registered = (
        find_condition(claim.conditions, condition_type) for condition_type in ("Launched", "Registered")
    )
    is_late = not claim.provider_id and not is_condition_true(claim.conditions, "Launched")
    waiting_condition, timeout = (launched, LAUNCH_TIMEOUT) if is_late else (registered, REGISTRATION_TIMEOUT)
    start = (waiting_condition.since if waiting_condition is not None else None) or claim.meta.created_at
    return start + timeout if start is not None else None


def _build_failure_reason(name: str, context: LifecycleContext) -> tuple[str, str]:
    claim = next(
        (node_claim for node_claim in context.cluster_state.snapshot.node_claims if node_claim.name == name), None
    )
    launched = find_condition(claim.conditions, "Launched") if claim is not None and not claim.provider_id else None
    if launched is not None and launched.status != "True":
        return launched.reason, launched.message
    return "RegistrationFailed", (
        f"nodes were launched but did not register, the last one is {name}: see docs/guide/troubleshooting.md"
    )
