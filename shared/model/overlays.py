"""NodeOverlays: what an operator knows better than the cloud's price list."""

from decimal import Decimal
from typing import Literal, TypeAlias

import msgspec

from shared.model.objects import Condition, Meta
from shared.model.requirements import ANYTHING, Requirements
from shared.model.resources import NONE, Resources


class Adjustment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What becomes of a price: exactly, in decimals."""

    kind: Literal["absolute", "add", "percent"]
    amount: Decimal

    def of(self, price_usd_per_hour: float) -> float:
        """Answer the price instead of *price_usd_per_hour*, never below zero."""
        match self.kind:
            case "absolute":
                return float(self.amount)
            case "add":
                return float(max(Decimal(0), Decimal(repr(price_usd_per_hour)) + self.amount))
            case "percent":
                factor = max(Decimal(0), 1 + self.amount / 100)
                return float(Decimal(repr(price_usd_per_hour)) * factor)


class NodeOverlay(msgspec.Struct, frozen=True, kw_only=True):
    """karpenter.sh/v1alpha1 NodeOverlay."""

    meta: Meta
    requirements: Requirements = ANYTHING
    adjustment: Adjustment | None = None
    """None: prices stay."""
    capacity: Resources = NONE
    """Extended resources only."""
    weight: int = 0
    refused: str = ""
    """Why it is not used, in words; "" if it can be."""
    conditions: tuple[Condition, ...] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.meta.name


Verdict: TypeAlias = tuple[Literal["", "Conflict", "RuntimeValidation"], str]
"""Why an overlay takes no part, as a reason and in words; two times "" if it does."""
