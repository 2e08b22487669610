"""What a sweep says of every node, and what it does."""

from typing import Literal, TypeAlias

import msgspec

from shared.disruption.candidates import Blocked
from shared.model.action import Action


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A node that might go and is not worth it, or not yet."""

    node: str
    reason: str
    message: str

    @property
    def verdict(self) -> Literal["kept"]:
        """In one word."""
        return "kept"

    @property
    def why(self) -> str:
        """Reason and message."""
        return f"{self.reason}: {self.message}"


class Disrupted(msgspec.Struct, frozen=True, kw_only=True):
    """A node that is on its way out by this sweep's decision."""

    node: str
    reason: str
    message: str
    price_usd_per_hour: float = 0.0
    """What is saved."""

    @property
    def verdict(self) -> Literal["disrupted"]:
        """In one word."""
        return "disrupted"

    @property
    def why(self) -> str:
        """Reason and message."""
        return f"{self.reason}: {self.message}"


Verdict: TypeAlias = Blocked | Kept | Disrupted


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """One look at all nodes; a verdict for each, sorted by the node's name."""

    actions: tuple[Action, ...] = ()
    verdicts: tuple[Verdict, ...] = ()

    def disrupted(self) -> tuple[str, ...]:
        """Answer the names of the nodes that go."""
        return tuple(one.node for one in self.verdicts if isinstance(one, Disrupted))
