"""When an exchange has earned what it costs: new nodes run beside the old ones until these are drained.

Nobody knows for how long a fleet will stay as it is. So nodes are exchanged once they were quiet for so long that what
the exchange would have saved meanwhile pays for it, as one buys skis when the rent paid so far would have bought them:
whatever happens next, no more is paid for exchanges than was wasted while nothing happened. A deletion costs nothing,
and waits for nothing; what saves half waits as long as nodes run side by side, what saves a tenth nine times as long.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from shared.disruption.candidates import Candidate
from shared.model.objects import condition

OVERLAP: Final = timedelta(minutes=3)
"""So long both are paid for: a machine boots, pods move one after the other."""
LONG: Final = timedelta(days=1)


def too_soon(targets: Iterable[Candidate], saved: float, price: float, now: datetime, overlap: timedelta) -> str:
    """Say why it does not pay yet to exchange *targets*, which cost *price*; "" if it does, or nothing new comes."""
    new = price - saved
    if not overlap or new <= 0 or saved <= 0:
        return ""
    needed, quiet = earned_after(saved, new, overlap), quiet_for(targets, now)
    if quiet >= needed:
        return ""
    return (
        f"would save ${saved:.4f} per hour, which pays after {_minutes(needed)} without change; now {_minutes(quiet)}"
    )


def earned_after(saved: float, new: float, overlap: timedelta) -> timedelta:
    """Answer how long it takes until *saved* USD per hour make up for what costs *new* during *overlap*."""
    return timedelta(seconds=min(LONG.total_seconds(), overlap.total_seconds() * new / saved))


def quiet_for(targets: Iterable[Candidate], now: datetime) -> timedelta:
    """Answer for how long no pod has come to any of *targets*, ended or begun to go; what says nothing of it: long."""
    return min((now - since for one in targets if (since := _quiet_since(one)) is not None), default=LONG)


def _quiet_since(one: Candidate) -> datetime | None:
    initialized = condition(one.claim.conditions, "Initialized")
    known = (one.claim.last_pod_event_at, initialized.since if initialized is not None else None)
    return max((since for since in known if since is not None), default=None)


def _minutes(some: timedelta) -> str:
    return f"{some.total_seconds() / 60:.0f} min"
