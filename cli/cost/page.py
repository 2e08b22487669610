"""The costs of several days, summed, as a page for people and as a document for programs."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from cli.cost.commitments.page import build_usage_document, render_usage
from cli.planning.table import TableOptions
from cli.terminal.bars import draw_bar
from cli.terminal.table import TableLayout, render_table
from cli.terminal.text import Palette, wrap_text
from shared.model.core.formatting import format_count, format_usd
from shared.report.costs.commitment_usage import CommitmentUsage
from shared.report.costs.cost_breakdown import CostBreakdown, compute_breakdown
from shared.report.costs.daily_report import DailyReport, ExpensiveNode, is_complete

MAX_BAR_COLUMNS: Final = 20
"""The width of the longest bar."""
_MAX_EXPENSIVE_NODES: Final = 5
_DAYS: Final = TableLayout(
    headings=("DAY", "", "NODE HOURS", "USD", "SAVED", "BY COMMANDS", "IDLE"),
    alignment="<<>>>>>",
    droppable=("", "NODE HOURS", "BY COMMANDS"),
)


class CostTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The costs of several days, in total and by group."""

    days: tuple[DailyReport, ...]
    """Oldest first, at least one."""
    group_key: str
    label: str
    parts: tuple[CostBreakdown, ...]
    """Most expensive first."""
    commitments: CommitmentUsage | None = None
    """None: no commitments document was given."""

    def sum_days(self, amount: Callable[[DailyReport], float]) -> float:
        """Return the sum of *amount* over the days."""
        return round(sum(map(amount, self.days)), 6)


def sum_costs(days: tuple[DailyReport, ...], group_key: str, commitments: CommitmentUsage | None = None) -> CostTotals:
    """Sum *days*, grouped *group_key* one of `GROUP_KEYS`."""
    return CostTotals(
        days=days,
        group_key=group_key,
        label=days[-1].label,
        parts=compute_breakdown(days, group_key),
        commitments=commitments,
    )


def _build_node_document(node: ExpensiveNode) -> dict[str, Any]:
    return {
        "nodeClaim": node.claim,
        "instanceId": node.instance,
        "nodePool": node.pool,
        "instanceType": node.instance_type,
        "capacityType": node.capacity_type,
        "hours": node.hours,
        "usd": node.usd,
        "idleUsd": node.idle_usd,
    }


def build_cost_document(cost_totals: CostTotals) -> dict[str, Any]:
    """Return the JSON and YAML output."""
    return {
        "from": cost_totals.days[0].day,
        "to": cost_totals.days[-1].day,
        **_build_sums(cost_totals),
        "days": [
            {
                "day": report.day,
                "complete": is_complete(report),
                **_build_sums(msgspec.structs.replace(cost_totals, days=(report,))),
            }
            for report in cost_totals.days
        ],
        "by": cost_totals.group_key,
        "label": cost_totals.label,
        "parts": [msgspec.to_builtins(part) for part in cost_totals.parts],
        "mostExpensiveNodes": [_build_node_document(node) for node in cost_totals.days[-1].most_expensive_nodes],
        **(
            {"commitments": build_usage_document(cost_totals.commitments)}
            if cost_totals.commitments is not None
            else {}
        ),
    }


def _build_sums(cost_totals: CostTotals) -> dict[str, Any]:
    return {
        "usd": cost_totals.sum_days(lambda report: report.usd),
        "nodeHours": cost_totals.sum_days(lambda report: report.node_hours),
        "savedBySpotUsd": cost_totals.sum_days(lambda report: report.saved_by_spot_usd),
        "savedByCommandsUsd": cost_totals.sum_days(lambda report: report.saved_by_commands_usd),
        "commands": sum(report.commands for report in cost_totals.days),
        "idleUsd": cost_totals.sum_days(lambda report: report.idle_usd),
        "unpricedHours": cost_totals.sum_days(lambda report: sum(share.unpriced_hours for share in report.shares)),
    }


def render_cost_page(cost_totals: CostTotals, palette: Palette, display: TableOptions) -> str:
    """Return the page for people."""
    parts = (
        _render_summary(cost_totals, palette, display),
        _render_parts(cost_totals, palette, display),
        _render_days(cost_totals, palette, display),
        _render_expensive_nodes(cost_totals.days[-1], palette, display),
        render_usage(cost_totals.commitments, palette, display) if cost_totals.commitments is not None else (),
    )
    blocks = [lines for part in parts if (lines := list(part))]
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"


