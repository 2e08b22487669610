"""The page and the document of `joiner hub`."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from cli.hub.cluster_summary import ClusterSummary
from cli.hub.session import HubRow, HubView
from cli.terminal.table import TableLayout, render_table
from cli.terminal.text import Palette
from shared.model.core.formatting import format_count, format_elapsed, format_usd, format_usd_per_hour
from shared.model.core.units import format_instant

SILENT_AFTER: Final = timedelta(hours=2)
"""`catalog` writes an entry each hour: without a newer one, Joiner does not run in the cluster."""
UNKNOWN: Final = "?"
_CODE_LENGTH: Final = 8
_LAYOUT: Final = TableLayout(
    alignment="<>>>>>>>><<>",
    headings=(
        "CLUSTER",
        "NODES",
        "NODEPOOLS",
        "PRICE",
        "DAY",
        "MONTH",
        "PENDING",
        "PAUSES",
        "DRIFTED",
        "KUBERNETES",
        "CODE",
        "LAST ENTRY",
    ),
    droppable=("CODE", "KUBERNETES", "NODEPOOLS"),
)


def build_hub_document(view: HubView) -> dict[str, Any]:
    """Return the JSON document of a hub."""
    return {
        "at": format_instant(view.at),
        "clusters": [
            {"name": row.cluster.name, "error": row.error or None}
            | ({} if row.summary is None else _build_summary_document(row.summary, view.at))
            for row in view.rows
        ],
    }


def _build_summary_document(summary: ClusterSummary, at: datetime) -> dict[str, Any]:
    costs = summary.costs
    return {
        "lastEntryAt": format_instant(summary.last_entry_at),
        "silent": _is_silent(summary, at),
        "fleetAt": None if summary.fleet_at is None else format_instant(summary.fleet_at),
        "nodes": summary.nodes,
        "usdPerHour": summary.usd_per_hour,
        "nodePools": None
        if summary.pools is None
        else [{"name": pool.name, "nodes": pool.nodes, "usdPerHour": pool.usd_per_hour} for pool in summary.pools],
        "dayUsd": None if costs is None else round(costs.today_usd, 6),
        "monthUsd": None if costs is None else round(costs.usd, 6),
        "billedUntil": None if costs is None else format_instant(costs.until),
        "pendingPods": summary.pending_pods,
        "pauses": None if summary.pauses is None else list(summary.pauses),
        "driftedNodes": summary.drifted_nodes,
        "kubernetesVersion": summary.kubernetes_version or None,
        "code": summary.code or None,
        "messages": list(summary.messages),
    }


def render_hub(view: HubView, palette: Palette, width: int | None) -> Iterator[str]:
    """Yield the lines of the page."""
    summaries = [(row.cluster.name, row.summary) for row in view.rows if row.summary is not None]
    if summaries:
        cells = [_build_cells(name, summary, view.at) for name, summary in summaries]
        colors = ["yellow" if _is_silent(summary, view.at) else "" for _, summary in summaries]
        yield from render_table(_LAYOUT, cells, palette, width, colors=colors)
    for row in view.rows:
        if row.summary is None:
            yield palette.colorize("red", f"{row.cluster.name}  could not be read: {row.error}")
    yield ""
    yield _describe_total([summary for _, summary in summaries], view.rows)
    for name, summary in summaries:
        yield from _list_remarks(name, summary, view.at)


def _build_cells(name: str, summary: ClusterSummary, at: datetime) -> tuple[str, ...]:
    costs = summary.costs
    return (
        name,
        _format_number(summary.nodes),
        _format_number(None if summary.pools is None else len(summary.pools)),
        UNKNOWN if summary.usd_per_hour is None else format_usd_per_hour(summary.usd_per_hour),
        UNKNOWN if costs is None else format_usd(costs.today_usd),
        UNKNOWN if costs is None else format_usd(costs.usd),
        f"{summary.pending_pods:,}",
        _format_number(None if summary.pauses is None else len(summary.pauses)),
        _format_number(summary.drifted_nodes),
        summary.kubernetes_version or UNKNOWN,
        summary.code[:_CODE_LENGTH] or UNKNOWN,
        f"{format_elapsed(at - summary.last_entry_at)} ago",
    )


def _describe_total(summaries: list[ClusterSummary], rows: tuple[HubRow, ...]) -> str:
    """Return the sums of the clusters that could be read; an unknown amount counts as zero."""
    nodes = sum(summary.nodes or 0 for summary in summaries)
    usd_per_hour = sum(summary.usd_per_hour or 0.0 for summary in summaries)
    costs = [summary.costs for summary in summaries if summary.costs is not None]
    day, month = format_usd(sum(cost.today_usd for cost in costs)), format_usd(sum(cost.usd for cost in costs))
    unread_count = len(rows) - len(summaries)
    unread = f"; without {format_count(unread_count, 'cluster')} that could not be read" if unread_count else ""
    return (
        f"{format_count(len(summaries), 'cluster')}: {format_count(nodes, 'node')}, "
        f"{format_usd_per_hour(usd_per_hour)}, {day} today, {month} this month{unread}"
    )


def _list_remarks(name: str, summary: ClusterSummary, at: datetime) -> Iterator[str]:
    if _is_silent(summary, at):
        age = format_elapsed(at - summary.last_entry_at)
        yield f"{name}: no journal entry for {age}: run `joiner doctor` for this cluster"
    for pause in summary.pauses or ():
        yield f"{name}: paused: {pause}"


def _is_silent(summary: ClusterSummary, at: datetime) -> bool:
    return at - summary.last_entry_at > SILENT_AFTER


def _format_number(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"
