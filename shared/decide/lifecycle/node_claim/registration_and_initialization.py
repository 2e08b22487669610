"""Launch, registration and initialization: the steps from a launched instance to an initialized node.

A step on the Node is decided by the Node's current state, not by the NodeClaim's conditions: a patch that was not
executed is decided again.
"""

from datetime import timedelta
from typing import Final

import msgspec

from shared.decide.common.events import build_event
from shared.decide.lifecycle.reconcile_context import LifecycleContext, StepResult
from shared.model.core.conditions import with_condition
from shared.model.core.labels import (
    COMMAND,
    DO_NOT_SYNC_TAINTS,
    INITIALIZED,
    POD_DIGEST,
    REGISTERED,
    TERMINATION_FINALIZER,
    UNREGISTERED_TAINT,
)
from shared.model.core.metadata import OwnerReference, build_pairs, find_condition, is_condition_true
from shared.model.core.taints import Taint, is_ephemeral
from shared.model.decisions.action import FollowUp, PatchMetadata, RegisterNode
from shared.model.karpenter.node_claim import KARPENTER_API_VERSION, NodeClaim
from shared.model.kubernetes.node import Node
from shared.state.node_claim_state import NodeClaimState

CLOSED_NODE_REQUEUE_DELAY: Final = timedelta(seconds=3)
"""The delay before the next check of a node that stays unregistered until it is Ready: its pods wait only for that."""


