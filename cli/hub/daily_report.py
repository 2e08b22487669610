"""The daily report of many clusters: what each of them cost on a day, and how it is now; as Markdown and as JSON."""

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any, Final

import msgspec

from cli.hub.page import UNKNOWN, build_hub_document, list_remarks
from cli.hub.session import HubRow, HubView
from shared.model.core.formatting import format_count, format_usd, format_usd_per_hour
from shared.model.core.units import format_instant
from shared.report.costs.daily_report import DailyReport, is_complete

_ESCAPED_CHARACTERS: Final = "\\`*_[]<>|"
_CODE_LENGTH: Final = 8


class DayTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The sums over the clusters that have a report of the day; None: none has."""

    usd: float | None
    change_usd: float | None
    """Of the clusters with complete reports of both days."""
    changed_clusters: int
    """The number of these clusters."""
    node_hours: float | None
    saved_by_spot_usd: float | None
    saved_by_commands_usd: float | None
    idle_usd: float | None
    missing: tuple[str, ...]
    """The clusters that are not in the sums."""


def compute_day_totals(view: HubView) -> DayTotals:
    """Return the sums of the day of *view*."""
    reports = [report for row in view.rows if (report := _get_report(row)) is not None]
    changes = [
        change for row in view.rows if row.day_costs is not None and (change := row.day_costs.change_usd) is not None
    ]

    def add(amount: Callable[[DailyReport], float]) -> float | None:
        return round(sum(map(amount, reports)), 6) if reports else None

    return DayTotals(
        usd=add(lambda report: report.paid_usd),
        change_usd=round(sum(changes), 6) if changes else None,
        changed_clusters=len(changes),
        node_hours=add(lambda report: report.node_hours),
        saved_by_spot_usd=add(lambda report: report.saved_by_spot_usd),
        saved_by_commands_usd=add(lambda report: report.saved_by_commands_usd),
        idle_usd=add(lambda report: report.idle_usd),
        missing=tuple(row.cluster.name for row in view.rows if _get_report(row) is None),
    )


def build_daily_document(view: HubView, day: date) -> dict[str, Any]:
    """Return the JSON document of the report; `now` is that of `joiner hub`."""
    totals = compute_day_totals(view)
    return {
        "day": f"{day}",
        "totals": {
            "usd": totals.usd,
            "changeUsd": totals.change_usd,
            "changedClusters": totals.changed_clusters,
            "nodeHours": totals.node_hours,
            "savedBySpotUsd": totals.saved_by_spot_usd,
            "savedByCommandsUsd": totals.saved_by_commands_usd,
            "idleUsd": totals.idle_usd,
            "missing": list(totals.missing),
        },
        "clusters": [_build_cluster_document(row) for row in view.rows],
        "now": build_hub_document(view),
    }


def _build_cluster_document(row: HubRow) -> dict[str, Any]:
    report = _get_report(row)
    document: dict[str, Any] = {"name": row.cluster.name, "error": _describe_missing(row) or None}
    if report is None or row.day_costs is None:
        return document
    change_usd = row.day_costs.change_usd
    return document | {
        "usd": round(report.paid_usd, 6),
        "changeUsd": None if change_usd is None else round(change_usd, 6),
        "complete": is_complete(report),
        "nodeHours": report.node_hours,
        "savedBySpotUsd": report.saved_by_spot_usd,
        "savedByCommandsUsd": report.saved_by_commands_usd,
        "idleUsd": report.idle_usd,
    }


def format_daily_subject(view: HubView, day: date) -> str:
    """Return the subject of a message, which is short for any number of clusters."""
    return f"Joiner: {_format_title(view, compute_day_totals(view), day)}"


def render_daily_report(view: HubView, day: date) -> Iterator[str]:
    """Yield the lines of the report in Markdown, which is also readable as plain text."""
    totals = compute_day_totals(view)
    yield f"# {_format_title(view, totals, day)} (UTC)"
    yield ""
    yield from (f"- {line}" for line in _describe_totals(view, totals, day))
    yield ""
    yield "## Clusters"
    yield ""
    for row in sorted(view.rows, key=_get_urgency):
        yield f"- **{escape_markdown(row.cluster.name)}**: {'. '.join(_describe_cluster(row))}"
    remarks = [
        f"- **{escape_markdown(row.cluster.name)}**: {escape_markdown(remark)}"
        for row in view.rows
        for remark in (*list_remarks(row, view.at), *(row.summary.messages if row.summary is not None else ()))
    ]
    if remarks:
        yield from ("", "## To check", "", *remarks)


def _format_title(view: HubView, totals: DayTotals, day: date) -> str:
    clusters, known_count = format_count(len(view.rows), "cluster"), len(view.rows) - len(totals.missing)
    if totals.usd is None:
        return f"cost of {clusters} on {day} unknown"
    return f"{clusters if not totals.missing else f'{known_count} of {clusters}'} cost ${totals.usd:,.2f} on {day}"


def _describe_totals(view: HubView, totals: DayTotals, day: date) -> Iterator[str]:
    if totals.missing:
        names = ", ".join(map(escape_markdown, totals.missing))
        yield f"Not included, because the cost of the day is unknown: {names}"
    if totals.node_hours is not None:
        yield f"{totals.node_hours:,.0f} node hours"
    if totals.change_usd is not None:
        clusters = format_count(totals.changed_clusters, "cluster")
        yield f"{_format_change(totals.change_usd)} compared with {day - timedelta(days=1)}, for {clusters}"
    if totals.saved_by_spot_usd is not None:
        yield f"Spot saved {format_usd(totals.saved_by_spot_usd)}, compared with on-demand prices"
    if totals.saved_by_commands_usd is not None:
        yield f"Disruption commands saved {format_usd(totals.saved_by_commands_usd)} until the end of the day"
    if totals.idle_usd is not None:
        yield f"{format_usd(totals.idle_usd)} was for capacity that no pod requested"
    yield f"The values after *Now* are those of {format_instant(view.at)}"


def _describe_cluster(row: HubRow) -> Iterator[str]:
    report, summary = _get_report(row), row.summary
    if summary is None:
        yield f"could not be read: {escape_markdown(row.error)}"
        return
    if report is None or row.day_costs is None:
        yield escape_markdown(_describe_missing(row))
    else:
        change_usd = row.day_costs.change_usd
        change = "" if change_usd is None else f" ({_format_change(change_usd)})"
        partly = "" if is_complete(report) else f", only from {report.since:%H:%M} to {report.until:%H:%M}"
        yield f"{format_usd(report.paid_usd)}{change} for {report.node_hours:,.0f} node hours{partly}"
    yield "Now: " + ", ".join(
        (
            _count(summary.nodes, "node"),
            UNKNOWN if summary.usd_per_hour is None else format_usd_per_hour(summary.usd_per_hour),
            _count(summary.pending_pods, "pending pod"),
            _count(None if summary.pauses is None else len(summary.pauses), "pause"),
            _count(summary.drifted_nodes, "drifted node"),
            f"Kubernetes {summary.kubernetes_version or UNKNOWN}",
            f"Joiner {summary.code[:_CODE_LENGTH] or UNKNOWN}",
        )
    )


def _describe_missing(row: HubRow) -> str:
    """Return why the cluster has no report of the day, "" if it has."""
    return row.error or ("" if row.day_costs is None else row.day_costs.error)


def _get_report(row: HubRow) -> DailyReport | None:
    return None if row.day_costs is None else row.day_costs.report


def _get_urgency(row: HubRow) -> tuple[int, float, str]:
    """Return a key that sorts unseen clusters first, then those without a report, then the most expensive ones."""
    report = _get_report(row)
    return (row.summary is not None) + (report is not None), -report.paid_usd if report else 0.0, row.cluster.name


def _format_change(amount_usd: float) -> str:
    return f"{'-' if amount_usd < 0 else '+'}{format_usd(abs(amount_usd))}" if round(amount_usd, 2) else "unchanged"


def _count(number: int | None, noun: str) -> str:
    return f"{UNKNOWN} {noun}s" if number is None else format_count(number, noun)


def escape_markdown(text: str) -> str:
    r"""Return *text* on one line, without a meaning in Markdown: reasons of pauses are written by people.

    >>> escape_markdown("[a](b) <c>")
    '\\[a\\](b) \\<c\\>'
    """
    line = " ".join(text.split())
    return "".join(f"\\{character}" if character in _ESCAPED_CHARACTERS else character for character in line)
