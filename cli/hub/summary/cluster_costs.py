"""The costs of a cluster in the view of a hub: those of today and of the month, and which reports cannot be read."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from cli.hub.summary.read_only_bucket import ReadOnlyBucket
from shared.errors import NotFound
from shared.ports.storage import Bucket
from shared.report.costs.cost_ledger import CostLedger, get_day_start
from shared.report.costs.daily_report import DailyReport
from shared.report.costs.ledger_store import LEDGER_KEY
from shared.report.costs.month_costs import compute_month_costs

BILLING_DELAY: Final = timedelta(hours=3)
"""`catalog` bills each hour: costs that end earlier are incomplete."""


class ClusterCosts(msgspec.Struct, frozen=True, kw_only=True):
    """Costs of instances in USD; None is unknown."""

    day_usd: float | None = None
    """Of the current day, UTC; unknown if the billing is late."""
    month_usd: float | None = None
    billed_until: datetime | None = None
    is_late: bool = False
    """Whether hours are missing that should have been billed."""


def read_cluster_costs(bucket: Bucket, at: datetime, messages: list[str]) -> ClusterCosts:
    """Return the costs of the day and month of *at*; *messages* gets the reports that cannot be decoded.

    Raises:
        Fault: the bucket cannot be read.
    """
    costs = compute_month_costs(_CheckedBucket(bucket, messages), None, at)
    if costs is None:
        return ClusterCosts()
    day_start = get_day_start(at)
    is_late = at - costs.until > BILLING_DELAY
    is_billed_today, is_billed_this_month = costs.until > day_start, costs.until > day_start.replace(day=1)
    return ClusterCosts(
        day_usd=None if is_late else costs.today_usd if is_billed_today else 0.0,
        month_usd=costs.usd if is_billed_this_month or not is_late else None,
        billed_until=costs.until,
        is_late=is_late,
    )


class _CheckedBucket(ReadOnlyBucket):
    """A bucket that reports cost documents which cannot be decoded: their costs would be missing without a word."""

    def __init__(self, bucket: Bucket, messages: list[str]) -> None:
        self._bucket, self._messages = bucket, messages

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        """Return the keys that begin with *prefix*."""
        return self._bucket.list_keys(prefix)

    def get(self, key: str) -> bytes:
        """Return the object *key*; the messages get an error if it cannot be decoded."""
        try:
            body = self._bucket.get(key)
        except NotFound as fault:
            if key != LEDGER_KEY:
                self._messages.append(f"{key}: {fault}: its costs are missing")
            raise
        try:
            msgspec.json.decode(body, type=CostLedger if key == LEDGER_KEY else DailyReport)
        except msgspec.DecodeError as error:
            text = "its costs are missing" if key != LEDGER_KEY else "the costs are unknown"
            self._messages.append(f"{key}: written by another version of Joiner, or damaged: {text}: {error}")
        return body