def mark_launched(claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:
    """Set the condition Launched of a NodeClaim with a provider id, regardless of who wrote the id."""
    claim = claim_state.claim
    if not claim.provider_id or is_condition_true(claim.conditions, "Launched"):
        return StepResult(claim=claim)
    return StepResult(claim=_set_condition(claim, context, "Launched", "True"))


def register_node(claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:
    """Apply the NodeClaim's metadata and taints to its Node, and remove the unregistered taint with the same patch."""
    claim = claim_state.claim
    if not claim.provider_id or (is_condition_true(claim.conditions, "Registered") and len(claim_state.nodes) != 1):
        return StepResult(claim=claim)
    if not claim_state.nodes:
        message = f"no node has provider id {claim.provider_id} yet"
        return StepResult(claim=_set_condition(claim, context, "Registered", "Unknown", "NodeNotFound", message))
    if len(claim_state.nodes) > 1:
        message = "several nodes have its provider id: " + ", ".join(node.name for node in claim_state.nodes)
        return StepResult(claim=_set_condition(claim, context, "Registered", "False", "MultipleNodesFound", message))
    (node,) = claim_state.nodes
    if node.meta.deleted_at is not None:
        return StepResult(claim=claim)
    is_closed = node.name in context.closed_nodes and node.meta.get_label(REGISTERED) != "true"
    return _wait_while_closed(claim, node, context) if is_closed else _register_open_node(claim, node, context)


def _wait_while_closed(claim: NodeClaim, node: Node, context: LifecycleContext) -> StepResult:
    message = f"node {node.name} stays unschedulable until it is Ready and its pods are nominated"
    follow_up = FollowUp(
        function="lifecycle", after=CLOSED_NODE_REQUEUE_DELAY, message=f"node {node.name} is unschedulable"
    )
    return StepResult(
        claim=_set_condition(claim, context, "Registered", "Unknown", "NodeClosed", message), after=(follow_up,)
    )


def _register_open_node(claim: NodeClaim, node: Node, context: LifecycleContext) -> StepResult:
    registered = _set_condition(msgspec.structs.replace(claim, node_name=node.name), context, "Registered", "True")
    if node.meta.get_label(REGISTERED) == "true":
        return StepResult(claim=registered)
    lacks_taint = not any(taint.key == UNREGISTERED_TAINT for taint in node.taints)
    words = (
        f"node {node.name} joined without the taint {UNREGISTERED_TAINT}: pods may have been "
        "scheduled before its labels were set"
    )
    missing_taint_event = build_event(
        "NodeClaim", claim.meta, "UnregisteredTaintMissing", words, context.now, type_="Warning"
    )
    return StepResult(
        claim=registered,
        before=(build_registration(claim, node, context),),
        after=(missing_taint_event,) if lacks_taint else (),
    )


def build_registration(claim: NodeClaim, node: Node, context: LifecycleContext) -> RegisterNode:
    """Return the action that makes *node* the node of *claim*; the Node's own metadata is kept."""
    finalizers = dict.fromkeys((*node.meta.finalizers, TERMINATION_FINALIZER))
    other_owners = (owner for owner in node.meta.owners if owner.uid != claim.meta.uid)
    claim_owner = OwnerReference(
        api_version=KARPENTER_API_VERSION, kind="NodeClaim", name=claim.name, uid=claim.meta.uid
    )
    return RegisterNode(
        name=node.name,
        resource_version=node.meta.resource_version,
        taints=_merge_taints(claim, node),
        labels=build_pairs((*claim.meta.labels, (REGISTERED, "true"))),
        annotations=build_pairs(pair for pair in claim.meta.annotations if pair[0] != POD_DIGEST),
        finalizers=tuple(finalizers),
        owners=(*other_owners, claim_owner),
        nominations=context.nominations_by_node.get(node.name, ()),
        observed_taints=node.taints,
        message=f"the node of {claim.name} registered",
    )


def _merge_taints(claim: NodeClaim, node: Node) -> tuple[Taint, ...]:
    is_synced = not any(owner.get_label(DO_NOT_SYNC_TAINTS) == "true" for owner in (node.meta, claim.meta))
    merged = list(node.taints)
    for taint in (*claim.taints, *claim.startup_taints) if is_synced else ():
        if not any(taint.is_same(merged_taint) for merged_taint in merged):
            merged.append(taint)
    return tuple(taint for taint in merged if taint.key != UNREGISTERED_TAINT)


def initialize_node(claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:
    """Label the registered Node as initialized once nothing is missing, or report what is missing."""
    claim = claim_state.claim
    if not is_condition_true(claim.conditions, "Registered"):
        return StepResult(claim=claim)
    is_initialized = is_condition_true(claim.conditions, "Initialized")
    node = claim_state.nodes[0] if len(claim_state.nodes) == 1 else None
    if node is None or node.meta.get_label(REGISTERED) != "true":
        message = "its node does not exist or is not registered yet"
        return StepResult(
            claim=claim
            if is_initialized
            else _set_condition(claim, context, "Initialized", "Unknown", "NodeNotFound", message)
        )
    reason, message = ("", "") if is_initialized else _find_obstacle(claim, node)
    if reason:
        return StepResult(claim=_set_condition(claim, context, "Initialized", "Unknown", reason, message))
    initialized_claim = _set_condition(claim, context, "Initialized", "True")
    follow_up = () if is_initialized else _requeue_disruption(claim)
    if node.meta.get_label(INITIALIZED) == "true":
        return StepResult(claim=initialized_claim, after=follow_up)
    label_message = f"the node of {claim.name} is initialized"
    label_patch = PatchMetadata(kind="Node", name=node.name, labels=((INITIALIZED, "true"),), message=label_message)
    return StepResult(claim=initialized_claim, before=(label_patch,), after=follow_up)


def _requeue_disruption(claim: NodeClaim) -> tuple[FollowUp, ...]:
    """Requeue disruption if a disruption command waits for this node."""
    command = claim.meta.get_annotation(COMMAND)
    return (FollowUp(function="disrupt", after=timedelta(), message=f"{claim.name} is initialized"),) if command else ()


def _find_obstacle(claim: NodeClaim, node: Node) -> tuple[str, str]:
    if not node.is_ready():
        return "NodeNotReady", f"node {node.name} is not Ready"
    startup_taints = [
        taint for taint in node.taints if any(taint.is_same(startup_taint) for startup_taint in claim.startup_taints)
    ]
    if startup_taints:
        return "StartupTaintsExist", f"startup taint {startup_taints[0]} is still there"
    ephemeral_taints = [taint for taint in node.taints if is_ephemeral(taint)]
    if ephemeral_taints:
        return "KnownEphemeralTaintsExist", f"taint {ephemeral_taints[0]} is still there"
    missing_resources = [name for name in claim.requests.list_names() if node.allocatable[name] <= 0]
    if missing_resources:
        return "ResourceNotRegistered", f"resource {missing_resources[0]} was requested and is not registered"
    return "", ""


def _set_condition(
    claim: NodeClaim, context: LifecycleContext, type_: str, status: str, reason: str = "", message: str = ""
) -> NodeClaim:
    old_condition = find_condition(claim.conditions, type_)
    since = context.now
    if old_condition is None and status == "Unknown":
        since = claim.meta.created_at or context.now
    conditions = with_condition(claim.conditions, type_, status, reason, message, since, claim.meta.generation)
    return msgspec.structs.replace(claim, conditions=conditions)
