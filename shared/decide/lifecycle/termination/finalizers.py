"""Removal of Nodes and NodeClaims: taint, delete, and remove Joiner's finalizer when no resource remains."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from shared.decide.common.events import build_event
from shared.decide.common.requeue_delays import MIN_REQUEUE_DELAY
from shared.decide.lifecycle.reconcile_context import LifecycleContext, StepResult
from shared.decide.lifecycle.termination.drain_order import build_evictions, plan_drain
from shared.decide.lifecycle.termination.unlaunched_claims import CLAIM_DELETED_MESSAGE
from shared.model.core.labels import EXCLUDE_BALANCERS, TERMINATION_FINALIZER
from shared.model.core.taints import with_disrupted_taint
from shared.model.decisions.action import Action, DeleteObject, FollowUp, PatchMetadata, TaintNode
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod
from shared.state.node_claim_state import NodeClaimState, is_held, is_ours

FORCEFUL_TERMINATION: Final = "Forceful Termination"


def remove_finalizers(claim_state: NodeClaimState) -> StepResult:
    """Remove our finalizer from the Nodes and, once the Nodes are seen without it, from the NodeClaim."""
    held_nodes = claim_state.list_held_nodes()
    if not held_nodes:
        claim_finalizer_removal = build_finalizer_removal(claim_state.claim, "its instance was terminated")
        return StepResult(
            claim=claim_state.claim, after=(*build_node_deletions(claim_state), claim_finalizer_removal), waits=True
        )
    finalizer_removals = tuple(
        build_finalizer_removal(node, ("its instance was terminated"))
        for node in held_nodes
        if node.meta.deleted_at is not None
    )
    follow_up = FollowUp(
        function="lifecycle", after=MIN_REQUEUE_DELAY, message=f"the nodes of {claim_state.claim.name} are released"
    )
    return StepResult(
        claim=claim_state.claim, after=(*finalizer_removals, *build_node_deletions(claim_state), follow_up), waits=True
    )


def terminate_unclaimed_node(node: Node, pods: Iterable[Pod], context: LifecycleContext) -> tuple[Action, ...]:
    """Return the actions for a managed Node without a NodeClaim that is being deleted or has no instance.

    Its instance, if it has one, is left to garbage collection.
    """
    instance_id = node.provider_id.rpartition("/")[2]
    is_instance_gone = context.is_gone(instance_id, node.meta.created_at or context.now) or context.is_ending(
        instance_id
    )
    is_instance_lost = is_instance_gone and not node.is_ready()
    if is_ours(node) and is_instance_lost and node.meta.deleted_at is None:
        return (DeleteObject(kind="Node", name=node.name, uid=node.meta.uid, message="its instance was terminated"),)
    if node.meta.deleted_at is None or not is_held(node) or not is_ours(node):
        return ()
    if is_instance_lost:
        return (build_finalizer_removal(node, "its instance was terminated"),)
    follow_up = FollowUp(function="lifecycle", after=MIN_REQUEUE_DELAY, message=f"{node.name} is terminating")
    taints = build_disrupted_taint(node, f"{node.name} is being deleted and has no NodeClaim")
    if taints:
        return (
            *taints,
            FollowUp(function="provision", after=timedelta(), message=f"{node.name} is terminating"),
            follow_up,
        )
    drain_plan = plan_drain(pods, None, context.now, context.cluster_state.pdb_limits)
    if not drain_plan.waiting:
        return (build_finalizer_removal(node, "it is drained and has no NodeClaim"),)
    event = build_event("Node", node.meta, "FailedDraining", drain_plan.describe(), context.now, type_="Warning")
    return (*build_evictions(drain_plan.evicted, FORCEFUL_TERMINATION), event, follow_up)


def build_finalizer_removal(owner: Node | NodeClaim, message: str) -> PatchMetadata:
    """Return the patch that removes our finalizer from *owner*."""
    other_finalizers = tuple(finalizer for finalizer in owner.meta.finalizers if finalizer != TERMINATION_FINALIZER)
    return PatchMetadata(
        kind="Node" if isinstance(owner, Node) else "NodeClaim",
        name=owner.name,
        resource_version=owner.meta.resource_version,
        finalizers=other_finalizers,
        message=message,
    )


def build_disrupted_taint(node: Node, message: str) -> tuple[TaintNode, ...]:
    """Return the action that adds the disrupted taint and the load-balancer exclusion label.

    Our taint replaces any other taint with the same key. There is no action if the Node has both.
    """
    taints = with_disrupted_taint(node.taints)
    label = (EXCLUDE_BALANCERS, "karpenter")
    if sorted(taints) == sorted(node.taints) and label in node.meta.labels:
        return ()
    version = node.meta.resource_version
    return (TaintNode(name=node.name, resource_version=version, taints=taints, labels=(label,), message=message),)


def build_node_deletions(claim_state: NodeClaimState) -> tuple[DeleteObject, ...]:
    """Return the deletions of the Nodes of a registered NodeClaim that are not deleted yet."""
    if not claim_state.has_registered():
        return ()
    return tuple(
        DeleteObject(kind="Node", name=node.name, uid=node.meta.uid, message=CLAIM_DELETED_MESSAGE)
        for node in claim_state.nodes
        if node.meta.deleted_at is None
    )
