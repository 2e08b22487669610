"""Expiration of NodeClaims by `expireAfter`, at once or at the end of their NodePool's graceful expiration."""

from datetime import datetime

from shared.decide.common.requeue_delays import requeue_at
from shared.decide.lifecycle.reconcile_context import LifecycleContext
from shared.model.core.labels import NODEPOOL
from shared.model.core.metadata import Pairs
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
    """Return when *claim* is deleted; None: never, or unknown because the annotation of its NodePool is unreadable."""
    try:
        return compute_expiration_deadline(claim, _find_pool_annotations(claim, context))
    except ValueError:
        return None


def _find_pool_annotations(claim: NodeClaim, context: LifecycleContext) -> Pairs:
    """Return the annotations of the NodePool of *claim*, even if its spec is unreadable; () if it does not exist.

    Raises:
        ValueError: the metadata of the NodePool cannot be read.
    """
    pool = context.find_node_pool(claim)
    if pool is not None:
        return pool.meta.annotations
    for problem in context.cluster_state.snapshot.problems:
        if problem.kind == "NodePool" and problem.name == claim.meta.get_label(NODEPOOL):
            if problem.annotations is None:
                raise ValueError(f"NodePool {problem.name}: {problem.message}")
            return problem.annotations
    return ()
