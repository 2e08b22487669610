"""Events about machines, for `kubectl describe`."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from shared.model.action import PublishEvent
from shared.model.nodes import Node, NodeClaim
from shared.model.objects import Meta


def about(
    kind: str, meta: Meta, reason: str, message: str, at: datetime, *, type_: Literal["Normal", "Warning"] = "Normal"
) -> PublishEvent:
    """Say something of one object."""
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


def about_machine(
    claim: NodeClaim,
    nodes: Iterable[Node],
    reason: str,
    message: str,
    at: datetime,
    *,
    type_: Literal["Normal", "Warning"] = "Normal",
) -> tuple[PublishEvent, ...]:
    """Say it of a NodeClaim and of its Nodes."""
    return (
        about("NodeClaim", claim.meta, reason, message, at, type_=type_),
        *(about("Node", node.meta, reason, message, at, type_=type_) for node in nodes),
    )
