"""Interruption messages of AWS about an instance."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import msgspec

InterruptionKind: TypeAlias = Literal[
    "spot_interrupted",
    "rebalance_recommendation",
    "instance_stopped",
    "instance_terminated",
    "scheduled_change",
    "scheduled_change_cancelled",
    "capacity_reservation_interrupted",
]
INTERRUPTION_KIND_BY_INSTANCE_STATE: Final[Mapping[str, InterruptionKind]] = MappingProxyType(
    {
        "stopping": "instance_stopped",
        "stopped": "instance_stopped",
        "shutting-down": "instance_terminated",
        "terminated": "instance_terminated",
    }
)


class InterruptionMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One interruption message; instance ids are sorted."""

    kind: InterruptionKind
    instance_ids: tuple[str, ...]
    at: datetime | None = None
    """When the message was sent."""
    begins_at: datetime | None = None
    """When a scheduled change begins."""
    event: str = ""
    """The id of a scheduled change."""


class UnknownMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that requires no action, and the reason."""

    reason: str
    harmless: bool = False
    """The message is well-formed and known: the sender is not at fault."""
