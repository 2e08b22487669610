"""Expiration of NodeClaims by `expireAfter`."""

from datetime import datetime

from shared.decide.common.requeue_delays import requeue_at
from shared.decide.lifecycle.reconcile_context import LifecycleContext
from shared.model.decisions.action import FollowUp
from shared.model.karpenter.node_claim import NodeClaim
from shared.state.node_claim_state import NodeClaimState


def find_expiration(claim_state: NodeClaimState, context: LifecycleContext) -> str:
    """Return "expired" if the NodeClaim has reached its expireAfter, regardless of the pods on it; else ""."""
    due = _compute_expiration_time(claim_state.claim)
    return "expired" if due is not None and due <= context.now else ""


def _compute_expiration_time(claim: NodeClaim) -> datetime | None:
    created = claim.meta.created_at
    return created + claim.expire_after if created is not None and claim.expire_after is not None else None


def requeue_at_expiration(claim: NodeClaim, now: datetime) -> tuple[FollowUp, ...]:
    """Return the follow-up run at the expiration of *claim*, if it expires."""
    due = _compute_expiration_time(claim)
    return requeue_at(due, now, f"{claim.name} expires") if due is not None else ()
