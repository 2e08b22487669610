"""The daily cost reports in a folder or in a bucket."""

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from cli.journal.journal import S3_SCHEME, open_bucket
from cli.terminal.errors import InputError
from cli.terminal.stderr import show_progress
from shared.report.costs.cost_ledger import CostLedger, bill_until, get_day_start
from shared.report.costs.daily_report import DailyReport, build_daily_report
from shared.report.costs.ledger_store import COSTS_PREFIX, LEDGER_KEY
from shared.state.cluster_state import ClusterState

_REPORT_FILE_PATTERN: Final = re.compile(r"\d{4}-\d\d-\d\d\.json")
_LEDGER_FILE: Final = LEDGER_KEY.removeprefix(COSTS_PREFIX)


class CostReports(msgspec.Struct, frozen=True, kw_only=True):
    """The cost reports that were read."""

    days: tuple[DailyReport, ...] = ()
    """Oldest first; the last one may be today's, up to now."""
    ledger: CostLedger | None = None
    """The ledger of today; None if there is none."""
    messages: tuple[str, ...] = ()
    """The files that cannot be read, with the reason."""


def read_cost_reports(source: str, max_days: int) -> CostReports:
    """Read the last *max_days* reports from *source*: a folder, or ``s3://bucket``.

    Raises:
        InputError: The folder does not exist, or the bucket cannot be read.
    """
    with show_progress(f"reading the cost reports in {source}"):
        return _read_bucket(source, max_days) if source.startswith(S3_SCHEME) else _read_folder(source, max_days)


def with_today(cost_reports: CostReports, cluster_state: ClusterState, label: str, now: datetime) -> CostReports:
    """Return *cost_reports* with today up to *now*: from today's ledger, if there is one, and from the cluster."""
    today, ledger = get_day_start(now), cost_reports.ledger
    if ledger is None or ledger.day != today:
        ledger = CostLedger(since=today, until=today)
    last_report = cost_reports.days[-1] if cost_reports.days else None
    label_key = label or (last_report.label if last_report is not None else "")
    ledger = bill_until(ledger, (), cluster_state, label_key, now)
    today_report = build_daily_report(ledger, last_report.cluster if last_report is not None else "", label_key)
    earlier_reports = (report for report in cost_reports.days if report.day != today_report.day)
    return msgspec.structs.replace(cost_reports, days=(*earlier_reports, today_report), ledger=ledger)


def _read_folder(source: str, max_days: int) -> CostReports:
    folder = Path(source)
    if not folder.is_dir():
        raise InputError(f"--journal {source}: folder not found; name a folder with costs/, or s3://BUCKET")
    inner = folder / COSTS_PREFIX
    folder = inner if inner.is_dir() else folder
    return _read_reports(
        [path.name for path in folder.glob("*.json")], lambda name: (folder / name).read_bytes(), max_days
    )


def _read_bucket(source: str, max_days: int) -> CostReports:
    with open_bucket(source) as (bucket, prefix):
        root = f"{prefix.rstrip('/').removesuffix('journal').rstrip('/')}/{COSTS_PREFIX}".lstrip("/")
        names = [key.removeprefix(root) for key in bucket.list_keys(root)]
        return _read_reports(names, lambda name: bucket.get(f"{root}{name}"), max_days)


def _read_reports(names: Iterable[str], read_body: Callable[[str], bytes], reports: int) -> CostReports:
    days: list[DailyReport] = []
    messages: list[str] = []
    sorted_names = sorted(names)
    for name in [file_name for file_name in sorted_names if _REPORT_FILE_PATTERN.fullmatch(file_name)][-reports:]:
        try:
            days.append(msgspec.json.decode(read_body(name), type=DailyReport))
        except (msgspec.DecodeError, OSError) as error:
            messages.append(f"{name}: not a daily cost report: {error}")
    ledger = _read_ledger(read_body, messages) if _LEDGER_FILE in sorted_names else None
    if ledger is not None and ledger.until > ledger.since:
        last_day = days[-1] if days else None
        cluster, label = (last_day.cluster, last_day.label) if last_day is not None else ("", "")
        days.append(build_daily_report(ledger, cluster, label))
    return CostReports(days=tuple(days), ledger=ledger, messages=tuple(messages))


def _read_ledger(read_body: Callable[[str], bytes], messages: list[str]) -> CostLedger | None:
    try:
        return msgspec.json.decode(read_body(_LEDGER_FILE), type=CostLedger)
    except (msgspec.DecodeError, OSError) as error:
        messages.append(f"{_LEDGER_FILE}: not a cost ledger: {error}")
        return None
