"""The API's rate limits: one token bucket per kind of call, refilled by the virtual clock. Off unless switched on."""

from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec

from shared.errors import Throttled
from sim.clock import Clock

Kind = Literal["read", "mutate", "run", "terminate", "tag"]


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """Calls per second in the long run, and how many at once."""

    per_second: float
    burst: int


LIMITS: Final[dict[Kind, Limit]] = {
    "read": Limit(per_second=20, burst=100),
    "mutate": Limit(per_second=5, burst=50),
    "run": Limit(per_second=2, burst=5),
    "terminate": Limit(per_second=5, burst=100),
    "tag": Limit(per_second=10, burst=100),
}
KINDS: Final[dict[str, Kind]] = {
    "CreateFleet": "run",
    "RunInstances": "run",
    "TerminateInstances": "terminate",
    "CreateTags": "tag",
}


def kind_of(action: str) -> Kind:
    """Answer whose bucket pays for *action*, which is spelled as EC2 spells it."""
    reads = action.startswith(("Describe", "Get", "List"))
    return KINDS.get(action, "read" if reads else "mutate")


class Throttle:
    """The buckets of one account in one region."""

    def __init__(self, clock: Clock) -> None:
        """Begin switched off, with full buckets."""
        self.on = False
        self._clock = clock
        self._levels: dict[Kind, tuple[float, datetime]] = {}
        self._refusals: dict[str, int] = {}

    def refuse_next(self, action: str, times: int) -> None:
        """Refuse the next *times* calls of *action*, switched on or not."""
        self._refusals[action] = times

    def admit(self, action: str) -> None:
        """Let one call pass.

        Raises:
            Throttled: it may not; nothing was done.
        """
        if self._refusals.get(action, 0) > 0:
            self._refusals[action] -= 1
            raise Throttled(f"RequestLimitExceeded: Request limit exceeded. ({action})")
        if self.on:
            self._pay(action, kind_of(action))

    def _pay(self, action: str, kind: Kind) -> None:
        limit, now = LIMITS[kind], self._clock.now()
        level, since = self._levels.get(kind, (float(limit.burst), now))
        level = min(limit.burst, level + (now - since).total_seconds() * limit.per_second)
        if level < 1:
            self._levels[kind] = (level, now)
            wait = timedelta(seconds=(1 - level) / limit.per_second)
            raise Throttled(f"RequestLimitExceeded: Request limit exceeded. ({action})", retry_after=wait)
        self._levels[kind] = (level - 1, now)
