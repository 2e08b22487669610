"""The finalizer of EC2NodeClasses: a node class exists until its last NodeClaim is deleted.

Without the node class, the configuration of its nodes is unknown.
"""

from collections.abc import Collection, Iterable
from typing import Final

from shared.decide.common.events import build_event
from shared.decide.lifecycle.reconcile_context import LifecycleContext
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import join_names
from shared.model.core.labels import NODECLASS_FINALIZER
from shared.model.decisions.action import Action, PatchMetadata
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_class import EC2NodeClass

WAITING_REASON: Final = "WaitingOnNodeClaimTermination"
_MAX_NAMES_IN_MESSAGE: Final = 5


def reconcile_node_class_finalizer(
    node_class: EC2NodeClass, claims: Iterable[NodeClaim], context: LifecycleContext
) -> tuple[Action, ...]:
    """Add our finalizer to a node class, and remove it from a deleted one that has no *claims*.

    A NodeClaim that cannot be read may use any node class.
    """
    meta = node_class.meta
    has_finalizer = NODECLASS_FINALIZER in meta.finalizers
    if has_finalizer is (meta.deleted_at is None):
        return ()  # no changes: it has the finalizer and stays, or is deleted without it
    finalizers = tuple(finalizer for finalizer in meta.finalizers if finalizer != NODECLASS_FINALIZER)
    if not has_finalizer:
        new_finalizers = (*finalizers, NODECLASS_FINALIZER)
        return (_build_finalizers_patch(node_class, new_finalizers, "it must exist until its nodes are terminated"),)
    blocking_claims = sorted({claim.name for claim in claims} | context.list_unreadable_names("NodeClaim"))
    if not blocking_claims:
        return (_build_finalizers_patch(node_class, finalizers, "it has no nodes"),)
    message = f"waiting for NodeClaims to be deleted: {join_names(blocking_claims, _MAX_NAMES_IN_MESSAGE)}"
    return (build_event("EC2NodeClass", meta, WAITING_REASON, message, context.now),)


def find_releasable_node_classes(cluster: ClusterSnapshot) -> frozenset[str]:
    """Return the names of deleted node classes that no NodeClaim uses; none if a NodeClaim cannot be read."""
    if any(problem.kind == "NodeClaim" for problem in cluster.problems) or cluster.is_unserved(
        "nodeclaims.karpenter.sh"
    ):
        return frozenset()
    used = {claim.node_class.name for claim in cluster.node_claims}
    return (
        frozenset(node_class.name for node_class in cluster.node_classes if node_class.meta.deleted_at is not None)
        - used
    )


def is_finalizer_removal(action: Action, names: Collection[str]) -> bool:
    """Return whether *action* removes the finalizer of one of the node classes *names*."""
    return isinstance(action, PatchMetadata) and action.kind == "EC2NodeClass" and action.name in names


def _build_finalizers_patch(node_class: EC2NodeClass, finalizers: tuple[str, ...], message: str) -> PatchMetadata:
    return PatchMetadata(
        kind="EC2NodeClass",
        name=node_class.name,
        resource_version=node_class.meta.resource_version,
        finalizers=finalizers,
        message=message,
    )
