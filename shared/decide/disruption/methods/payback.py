"""Payback period of a replacement: the new nodes run beside the old ones until these are drained.

It is unknown how long the cluster will stay as it is. Nodes are therefore replaced once they have been quiet for so
long that the savings lost in that time equal the cost of the replacement (the ski rental problem): in any
future, replacements never cost more than was wasted while nothing happened. A deletion costs nothing and waits for
nothing; a replacement that saves half waits as long as the nodes run side by side, and one that saves a tenth waits
nine times as long.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from shared.decide.disruption.candidates import Candidate
from shared.model.core.formatting import format_elapsed, format_usd_per_hour
from shared.model.core.metadata import find_condition

NODE_OVERLAP_PERIOD: Final = timedelta(minutes=3)
"""How long both nodes are paid for: the instance boots, and pods move one after the other."""
MAX_PAYBACK_PERIOD: Final = timedelta(days=1)


def explain_payback_wait(
    targets: Iterable[Candidate],
    savings_usd_per_hour: float,
    price_usd_per_hour: float,
    now: datetime,
    overlap: timedelta,
) -> str:
    """Return why replacing *targets* does not pay yet; "" if it does, or if there is no new node."""
    new_price = price_usd_per_hour - savings_usd_per_hour
    if not overlap or new_price <= 0 or savings_usd_per_hour <= 0:
        return ""
    payback_period, quiet_period = (
        compute_payback_period(savings_usd_per_hour, new_price, overlap),
        compute_quiet_period(targets, now),
    )
    if quiet_period >= payback_period:
        return ""
    return (
        f"saves {format_usd_per_hour(savings_usd_per_hour)}, which pays for the replacement after "
        f"{format_elapsed(payback_period)} "
        f"without pod changes; the last change was {format_elapsed(quiet_period)} ago"
    )


def compute_payback_period(savings_usd_per_hour: float, new_price_usd_per_hour: float, overlap: timedelta) -> timedelta:
    """Return the time until *savings_usd_per_hour* pay for the new nodes during *overlap*."""
    return timedelta(
        seconds=min(
            MAX_PAYBACK_PERIOD.total_seconds(), overlap.total_seconds() * new_price_usd_per_hour / savings_usd_per_hour
        )
    )


def compute_quiet_period(targets: Iterable[Candidate], now: datetime) -> timedelta:
    """Return how long no pod has been added to *targets*, completed or begun to leave; unknown counts as long."""
    return min(
        (now - since for target in targets if (since := _find_quiet_since(target)) is not None),
        default=MAX_PAYBACK_PERIOD,
    )


def _find_quiet_since(candidate: Candidate) -> datetime | None:
    initialized = find_condition(candidate.claim.conditions, "Initialized")
    event_times = (candidate.claim.last_pod_event_at, initialized.since if initialized is not None else None)
    return max((since for since in event_times if since is not None), default=None)
