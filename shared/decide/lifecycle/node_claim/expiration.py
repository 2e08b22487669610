"""Expiration of NodeClaims by `expireAfter`, at once or at the end of their NodePool's graceful expiration."""

from datetime import datetime

from shared.decide.common.requeue_delays import requeue_at
from shared.decide.lifecycle.reconcile_context import LifecycleContext
from shared.model.core.labels import NODEPOOL
from shared.model.decisions.action import FollowUp
from shared.model.karpenter.expiration import compute_expiration_deadline
from shared.model.karpenter.node_claim import NodeClaim
from shared.state.node_claim_state import NodeClaimState


def find_expiration(claim_state: NodeClaimState, context: LifecycleContext) -> str:
    """Return "expired" if the NodeClaim must be deleted for its expireAfter, regardless of the pods on it; else ""."""
    due = _find_deadline(claim_state.claim, context)
    return "expired" if due is not None and due <= context.now else ""


def requeue_at_expiration(claim: NodeClaim, context: LifecycleContext) -> tuple[FollowUp, ...]:
    """Return the follow-up run at the deletion of *claim* for its expireAfter, if it has one."""
    due = _find_deadline(claim, context)
    return requeue_at(due, context.now, f"{claim.name} expires") if due is not None else ()


def _find_deadline(claim: NodeClaim, context: LifecycleContext) -> datetime | None:
    """Return when *claim* is deleted; None: never, or unknown because its NodePool or the annotation is unreadable."""
    pool = context.find_node_pool(claim)
    if pool is None and claim.meta.get_label(NODEPOOL) in context.list_unreadable_names("NodePool"):
        return None
    try:
        return compute_expiration_deadline(claim, pool)
    except ValueError:
        return None
