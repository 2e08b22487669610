"""EC2NodeClasses stay until the last of their claims is gone: without its class nobody knows how a node was made."""

from collections.abc import Collection, Iterable
from typing import Final

from shared.lifecycle.events import about
from shared.lifecycle.machines import View
from shared.model.action import Action, PatchMetadata
from shared.model.cluster import Cluster
from shared.model.labels import NODECLASS_FINALIZER
from shared.model.nodeclasses import EC2NodeClass
from shared.model.nodes import NodeClaim

WAITING: Final = "WaitingOnNodeClaimTermination"
_NAMED: Final = 5


def keep(node_class: EC2NodeClass, claims: Iterable[NodeClaim], view: View) -> tuple[Action, ...]:
    """Hold a class with a finalizer, and let go of one that is being deleted once it has no *claims*.

    Claims that cannot be read may be its own.
    """
    meta = node_class.meta
    is_held = NODECLASS_FINALIZER in meta.finalizers
    if is_held is (meta.deleted_at is None):
        return ()  # held while it is to stay, or let go
    finalizers = tuple(one for one in meta.finalizers if one != NODECLASS_FINALIZER)
    if not is_held:
        held = (*finalizers, NODECLASS_FINALIZER)
        return (_patched(node_class, held, "it must not go before its nodes"),)
    waiting = sorted({one.name for one in claims} | view.unread("NodeClaim"))
    if not waiting:
        return (_patched(node_class, finalizers, "it has no nodes any more"),)
    more = f" and {len(waiting) - _NAMED} more" if len(waiting) > _NAMED else ""
    message = f"waiting for NodeClaims to be gone: {', '.join(waiting[:_NAMED])}{more}"
    return (about("EC2NodeClass", meta, WAITING, message, view.now),)


def departing(cluster: Cluster) -> frozenset[str]:
    """Answer the names of classes that may go now: they are deleted, and no claim is or may be of theirs."""
    if any(one.kind == "NodeClaim" for one in cluster.problems) or cluster.lacks("nodeclaims.karpenter.sh"):
        return frozenset()
    used = {one.node_class.name for one in cluster.node_claims}
    return frozenset(one.name for one in cluster.node_classes if one.meta.deleted_at is not None) - used


def is_farewell(action: Action, names: Collection[str]) -> bool:
    """Whether *action* lets go of one of the classes called *names*."""
    return isinstance(action, PatchMetadata) and action.kind == "EC2NodeClass" and action.name in names


def _patched(node_class: EC2NodeClass, finalizers: tuple[str, ...], why: str) -> PatchMetadata:
    return PatchMetadata(
        kind="EC2NodeClass",
        name=node_class.name,
        resource_version=node_class.meta.resource_version,
        finalizers=finalizers,
        why=why,
    )
