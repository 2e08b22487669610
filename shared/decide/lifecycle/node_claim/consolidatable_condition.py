"""Pod events without a watch, and the time since which a node has had none.

The digest of the pods on a node is stored in an annotation of its NodeClaim. If it differs from the digest of the
current pods, pods were bound, ended or began to terminate, and the consolidateAfter period begins now. The detected
time can only be later than the real one.
"""

import msgspec

from shared.decide.common.requeue_delays import requeue_at
from shared.decide.lifecycle.reconcile_context import LifecycleContext, StepResult
from shared.model.core.conditions import with_condition, without_condition
from shared.model.core.labels import POD_DIGEST
from shared.model.decisions.action import PatchMetadata
from shared.state.node_claim_state import NodeClaimState, compute_consolidatable_time
from shared.state.state_node import compute_pod_digest


def record_pod_events(claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:
    """Record the time of a pod event; the time is written before the digest, so that an interrupted run repeats it."""
    claim = claim_state.claim
    digest, old_digest = compute_pod_digest(claim_state.pods), claim.meta.get_annotation(POD_DIGEST)
    if not claim_state.nodes or digest == old_digest:
        return StepResult(claim=claim)
    is_first = not old_digest
    keeps_event_time = is_first and (
        claim.last_pod_event_at is not None or all(pod.is_daemon() for pod in claim_state.pods)
    )
    updated_claim = claim if keeps_event_time else msgspec.structs.replace(claim, last_pod_event_at=context.now)
    message = "pods seen for the first time" if is_first else "pods were added, completed or began to terminate"
    digest_patch = PatchMetadata(
        kind="NodeClaim", name=claim.name, annotations=((POD_DIGEST, digest),), message=message
    )
    return StepResult(claim=updated_claim, after=(digest_patch,))


def update_consolidatable(claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:
    """Set or remove the condition `Consolidatable` of NodeClaims of dynamic NodePools."""
    claim, pool = claim_state.claim, context.find_node_pool(claim_state.claim)
    if pool is None or pool.replicas is not None:
        return StepResult(claim=claim)
    due = compute_consolidatable_time(claim, pool)
    if due is not None and due <= context.now:
        conditions = with_condition(
            claim.conditions, "Consolidatable", "True", "", "", context.now, claim.meta.generation
        )
        return StepResult(claim=msgspec.structs.replace(claim, conditions=conditions))
    follow_up = requeue_at(due, context.now, f"{claim.name} will be consolidatable") if due is not None else ()
    conditions = without_condition(claim.conditions, "Consolidatable")
    return StepResult(claim=msgspec.structs.replace(claim, conditions=conditions), after=follow_up)
