"""Deleted NodeClaims whose NodePools cannot be seen.

If the CRD of NodePools is deleted, all NodePools are deleted, and the garbage collector of Kubernetes then deletes the
objects they own: every NodeClaim. A failed upgrade must not cost nodes. So a NodeClaim whose termination has not begun
waits until the CRD is back, and with it the NodePools that its pods may move to.
"""

from typing import Final

from shared.decide.common.events import build_event
from shared.decide.lifecycle.reconcile_context import LifecycleContext, StepResult
from shared.model.core.labels import DISRUPTED_TAINT
from shared.model.core.metadata import find_condition
from shared.state.node_claim_state import NodeClaimState

NODE_POOL_CRD: Final = "nodepools.karpenter.sh"


def wait_for_node_pools(claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:
    """Stop the steps of a deleting NodeClaim while NodePools cannot be seen, unless its termination has begun."""
    claim = claim_state.claim
    if not context.cluster_state.snapshot.is_unserved(NODE_POOL_CRD) or _is_termination_begun(claim_state, context):
        return StepResult(claim=claim)
    words = f"{NODE_POOL_CRD} is not served, so no node is terminated; to fix: apply the CRDs"
    return StepResult(
        claim=claim,
        after=(build_event("NodeClaim", claim.meta, "FailedDraining", words, context.now, type_="Warning"),),
        waits=True,
    )


def _is_termination_begun(claim_state: NodeClaimState, context: LifecycleContext) -> bool:
    """Return whether a Node was tainted (as by an interruption) or drained, or has lost its instance."""
    claim = claim_state.claim
    is_tainted = any(taint.key == DISRUPTED_TAINT for node in claim_state.nodes for taint in node.taints)
    is_instance_lost = context.is_gone(
        claim.instance_id, claim_state.get_launch_time(context.now)
    ) or context.is_ending(claim.instance_id)
    return (
        is_tainted
        or (is_instance_lost and bool(claim.provider_id))
        or find_condition(claim.conditions, "Drained") is not None
    )
