"""Offerings of new nodes as text: in events, in reasons and in plans."""

from shared.model.core.formatting import format_usd_per_hour, join_names
from shared.model.decisions.placement import CheapestOffering


def format_offering(offering: CheapestOffering) -> str:
    """Return an offering with its price, the expected cost of interruptions in it, and commitments that pay for it.

    >>> offering = CheapestOffering(
    ...     instance_type="m5.large", zone="us-east-1a", capacity_type="on-demand", price_usd_per_hour=0.0
    ... )
    >>> format_offering(offering)
    'm5.large on-demand in us-east-1a ($0.0000/h)'
    """
    price = format_usd_per_hour(offering.price_usd_per_hour)
    if offering.interruption_usd_per_hour:
        price += f", with {format_usd_per_hour(offering.interruption_usd_per_hour)} for interruptions"
    if offering.commitments:
        paid = format_usd_per_hour(offering.list_usd_per_hour - offering.price_usd_per_hour)
        price += f"; {join_names(offering.commitments)} pays {paid}, so it costs less than other offerings"
    return f"{offering.instance_type} {offering.capacity_type} in {offering.zone} ({price})"
