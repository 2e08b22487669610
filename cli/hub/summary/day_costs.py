"""The daily cost report of a cluster for a day, and that of the day before."""

from datetime import date, timedelta

import msgspec

from shared.errors import NotFound
from shared.ports.storage import Bucket
from shared.report.costs.daily_report import DailyReport, is_complete
from shared.report.costs.ledger_store import COSTS_PREFIX


class DayCosts(msgspec.Struct, frozen=True, kw_only=True):
    """The reports; None: there is none, or it cannot be decoded."""

    report: DailyReport | None = None
    previous: DailyReport | None = None
    error: str = ""
    """Why there is no report."""

    @property
    def change_usd(self) -> float | None:
        """How much more was paid than on the day before; None if a report is missing, or covers a part of its day."""
        report, previous = self.report, self.previous
        if report is None or previous is None or not is_complete(report) or not is_complete(previous):
            return None
        return report.paid_usd - previous.paid_usd


def read_day_costs(bucket: Bucket, day: date) -> DayCosts:
    """Read the reports of *day* and of the day before.

    Raises:
        Fault: the bucket cannot be read.
    """
    report, error = _read_report(bucket, day)
    previous, _ = _read_report(bucket, day - timedelta(days=1))
    return DayCosts(report=report, previous=previous, error=error)


def _read_report(bucket: Bucket, day: date) -> tuple[DailyReport | None, str]:
    key = f"{COSTS_PREFIX}{day}.json"
    try:
        return msgspec.json.decode(bucket.get(key), type=DailyReport), ""
    except NotFound:
        return None, f"no cost report for {day}: Joiner writes it after 01:00 UTC of the next day"
    except msgspec.DecodeError as error:
        return None, f"{key}: written by another version of Joiner, or damaged: {error}"
