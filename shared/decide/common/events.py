"""Builders of events about NodeClaims, Nodes and other objects, for `kubectl describe`."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from shared.model.core.metadata import ObjectMeta
from shared.model.decisions.action import Action, PublishEvent
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.node import Node


def build_event(
    kind: str,
    meta: ObjectMeta,
    reason: str,
    message: str,
    at: datetime,
    *,
    type_: Literal["Normal", "Warning"] = "Normal",
) -> PublishEvent:
    """Return an event about one object."""
    return PublishEvent(
        kind=kind,
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        type=type_,
        reason=reason,
        message=message,
        at=at,
    )


def build_claim_events(
    claim: NodeClaim,
    nodes: Iterable[Node],
    reason: str,
    message: str,
    at: datetime,
    *,
    type_: Literal["Normal", "Warning"] = "Normal",
) -> tuple[PublishEvent, ...]:
    """Return the same event about a NodeClaim and about each of its Nodes."""
    return (
        build_event("NodeClaim", claim.meta, reason, message, at, type_=type_),
        *(build_event("Node", node.meta, reason, message, at, type_=type_) for node in nodes),
    )


def sort_events_last(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Return *actions* in their order, with events at the end."""
    return tuple(sorted(actions, key=lambda action: isinstance(action, PublishEvent)))
