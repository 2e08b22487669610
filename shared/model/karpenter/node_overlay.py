"""NodeOverlays: prices and capacities that an operator sets instead of the cloud provider's."""

from decimal import Decimal
from typing import Literal, TypeAlias

import msgspec

from shared.model.core.devices import Device
from shared.model.core.metadata import Condition, ObjectMeta
from shared.model.core.requirements import ANYTHING, Requirements
from shared.model.core.resources import NONE, Resources


class PriceAdjustment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A change of a price, in exact decimals."""

    kind: Literal["absolute", "add", "percent"]
    amount: Decimal

    def compute_price(self, price_usd_per_hour: float) -> float:
        """Return the adjusted price instead of *price_usd_per_hour*, never below zero."""
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

    meta: ObjectMeta
    requirements: Requirements = ANYTHING
    adjustment: PriceAdjustment | None = None
    """None: prices are unchanged."""
    capacity: Resources = NONE
    """Extended resources only."""
    devices: tuple[Device, ...] | None = None
    """Devices that nodes of these instance types publish; None: the overlay declares none."""
    weight: int = 0
    refusal_message: str = msgspec.field(default="", name="refused")
    """Why the overlay is not used; "" if it can be used."""
    conditions: tuple[Condition, ...] = ()

    @property
    def name(self) -> str:
        """The overlay's name."""
        return self.meta.name


OverlayVerdict: TypeAlias = tuple[Literal["", "Conflict", "RuntimeValidation"], str]
"""Why an overlay is not used, as reason and message; both are "" if it is used."""
