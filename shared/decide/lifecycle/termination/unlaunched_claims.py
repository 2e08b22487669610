"""Deleting NodeClaims without provider id: whether an instance was launched for them, or may still come.

A launch group is recorded before its CreateFleet is sent. While a NodeClaim's group is recent, its instance is found by
the group's tag; a later instance still has no NodeClaim, and is collected as garbage.
"""

from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from shared.decide.common.requeue_delays import MIN_REQUEUE_DELAY
from shared.decide.lifecycle.node_claim.garbage_collection import is_possibly_claimed
from shared.decide.lifecycle.reconcile_context import LifecycleContext, StepResult
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.core.conditions import with_condition
from shared.model.core.labels import LAUNCH_GROUP
from shared.model.core.metadata import find_condition
from shared.model.decisions.action import FollowUp, TerminateInstances
from shared.model.karpenter.node_claim import NodeClaim

LAUNCH_SETTLE_TIMEOUT: Final = timedelta(minutes=15)
TERMINATING_CONDITION: Final = "InstanceTerminating"
"""Records that the termination was requested."""
CLAIM_DELETED_MESSAGE: Final = "its NodeClaim is being deleted"


def terminate_unlaunched_claim(claim: NodeClaim, context: LifecycleContext) -> StepResult | None:
    """Return the step to take before the NodeClaim's finalizer is removed; None if it can be removed now."""
    group = _find_recent_group(claim, context)
    if group is None:
        return None
    if group.result is not None:
        position = group.claims.index(claim.name)
        launched = group.result.instances[position : position + 1]
        if not launched or context.is_gone(launched[0].instance_id, group.created_at):
            return None
        return _terminate_instances(claim, (launched[0].instance_id,), context)
    if context.instances is None:
        return _requeue(claim)
    unassigned = find_unassigned_instances(group.name, context)
    if not unassigned:
        return None
    return _requeue(claim) if _has_waiting_claims(group, context) else _terminate_instances(claim, unassigned, context)


def find_unassigned_instances(group: str, context: LifecycleContext) -> tuple[str, ...]:
    """Return the running instances of a launch group that no NodeClaim has, sorted."""
    assigned_ids = {claim.instance_id for claim in context.cluster_state.snapshot.node_claims}
    instances = (context.instances or {}).values()
    group_instances = (
        instance for instance in instances if instance.get_tag(LAUNCH_GROUP) == group and not instance.is_terminating()
    )
    return tuple(
        sorted(
            instance.instance_id
            for instance in group_instances
            if not (instance.instance_id in assigned_ids or is_possibly_claimed(instance, context))
        )
    )


def _find_recent_group(claim: NodeClaim, context: LifecycleContext) -> LaunchGroup | None:
    recent_groups = (
        group
        for group in context.cluster_state.snapshot.launch_groups
        if group.is_for(claim) and context.now - group.created_at < LAUNCH_SETTLE_TIMEOUT
    )
    return max(recent_groups, key=lambda group: (group.created_at, group.name), default=None)


def _has_waiting_claims(group: LaunchGroup, context: LifecycleContext) -> bool:
    """Return whether an instance of the group may still be assigned to a NodeClaim that is not deleting."""
    return any(
        group.is_for(claim) and not claim.provider_id and not claim.is_deleting()
        for claim in context.cluster_state.snapshot.node_claims
    )


def _requeue(claim: NodeClaim) -> StepResult:
    message = f"the result of the launch of {claim.name} is not known yet"
    return StepResult(claim=claim, after=(FollowUp(function="lifecycle", after=MIN_REQUEUE_DELAY, message=message),))


def _terminate_instances(claim: NodeClaim, instance_ids: tuple[str, ...], context: LifecycleContext) -> StepResult:
    """Terminate *instance_ids*, again while EC2 lists them; an instance that EC2 does not list yet, once."""
    follow_up = FollowUp(function="lifecycle", after=MIN_REQUEUE_DELAY, message="instances are terminating")
    if context.instances is None:
        return StepResult(claim=claim, after=(follow_up,))
    is_requested = find_condition(claim.conditions, TERMINATING_CONDITION) is not None
    running = tuple(
        instance_id
        for instance_id in instance_ids
        if not context.is_ending(instance_id) and not (is_requested and instance_id not in context.instances)
    )
    if not running:
        return StepResult(claim=claim, after=(follow_up,))
    conditions = with_condition(
        claim.conditions, TERMINATING_CONDITION, "True", "", "", context.now, claim.meta.generation
    )
    return StepResult(
        claim=replace(claim, conditions=conditions),
        before=(TerminateInstances(instance_ids=running, message=CLAIM_DELETED_MESSAGE),),
        after=(follow_up,),
    )
