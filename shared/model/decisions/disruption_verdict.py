"""Verdicts of a disruption run about nodes."""

from typing import Final, Literal, TypeAlias

import msgspec


class BlockedVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A node that no disruption method may disrupt."""

    node: str
    reason: str
    message: str

    @property
    def verdict(self) -> Literal["blocked"]:
        """The kind of verdict."""
        return "blocked"

    @property
    def summary(self) -> str:
        """The reason and the message."""
        return f"{self.reason}: {self.message}"


class KeptVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A node that could be disrupted, but disruption does not pay, or not yet."""

    node: str
    reason: str
    message: str

    @property
    def verdict(self) -> Literal["kept"]:
        """The kind of verdict."""
        return "kept"

    @property
    def summary(self) -> str:
        """The reason and the message."""
        return f"{self.reason}: {self.message}"


class DisruptedVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A node that is disrupted by the decision of this run."""

    node: str
    reason: str
    message: str
    price_usd_per_hour: float = 0.0
    """The price of the node in USD per hour."""

    @property
    def verdict(self) -> Literal["disrupted"]:
        """The kind of verdict."""
        return "disrupted"

    @property
    def summary(self) -> str:
        """The reason and the message."""
        return f"{self.reason}: {self.message}"


Verdict: TypeAlias = BlockedVerdict | KeptVerdict | DisruptedVerdict


MAX_NODES_WITH_EVENTS: Final = 30
"""Limit of nodes that get an event in one run, because each event costs some API calls.

The journal contains them all.
"""
SILENT_REASONS: Final = frozenset(
    ("Budget", "Deleting", "Expecting", "Nominated", "NotManaged", "NoNode", "NotInitialized", "NotConsolidatable")
)
"""Reasons that are reported on the NodePool instead, or that resolve by themselves."""
