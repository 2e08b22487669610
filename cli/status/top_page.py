"""The nodes as a table of any width, and as JSON."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import msgspec

from cli.facts.installation import Installation
from cli.facts.installation_page import render_installation_concerns
from cli.pause.text import render_pauses
from cli.status.fleet_bars import draw_fleet_bars
from cli.status.node_rows import NodeRow
from cli.terminal.bars import choose_bar_columns, draw_percent
from cli.terminal.table import TableLayout, render_table
from cli.terminal.text import Palette, truncate_text
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, format_elapsed, format_usd_per_hour, format_usd_per_month
from shared.model.core.resources import CPU, MEMORY, build_resources, format_quantities
from shared.model.core.units import HOURS_PER_MONTH, format_instant
from shared.model.kubernetes.pod_classes import is_provisionable
from shared.state.pauses import list_active_pauses

NODES_TABLE: Final = TableLayout(
    headings=(
        *("NODE", "STATE", "TYPE", "CAPACITY", "ZONE", "NODEPOOL"),
        *("$/H", "CPU", "MEM", "PODS", "AGE", "BLOCKED BY"),
    ),
    alignment="<<<<<<>>>>>~",
    min_flexible_width=20,
    droppable=("ZONE", "CAPACITY", "NODEPOOL", "AGE", "TYPE", "PODS", "MEM"),
)
BAR_TABLE: Final = msgspec.structs.replace(
    NODES_TABLE,
    min_flexible_width=10,
    droppable=("ZONE", "NODEPOOL", "CAPACITY", "TYPE", "BLOCKED BY", "AGE", "PODS", "MEM"),
)
"""The table of a terminal, where CPU and memory are bars."""
_COLORS_BY_STATE: Final = {"deleting": "yellow", "in-flight": "cyan", "not ready": "red", "drifted": "yellow"}


def build_top_document(cluster: ClusterSnapshot, rows: Sequence[NodeRow]) -> dict[str, Any]:
    """Return the JSON document."""
    has_prices = cluster.catalog is not None
    return {
        "at": format_instant(cluster.taken_at),
        "usdPerHour": round(sum(row.usd_per_hour for row in rows), 9) if has_prices else None,
        "nodes": [_build_node_document(row, has_prices=has_prices) for row in rows],
    }


def format_fleet_summary(cluster: ClusterSnapshot, rows: Sequence[NodeRow]) -> str:
    """Format a summary of the fleet on one line."""
    states = {name: sum(row.state == name for row in rows) for name in ("ready", *_COLORS_BY_STATE)}
    state_counts = ", ".join(f"{number:,} {name}" for name, number in states.items() if number)
    price = sum(row.usd_per_hour for row in rows)
    month_text = format_usd_per_month(HOURS_PER_MONTH * price)
    cost = f", {format_usd_per_hour(price)} ({month_text})" if cluster.catalog is not None else ""
    amounts = (("cpu", [row.cpu for row in rows]), ("memory", [row.memory for row in rows]))
    shares = [
        f", {name} {100 * sum(requested for requested, _ in pairs) / allocatable:.0f}%"
        for name, pairs in amounts
        if (allocatable := sum(total for _, total in pairs))
    ]
    pending_count = sum(is_provisionable(pod) for pod in cluster.pods)
    pods = f", {format_count(pending_count, 'pending pod')}" if pending_count else ""
    nodes = f"{format_count(len(rows), 'node')}{f' ({state_counts})' if state_counts else ''}"
    return f"{nodes}{cost}{''.join(shares)}{pods}"


def render_top(
    cluster: ClusterSnapshot,
    installation: Installation | None,
    rows: Sequence[NodeRow],
    palette: Palette,
    width: int | None,
    shown_rows: slice = slice(None),
    *,
    has_bars: bool = False,
    has_fleet_bars: bool = False,
) -> list[str]:
    """Render the summary, concerns and pauses, the headings, and one line for each of the *shown_rows* rows.

    With *has_bars*, for terminals, CPU and memory are bars; with *has_fleet_bars*, also those of all nodes.
    """
    bar_columns = choose_bar_columns(width) if has_bars else 0
    active_pauses, _ = list_active_pauses(cluster)
    warning_lines = [
        *render_installation_concerns(installation, cluster.taken_at, palette, width),
        *render_pauses(active_pauses, cluster.taken_at, palette, width),
    ]
    names = _get_names(rows, width)
    cells = [_build_cells(row, name, width, bar_columns) for row, name in zip(rows, names, strict=True)]
    colors = [_COLORS_BY_STATE.get(row.state, "") for row in rows]
    layout = BAR_TABLE if has_bars else NODES_TABLE
    table_lines = render_table(layout, cells, palette, width, colors=colors, shown_rows=shown_rows)
    summary_line = truncate_text(format_fleet_summary(cluster, rows), width)
    amounts = {CPU: [row.cpu for row in rows], MEMORY: [row.memory for row in rows]}
    bar_lines = draw_fleet_bars(amounts, width) if has_fleet_bars else []
    return [palette.colorize("bold", summary_line), *bar_lines, *warning_lines, *table_lines]


def format_short_age(passed: timedelta | None) -> str:
    """Format *passed*; an unknown age is a dash."""
    return "-" if passed is None else format_elapsed(passed)


def _get_names(rows: Sequence[NodeRow], width: int | None) -> list[str]:
    """Return the nodes' names; up to their first dot if the width is limited and the short names are unique."""
    short = [row.name.partition(".")[0] for row in rows]
    return [row.name for row in rows] if width is None or len(set(short)) < len(short) else short


def _build_cells(row: NodeRow, name: str, width: int | None, bar_columns: int) -> tuple[str, ...]:
    reason, message = row.keep_reason
    return (
        name,
        row.state,
        row.instance_type or "-",
        row.capacity_type or "-",
        row.zone or "-",
        row.pool or "-",
        f"{row.usd_per_hour:.4f}" if row.usd_per_hour else "-",
        draw_percent(row.cpu_share, bar_columns),
        draw_percent(row.memory_share, bar_columns),
        str(row.pods),
        format_short_age(row.age),
        f"{reason}: {message}" if reason and width is None else reason,
    )


def _build_node_document(row: NodeRow, *, has_prices: bool) -> dict[str, Any]:
    return {
        "node": row.name,
        "nodePool": row.pool,
        "state": row.state,
        "instanceType": row.instance_type,
        "capacityType": row.capacity_type,
        "zone": row.zone,
        "usdPerHour": round(row.usd_per_hour, 9) if has_prices else None,
        "cpu": _format_amounts(CPU, row.cpu),
        "memory": _format_amounts(MEMORY, row.memory),
        "pods": row.pods,
        "ageSeconds": None if row.age is None else int(row.age.total_seconds()),
        "blockedBy": {"reason": row.keep_reason[0], "message": row.keep_reason[1]} if row.keep_reason[0] else None,
    }


def _format_amounts(name: str, amounts: tuple[int, int]) -> dict[str, str]:
    requested, allocatable = (format_quantities(build_resources({name: amount})).get(name, "0") for amount in amounts)
    return {"requested": requested, "allocatable": allocatable}
