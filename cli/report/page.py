"""A report as an HTML page, and as a JSON document with stable keys."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final

import msgspec

from cli.report.blocked import BlockedGroup
from cli.report.data import FleetReport
from cli.report.fleet import NodePoolRow, ReportedNode
from cli.terminal.charts import TimeAxis, render_bar_chart, render_line_chart
from cli.terminal.html import (
    Markup,
    TableColumn,
    join_markup,
    render_details,
    render_html_page,
    render_html_table,
    render_tag,
    render_with_reason,
)
from shared.model.core.formatting import format_count, format_elapsed, format_usd, format_usd_per_hour, join_names

MAX_DECISIONS: Final = 400
"""Decisions on the page; the JSON document has all."""
MAX_LISTED_NAMES: Final = 12
UNKNOWN: Final = "Unknown: the journal has no cycles of this time."
_MAX_SPAN_WITH_CLOCK_LABELS: Final = timedelta(days=2)


def render_report(report: FleetReport) -> str:
    """Render *report* as HTML."""
    period = f"{format_time(report.began)} to {format_time(report.ended)} UTC"
    title = f"Joiner: {report.cluster or report.source or 'cluster'}, {period}"
    heading = render_tag("h1", f"Joiner: {report.cluster or report.source or 'cluster'}")
    subheading = render_tag("p", period)
    return render_html_page(
        title, heading, subheading, _render_header(report), _render_tiles(report), *_render_sections(report)
    )


def _render_header(report: FleetReport) -> Markup:
    functions = ", ".join(f"{number:,} {name}" for name, number in report.cycles.items())
    summary = f"journal: {report.source or 'no journal'}; cycles: {functions or 'none'}"
    live = "; current nodes and pending pods: live cluster" if report.is_live else ""
    unread_lines = [render_tag("p", f"not read: {source}", class_="no") for source in report.unreadable]
    return join_markup((render_tag("p", summary + live, class_="why"), *unread_lines))


def _render_tiles(report: FleetReport) -> Markup:
    price = sum(pool.usd_per_hour for pool in report.pools)
    tiles = {
        "nodes": f"{len(report.nodes):,}" if report.cycles or report.is_live else "?",
        "cost": format_usd_per_hour(price),
        "instance cost in this period": format_usd(report.usd),
        "saved by disruption commands": format_usd_per_hour(report.saved_usd_per_hour),
        "launched": f"{sum(change.launched for change in report.changes):,}",
        "terminated": f"{sum(change.terminated for change in report.changes):,}",
        "unschedulable pods": f"{sum(len(group.names) for group in report.blocked_pods):,}",
        "failed cycles": f"{sum(failure.times for failure in report.failures):,}",
    }
    items = (render_tag("div", render_tag("dt", name), render_tag("dd", value)) for name, value in tiles.items())
    return render_tag("dl", *items, class_="tiles")


def _render_sections(report: FleetReport) -> Iterator[Markup]:
    span = TimeAxis(began=report.began, ended=report.ended, label=_build_label_formatter(report))
    if report.fleet:
        yield render_line_chart("Nodes", [("nodes", [(sample.at, sample.nodes) for sample in report.fleet])], span)
        prices = [(sample.at, sample.usd_per_hour) for sample in report.fleet]
        yield render_line_chart("Cost in $/h", [("instances", prices)], span)
    if report.waiting:
        pending_series = ("pending", [(sample.at, sample.pods) for sample in report.waiting])
        unschedulable_series = ("unschedulable", [(sample.at, sample.without_place) for sample in report.waiting])
        yield render_line_chart("Pending pods", [pending_series, unschedulable_series], span)
    if any(change.launched or change.terminated for change in report.changes):
        launched_series = ("launched", [(change.at, float(change.launched)) for change in report.changes])
        terminated_series = ("terminated", [(change.at, float(change.terminated)) for change in report.changes])
        title = "Launches and terminations"
        yield render_bar_chart(title, launched_series, terminated_series, span, report.change_seconds)
    yield from _render_blocked(report)
    yield from _render_fleet(report)
    yield from _render_decisions(report)
    yield from _render_problems(report)


def _build_label_formatter(report: FleetReport) -> Callable[[datetime], str]:
    time_format = "%b %d" if report.ended - report.began > _MAX_SPAN_WITH_CLOCK_LABELS else "%H:%M"
    return lambda at: f"{at.astimezone(UTC):{time_format}}"


def _build_columns(*titles: str, numbers: Sequence[str] = ()) -> list[TableColumn]:
    return [TableColumn(title=title, is_number=title in numbers) for title in titles]


def _render_fleet(report: FleetReport) -> Iterator[Markup]:
    yield render_tag("h2", "Fleet")
    if not report.pools:
        yield render_tag("p", "The journal has no nodes." if report.cycles or report.is_live else UNKNOWN)
        return
    numbers = ("nodes", "$/h", "$ in this period", "launched", "terminated")
    columns = _build_columns("NodePool", "capacity", *numbers, numbers=numbers)
    yield render_html_table("NodePools, most expensive first", columns, map(_build_pool_cells, report.pools))
    columns = _build_columns("instance type", "nodes", "$/h", numbers=numbers)
    rows = [(type_row.name, f"{type_row.nodes:,}", f"{type_row.usd_per_hour:.4f}") for type_row in report.types]
    yield render_details(
        f"{format_count(len(rows), 'instance type')} at the end",
        render_html_table("Instance types at the end", columns, rows),
    )
    by_pool = groupby(report.nodes, key=lambda node: node.pool)
    lists = [_render_pool_nodes(pool, list(nodes), report.ended) for pool, nodes in by_pool]
    if lists:
        yield render_details(f"{format_count(len(report.nodes), 'node')} at the end", *lists, is_open=len(lists) == 1)


def _build_pool_cells(pool_row: NodePoolRow) -> Sequence[str]:
    capacity_types = ", ".join(f"{number} {kind}" for kind, number in pool_row.by_capacity.items())
    costs = (f"{pool_row.usd_per_hour:.4f}", f"{pool_row.usd:.2f}")
    counts = (f"{pool_row.launched:,}", f"{pool_row.terminated:,}")
    return pool_row.name or "unknown", capacity_types or "-", f"{pool_row.nodes:,}", *costs, *counts


def _render_pool_nodes(pool: str, nodes: Sequence[ReportedNode], now: datetime) -> Markup:
    columns = _build_columns("node", "instance type", "zone", "$/h", "age", "disruption", numbers=("$/h", "age"))
    name = pool or "unknown"
    rows = (_build_node_cells(node_row, now) for node_row in nodes)
    table = render_html_table(f"Nodes of NodePool {name}", columns, rows)
    return render_details(f"NodePool {name}: {format_count(len(nodes), 'node')}", table)


def _build_node_cells(node_row: ReportedNode, now: datetime) -> Sequence[str]:
    return (
        render_with_reason(node_row.name or "no Node yet", node_row.claim),
        " ".join(filter(None, (node_row.instance_type or "unknown", node_row.capacity_type))),
        node_row.zone or "-",
        f"{node_row.usd_per_hour:.4f}" if node_row.usd_per_hour else "-",
        format_elapsed(now - node_row.launched_at) if node_row.launched_at is not None else "-",
        render_with_reason(node_row.verdict, node_row.reason),
    )


def _render_blocked(report: FleetReport) -> Iterator[Markup]:
    yield render_tag("h2", "Unschedulable pods and blocked nodes")
    if not (report.cycles or report.is_live):
        yield render_tag("p", UNKNOWN, class_="no")
        return
    if not (report.blocked_pods or report.blocked_nodes):
        yield render_tag("p", "None: all pods are schedulable, and no node has a reason against its disruption.")
    if report.blocked_pods:
        yield _render_groups("Unschedulable pods", "pods", report.blocked_pods)
    if report.blocked_nodes:
        yield _render_groups("Nodes that are not disrupted", "nodes", report.blocked_nodes)


def _render_groups(caption: str, noun: str, groups: Sequence[BlockedGroup]) -> Markup:
    rows = (
        (
            f"{len(group.names):,}",
            join_markup((group.verdict, *(render_tag("div", reason, class_="why") for reason in group.reasons))),
            _render_names(group.names),
        )
        for group in groups
    )
    return render_html_table(caption, _build_columns(noun, "reason", "names", numbers=(noun,)), rows)


def _render_names(names: Sequence[str]) -> Markup:
    all_names = ", ".join(names)
    return (
        join_markup((all_names,)) if len(names) <= MAX_LISTED_NAMES else render_details(join_names(names, 3), all_names)
    )


def _render_decisions(report: FleetReport) -> Iterator[Markup]:
    yield render_tag("h2", "Decisions")
    if not report.decisions:
        yield render_tag("p", "None.")
        return
    shown_decisions = report.decisions[:MAX_DECISIONS]
    omitted_count = len(report.decisions) - len(shown_decisions)
    omission = f"; {format_count(omitted_count, 'earlier decision')} omitted (-o json has all)" if omitted_count else ""
    rows = (
        (
            render_tag("span", format_time(decision.at), class_="word"),
            render_tag("span", decision.function, class_="word"),
            render_with_reason(
                render_tag("span", decision.summary, class_="no") if decision.is_failed else decision.summary,
                decision.reason,
            ),
        )
        for decision in shown_decisions
    )
    columns = _build_columns("time (UTC)", "function", "decision and reason")
    yield render_html_table(f"Newest first{omission}", columns, rows)


def _render_problems(report: FleetReport) -> Iterator[Markup]:
    if report.problems:
        yield render_tag("h2", "Problems at the end")
        rows = ((problem.kind, problem.name, problem.message) for problem in report.problems)
        yield render_html_table("Objects with errors", _build_columns("kind", "name", "problem"), rows)
    if report.failures:
        yield render_tag("h2", "Failed cycles")
        columns = _build_columns("cycles", "last (UTC)", "error", numbers=("cycles",))
        rows = ((f"{failure.times:,}", format_time(failure.last), failure.error) for failure in report.failures)
        yield render_html_table("By error", columns, rows)


def format_time(at: datetime) -> str:
    """Format *at* in UTC, to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def build_report_document(report: FleetReport) -> dict[str, Any]:
    """Return the JSON document: stable keys in camelCase, times in UTC, USD."""
    report_json: dict[str, Any] = _convert_to_camel_case(msgspec.to_builtins(report, builtin_types=(datetime,)))
    report_json["problems"] = [
        {"kind": problem.kind, "name": problem.name, "message": problem.message} for problem in report.problems
    ]
    for pool, pool_row in zip(report_json["nodePools"], report.pools, strict=True):
        pool["byCapacity"] = pool_row.by_capacity
    return report_json


def _convert_to_camel_case(data: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(data, dict):
        return {_convert_key(key): _convert_to_camel_case(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_convert_to_camel_case(item) for item in data]
    if isinstance(data, datetime):
        return data.astimezone(UTC)
    return round(data, 9) if isinstance(data, float) else data


def _convert_key(name: str) -> str:
    first, *other_parts = name.split("_")
    return first + "".join(part.capitalize() for part in other_parts)
