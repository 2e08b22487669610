"""What a sweep says of every node."""

from typing import Literal, TypeAlias

import msgspec

from shared.disruption.candidates import Blocked


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