def _render_summary(cost_totals: CostTotals, palette: Palette, display: TableOptions) -> Iterator[str]:
    sums, first, last = _build_sums(cost_totals), cost_totals.days[0].day, cost_totals.days[-1].day
    when = first if first == last else f"{format_count(len(cost_totals.days), 'day')}, {first} to {last}"
    total = f"{when}: {format_usd(sums['usd'])} for {sums['nodeHours']:,.0f} node hours"
    first_line, *other_lines = wrap_text(total, display.width, "")
    yield from (palette.colorize("bold", first_line), *other_lines)
    details = [
        f"{format_usd(sums['savedBySpotUsd'])} saved compared with on-demand",
        f"{format_usd(sums['savedByCommandsUsd'])} saved by {format_count(sums['commands'], 'disruption command')}",
        f"{format_usd(sums['idleUsd'])} idle{_format_percent(sums['idleUsd'], sums['usd'])}",
    ]
    if sums["unpricedHours"] >= 1:
        details.append(f"{sums['unpricedHours']:,.0f} node hours without a known price")
    yield from wrap_text("; ".join(details), display.width, "")
    if not is_complete(cost_totals.days[-1]):
        yield palette.colorize("dim", f"{last} is incomplete: until {cost_totals.days[-1].until:%H:%M} UTC")


def _render_parts(cost_totals: CostTotals, palette: Palette, display: TableOptions) -> Iterator[str]:
    max_usd = max((part.usd for part in cost_totals.parts), default=0.0)
    title = {"pool": "nodepool", "label": cost_totals.label or "label"}.get(
        cost_totals.group_key, cost_totals.group_key
    )
    headings = (title.upper(), "", "NODE HOURS", "USD", "SHARE", "SAVED", "IDLE")
    rows = [
        (
            part.name or "-",
            _draw_usd_bar(part.usd, max_usd),
            f"{part.node_hours:,.0f}",
            f"{part.usd:,.2f}",
            _format_percent(part.usd, cost_totals.sum_days(lambda day: day.usd)).strip(" ()") or "-",
            f"{part.on_demand_usd - part.usd:,.2f}",
            f"{part.idle_usd:,.2f}{_format_percent(part.idle_usd, part.usd)}",
        )
        for part in cost_totals.parts[: display.max_rows]
    ]
    layout = TableLayout(headings=headings, alignment="~<>>>>>", droppable=("", "NODE HOURS", "SHARE"))
    yield from render_table(layout, rows, palette, display.width)
    if display.max_rows is not None and len(cost_totals.parts) > display.max_rows:
        other_parts = cost_totals.parts[display.max_rows :]
        other_usd = format_usd(sum(part.usd for part in other_parts))
        yield palette.colorize("dim", f"… and {len(other_parts):,} more, {other_usd} in total (--all shows them)")


def _render_days(cost_totals: CostTotals, palette: Palette, display: TableOptions) -> Iterator[str]:
    if len(cost_totals.days) == 1:
        return
    max_usd = max(report.usd for report in cost_totals.days)
    rows = [
        (
            report.day,
            _draw_usd_bar(report.usd, max_usd),
            f"{report.node_hours:,.0f}",
            f"{report.usd:,.2f}",
            f"{report.saved_by_spot_usd:,.2f}",
            f"{report.saved_by_commands_usd:,.2f}",
            f"{report.idle_usd:,.2f}{_format_percent(report.idle_usd, report.usd)}",
        )
        for report in cost_totals.days
    ]
    yield from render_table(_DAYS, rows, palette, display.width)


def _render_expensive_nodes(last_report: DailyReport, palette: Palette, display: TableOptions) -> Iterator[str]:
    nodes = last_report.most_expensive_nodes[: None if display.max_rows is None else _MAX_EXPENSIVE_NODES]
    if not nodes:
        return
    headings = (f"MOST EXPENSIVE {last_report.day}", "TYPE", "NODEPOOL", "HOURS", "USD", "IDLE")
    rows = [
        (
            node.claim,
            f"{node.instance_type} {node.capacity_type}",
            node.pool,
            f"{node.hours:.1f}",
            f"{node.usd:.2f}",
            f"{node.idle_usd:.2f}{_format_percent(node.idle_usd, node.usd)}",
        )
        for node in nodes
    ]
    layout = TableLayout(headings=headings, alignment="~<<>>>", droppable=("HOURS", "NODEPOOL"))
    yield from render_table(layout, rows, palette, display.width)


def _draw_usd_bar(usd: float, max_usd: float) -> str:
    """Draw *usd* as a bar; *max_usd* is `MAX_BAR_COLUMNS` columns long."""
    return draw_bar(usd / max_usd if max_usd > 0 else 0.0, MAX_BAR_COLUMNS, unfilled="")


def _format_percent(part: float, total: float) -> str:
    return f" ({100 * part / total:.0f}%)" if total else ""
