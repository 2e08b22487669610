"""API rate limits: one token bucket per category of call, refilled by the virtual clock. Disabled by default."""

from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec

from shared.errors import Throttled
from sim.time.virtual_clock import Clock

CallCategory = Literal["read", "mutate", "run", "terminate", "tag"]


class RateLimit(msgspec.Struct, frozen=True, kw_only=True):
    """Sustained calls per second, and the burst: how many calls can be made at once."""

    per_second: float
    burst: int


RATE_LIMITS: Final[dict[CallCategory, RateLimit]] = {
    "read": RateLimit(per_second=20, burst=100),
    "mutate": RateLimit(per_second=5, burst=50),
    "run": RateLimit(per_second=2, burst=5),
    "terminate": RateLimit(per_second=5, burst=100),
    "tag": RateLimit(per_second=10, burst=100),
}
CATEGORY_BY_ACTION: Final[dict[str, CallCategory]] = {
    "CreateFleet": "run",
    "RunInstances": "run",
    "TerminateInstances": "terminate",
    "CreateTags": "tag",
}


def get_call_category(action: str) -> CallCategory:
    """Return the category of *action*, which is spelled as EC2 spells it."""
    is_read = action.startswith(("Describe", "Get", "List"))
    return CATEGORY_BY_ACTION.get(action, "read" if is_read else "mutate")


class RateLimiter:
    """The token buckets of one account in one region."""

    def __init__(self, clock: Clock) -> None:
        """Create the limiter disabled, with full buckets."""
        self.enabled = False
        self._clock = clock
        self._tokens_by_category: dict[CallCategory, tuple[float, datetime]] = {}
        self._rejections_by_action: dict[str, int] = {}

    def reject_next_calls(self, action: str, times: int = 1) -> None:
        """Reject the next *times* calls of *action*, also if the limits are disabled."""
        self._rejections_by_action[action] = times

    def check_call(self, action: str) -> None:
        """Count one call.

        Raises:
            Throttled: the call is rejected; nothing was done.
        """
        if self._rejections_by_action.get(action, 0) > 0:
            self._rejections_by_action[action] -= 1
            raise Throttled(f"RequestLimitExceeded: Request limit exceeded. ({action})")
        if self.enabled:
            self._take_token(action, get_call_category(action))

    def _take_token(self, action: str, category: CallCategory) -> None:
        limit, now = RATE_LIMITS[category], self._clock.get_time()
        tokens, updated_at = self._tokens_by_category.get(category, (float(limit.burst), now))
        tokens = min(limit.burst, tokens + (now - updated_at).total_seconds() * limit.per_second)
        if tokens < 1:
            self._tokens_by_category[category] = (tokens, now)
            retry_after = timedelta(seconds=(1 - tokens) / limit.per_second)
            raise Throttled(f"RequestLimitExceeded: Request limit exceeded. ({action})", retry_after=retry_after)
        self._tokens_by_category[category] = (tokens - 1, now)
