"""Early end: an instance that EC2 terminates before its node registers, for example because of a KMS key.

EC2 gives the reason only in DescribeInstances: CreateFleet has succeeded. The NodeClaim is deleted soon after, so the
NodePool gets the event too.
"""

from typing import Final

import msgspec

from shared.decide.common.events import build_event
from shared.decide.launch.fleets.circuit_breaker import MAX_EARLY_ENDS, parse_early_ends, select_recent_ends
from shared.decide.launch.fleets.unavailable_offerings import build_offering_mark
from shared.decide.lifecycle.reconcile_context import LifecycleContext, StepResult
from shared.model.core.conditions import with_condition
from shared.model.core.labels import EARLY_ENDS, NODEPOOL, PLACEMENT_GROUP
from shared.model.core.metadata import find_condition, is_condition_true
from shared.model.decisions.action import MarkUnavailable, PatchMetadata
from shared.model.ec2.instance import Instance
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_pool import NodePool
from shared.state.node_claim_state import NodeClaimState

MAX_RECORDED_ENDS: Final = 10
"""More early ends within the window change nothing: launches are delayed."""
INSTANCE_ENDED_EARLY: Final = "InstanceEndedEarly"
"""Reason of the event and of the condition Registered."""
NO_CAPACITY_CODE: Final = "Server.InsufficientInstanceCapacity"
"""CreateFleet accepted the launch, but there was no capacity when the instance started."""
_EXPECTED_CODES: Final = frozenset(
    {"Client.UserInitiatedShutdown", "Server.SpotInstanceShutdown", "Server.SpotInstanceTermination"}
)
"""State reasons of instances that Joiner or a person terminated, or that a Spot interruption message announced."""
_FIX_BY_CODE: Final = {
    "Client.InternalError": (
        "if a customer-managed KMS key encrypts its volumes or its image, add the key to the setting kms-keys, and "
        "check the key policy"
    ),
    "Client.InvalidKMSKey.InvalidState": "enable the KMS key that encrypts its volumes",
    "Client.VolumeLimitExceeded": "raise the account's quota of EBS storage",
    NO_CAPACITY_CODE: "allow more instance types or zones in the NodePool",
}
"""Source of the codes: Amazon EC2 API Reference, StateReason."""


def report_early_end(claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:
    """Report once why the instance of a NodeClaim ended before its node registered, in a condition and in events.

    If EC2 had no capacity for the instance, its offering is unavailable, as after the same error of CreateFleet.
    """
    claim = claim_state.claim
    instance = find_early_end(claim, context)
    registered = find_condition(claim.conditions, "Registered")
    is_reported = registered is not None and registered.reason == INSTANCE_ENDED_EARLY
    if instance is None or is_reported:
        return StepResult(claim=claim)
    words = f"({instance.instance_type}) ended before its node registered: {instance.state_reason}"
    fix = _FIX_BY_CODE.get(_get_code(instance))
    words = f"{words}; to fix: {fix}" if fix else words
    message = f"{instance.instance_id} {words}"
    conditions = with_condition(
        claim.conditions, "Registered", "False", INSTANCE_ENDED_EARLY, message, context.now, claim.meta.generation
    )
    pool = context.find_node_pool(claim)
    targets = [("NodeClaim", claim.meta, message)]
    if pool is not None:
        targets.append(("NodePool", pool.meta, f"an instance {words}"))
    events = (
        build_event(kind, meta, INSTANCE_ENDED_EARLY, text, context.now, type_="Warning")
        for kind, meta, text in targets
    )
    marks = _mark_offering(claim, instance, context)
    return StepResult(claim=msgspec.structs.replace(claim, conditions=conditions), before=(*marks, *events))


def record_early_ends(pool: NodePool, context: LifecycleContext) -> tuple[PatchMetadata, ...]:
    """Record new early ends of *pool* in its annotation, for the launch circuit breaker; old ones are dropped then."""
    instances = (
        find_early_end(claim, context)
        for claim in context.cluster_state.snapshot.node_claims
        if claim.meta.get_label(NODEPOOL) == pool.name
    )
    old_ends = select_recent_ends(parse_early_ends(pool), context.now)
    ended_ids = {instance.instance_id for instance in instances if instance is not None}
    new_ids = sorted(ended_ids - old_ends.keys())[:MAX_EARLY_ENDS]
    if not new_ids or len(old_ends) >= MAX_RECORDED_ENDS:
        return ()
    text = msgspec.json.encode(old_ends | dict.fromkeys(new_ids, context.now), order="sorted").decode()
    message = "instances that EC2 ended early"
    return (PatchMetadata(kind="NodePool", name=pool.name, annotations=((EARLY_ENDS, text),), message=message),)


def find_early_end(claim: NodeClaim, context: LifecycleContext) -> Instance | None:
    """Return the instance of an unregistered *claim* if EC2 ended it by itself and gives a reason."""
    if not claim.provider_id or is_condition_true(claim.conditions, "Registered"):
        return None
    candidates = (*(context.instances or {}).values(), *context.cluster_state.snapshot.ended_instances)
    instance = next((candidate for candidate in candidates if candidate.instance_id == claim.instance_id), None)
    if instance is None or not instance.is_terminating() or not instance.state_reason:
        return None
    return None if _get_code(instance) in _EXPECTED_CODES else instance


def _mark_offering(claim: NodeClaim, instance: Instance, context: LifecycleContext) -> tuple[MarkUnavailable, ...]:
    if _get_code(instance) != NO_CAPACITY_CODE:
        return ()
    mark = build_offering_mark(
        instance.capacity_type,
        instance.instance_type,
        instance.zone,
        now=context.now,
        message=f"{instance.instance_id}: {instance.state_reason}",
        group_id=claim.meta.get_label(PLACEMENT_GROUP),
    )
    return (mark,)


def _get_code(instance: Instance) -> str:
    return instance.state_reason.partition(": ")[0]
