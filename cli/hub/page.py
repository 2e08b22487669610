"""The page and the document of `joiner hub`."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from cli.hub.next_steps import list_next_steps
from cli.hub.session import HubRow, HubView
from cli.hub.summary.cluster_summary import ClusterSummary
from cli.hub.totals import HubTotals, compute_totals, list_unknown
from cli.terminal.table import TableLayout, render_table
from cli.terminal.text import Palette
from shared.model.core.formatting import format_count, format_elapsed, format_usd, format_usd_per_hour
from shared.model.core.units import format_instant

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
        "totals": _build_totals_document(compute_totals(view.rows)),
        "clusters": [
            {"name": row.cluster.name, "error": row.error or None}
            | ({} if row.summary is None else _build_summary_document(row.summary))
            | {
                "remarks": list(list_remarks(row, view.at)),
                "nextSteps": [{"purpose": step.purpose, "command": step.command} for step in list_next_steps(row)],
            }
            for row in view.rows
        ],
    }


def _build_totals_document(totals: HubTotals) -> dict[str, Any]:
    return {
        "nodes": totals.nodes,
        "usdPerHour": totals.usd_per_hour,
        "dayUsd": totals.day_usd,
        "monthUsd": totals.month_usd,
        "pendingPods": totals.pending_pods,
        "driftedNodes": totals.drifted_nodes,
        "missing": [{"cluster": missing.cluster, "values": list(missing.values)} for missing in totals.missing],
    }


def _build_summary_document(summary: ClusterSummary) -> dict[str, Any]:
    costs = summary.costs
    return {
        "lastEntryAt": format_instant(summary.last_entry_at),
        "silent": summary.is_silent,
        "fleetAt": None if summary.fleet_at is None else format_instant(summary.fleet_at),
        "nodes": summary.nodes,
        "usdPerHour": summary.usd_per_hour,
        "nodePools": None
        if summary.pools is None
        else [{"name": pool.name, "nodes": pool.nodes, "usdPerHour": pool.usd_per_hour} for pool in summary.pools],
        "dayUsd": None if costs.day_usd is None else round(costs.day_usd, 6),
        "monthUsd": None if costs.month_usd is None else round(costs.month_usd, 6),
        "billedUntil": None if costs.billed_until is None else format_instant(costs.billed_until),
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
        colors = ["yellow" if summary.is_silent else "" for _, summary in summaries]
        yield from render_table(_LAYOUT, cells, palette, width, colors=colors)
    for row in view.rows:
        if row.summary is None:
            yield palette.colorize("red", f"{row.cluster.name}  could not be read: {row.error}")
    yield ""
    yield from describe_totals(view)
    for row in view.rows:
        yield from (f"{row.cluster.name}: {remark}" for remark in list_remarks(row, view.at))


def _build_cells(name: str, summary: ClusterSummary, at: datetime) -> tuple[str, ...]:
    costs = summary.costs
    return (
        name,
        _format_number(summary.nodes),
        _format_number(None if summary.pools is None else len(summary.pools)),
        UNKNOWN if summary.usd_per_hour is None else format_usd_per_hour(summary.usd_per_hour),
        _format_cost(costs.day_usd),
        _format_cost(costs.month_usd),
        _format_number(summary.pending_pods),
        _format_number(None if summary.pauses is None else len(summary.pauses)),
        _format_number(summary.drifted_nodes),
        summary.kubernetes_version or UNKNOWN,
        summary.code[:_CODE_LENGTH] or UNKNOWN,
        f"{format_elapsed(at - summary.last_entry_at)} ago",
    )


def describe_totals(view: HubView) -> Iterator[str]:
    """Yield the sums of the clusters that could be read, and the names of the others."""
    totals = compute_totals(view.rows)
    read_count = sum(row.summary is not None for row in view.rows)
    sums = (
        _count(totals.nodes, "node"),
        UNKNOWN if totals.usd_per_hour is None else format_usd_per_hour(totals.usd_per_hour),
        f"{_format_cost(totals.day_usd)} today",
        f"{_format_cost(totals.month_usd)} this month",
        _count(totals.pending_pods, "pending pod"),
        _count(totals.drifted_nodes, "drifted node"),
    )
    clusters = format_count(len(view.rows), "cluster")
    yield f"{clusters if read_count == len(view.rows) else f'{read_count} of {clusters}'}: {', '.join(sums)}"
    unread_names = [row.cluster.name for row in view.rows if row.summary is None]
    if unread_names:
        yield f"not in the totals, because they could not be read: {', '.join(unread_names)}"


def list_remarks(row: HubRow, at: datetime) -> Iterator[str]:
    """Yield what to know about a cluster that could be read."""
    summary = row.summary
    if summary is None:
        return
    if summary.is_silent:
        age = format_elapsed(at - summary.last_entry_at)
        yield f"no journal entry for {age}, the values are older: run `joiner doctor` for this cluster"
    if summary.costs.is_late and summary.costs.billed_until is not None:
        yield f"costs only until {format_instant(summary.costs.billed_until)}"
    if unknown := list_unknown(row):
        yield f"unknown, and not in the totals: {', '.join(unknown)}"
    for pause in summary.pauses or ():
        yield f"paused: {pause}"


def _count(number: int | None, noun: str) -> str:
    return f"{UNKNOWN} {noun}s" if number is None else format_count(number, noun)


def _format_number(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def _format_cost(amount_usd: float | None) -> str:
    return UNKNOWN if amount_usd is None else format_usd(amount_usd)
