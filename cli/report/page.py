"""A report as an HTML page, and as a JSON document with stable keys."""

from collections.abc import Iterator, Sequence
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
from cli.terminal.text import format_age
from shared.model.core.formatting import format_count, join_names

MAX_DECISIONS: Final = 400
"""Decisions on the page; the JSON document has all."""
MAX_LISTED_NAMES: Final = 12
UNKNOWN: Final = "Not known: no cycle of this time was read, which is not to say that nothing happened."
_MAX_SPAN_WITH_CLOCK_LABELS: Final = timedelta(days=2)


def render_report(report: FleetReport) -> str:
    """Render *report* as HTML."""
    title = f"Joiner: {format_time(report.began)} to {format_time(report.ended)} UTC"
    return render_html_page(
        title, render_tag("h1", "Joiner"), _render_header(report), _render_tiles(report), *_render_sections(report)
    )


def _render_header(report: FleetReport) -> Markup:
    functions = ", ".join(f"{number:,} {name}" for name, number in report.cycles.items())
    period = f"{format_time(report.began)} to {format_time(report.ended)} UTC"
    summary = f"{report.source or 'no journal'}, {period}; cycles: {functions or 'none'}"
    live = " Nodes and pods that wait are those of the live cluster." if report.is_live else ""
    unread_lines = [render_tag("p", f"not read: {source}", class_="no") for source in report.unreadable]
    return join_markup((render_tag("p", summary + live, class_="why"), *unread_lines))


def _render_tiles(report: FleetReport) -> Markup:
    price = sum(pool.usd_per_hour for pool in report.pools)
    tiles = (
        ("nodes", f"{len(report.nodes):,}" if report.cycles or report.is_live else "?"),
        ("$ per hour", f"{price:,.2f}"),
        ("$ for instances in this time", f"{report.usd:,.2f}"),
        ("$ per hour saved by commands", f"{report.saved_usd_per_hour:,.2f}"),
        ("launched", f"{sum(change.launched for change in report.changes):,}"),
        ("terminated", f"{sum(change.terminated for change in report.changes):,}"),
        ("pods without a place", f"{sum(len(group.names) for group in report.blocked_pods):,}"),
        ("cycles that failed", f"{sum(failure.times for failure in report.failures):,}"),
    )
    return render_tag(
        "dl",
        *(render_tag("div", render_tag("dt", name), render_tag("dd", value)) for name, value in tiles),
        class_="tiles",
    )


def _render_sections(report: FleetReport) -> Iterator[Markup]:
    span = TimeAxis(began=report.began, ended=report.ended, label=_build_label_formatter(report))
    if report.fleet:
        yield render_line_chart("Nodes", [("nodes", [(sample.at, sample.nodes) for sample in report.fleet])], span)
        yield render_line_chart(
            "Cost, $ per hour", [("instances", [(sample.at, sample.usd_per_hour) for sample in report.fleet])], span
        )
    if report.waiting:
        waiting_series = ("waiting", [(sample.at, sample.pods) for sample in report.waiting])
        unplaced_series = ("without a place", [(sample.at, sample.without_place) for sample in report.waiting])
        yield render_line_chart("Pods without a node", [waiting_series, unplaced_series], span)
    if any(change.launched or change.terminated for change in report.changes):
        launched_series = ("launched", [(change.at, float(change.launched)) for change in report.changes])
        terminated_series = ("terminated", [(change.at, float(change.terminated)) for change in report.changes])
        yield render_bar_chart(
            "Launches and terminations", launched_series, terminated_series, span, report.change_seconds
        )
    yield from _render_blocked(report)
    yield from _render_fleet(report)
    yield from _render_decisions(report)
    yield from _render_problems(report)


def _build_label_formatter(report: FleetReport) -> "Any":  # noqa: ANN401 - of an instant, a text
    time_format = "%b %d" if report.ended - report.began > _MAX_SPAN_WITH_CLOCK_LABELS else "%H:%M"
    return lambda at: f"{at.astimezone(UTC):{time_format}}"


def _render_fleet(report: FleetReport) -> Iterator[Markup]:
    yield render_tag("h2", "Fleet")
    if not report.pools:
        yield render_tag("p", "The journal tells of no machine." if report.cycles or report.is_live else UNKNOWN)
        return
    numbers = ("nodes", "$ per hour", "$ in this time", "launched", "terminated")
    columns = [TableColumn(title="NodePool"), TableColumn(title="capacity")]
    columns += [TableColumn(title=name, is_number=True) for name in numbers]
    yield render_html_table("By NodePool, dearest first", columns, map(_build_pool_cells, report.pools))
    columns = [
        TableColumn(title="type"),
        TableColumn(title="nodes", is_number=True),
        TableColumn(title="$ per hour", is_number=True),
    ]
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
    kinds = ", ".join(f"{number} {kind}" for kind, number in pool_row.by_capacity.items())
    numbers = (
        f"{pool_row.nodes:,}",
        f"{pool_row.usd_per_hour:.4f}",
        f"{pool_row.usd:.2f}",
        f"{pool_row.launched:,}",
        f"{pool_row.terminated:,}",
    )
    return pool_row.name or "unknown", kinds or "-", *numbers


def _render_pool_nodes(pool: str, nodes: Sequence[ReportedNode], now: datetime) -> Markup:
    columns = [TableColumn(title=title) for title in ("node", "type", "zone")]
    columns += [TableColumn(title="$ per hour", is_number=True), TableColumn(title="age", is_number=True)]
    columns += [TableColumn(title="why it stays, or goes")]
    name = pool or "unknown"
    rows = (_build_node_cells(node_row, now) for node_row in nodes)
    return render_details(
        f"Nodes of {name}: {len(nodes):,}", render_html_table(f"Nodes of NodePool {name}", columns, rows)
    )


def _build_node_cells(node_row: ReportedNode, now: datetime) -> Sequence[str]:
    kind = " ".join(filter(None, (node_row.instance_type or "unknown", node_row.capacity_type)))
    node_age = format_age(now - node_row.launched_at) if node_row.launched_at is not None else "-"
    price = f"{node_row.usd_per_hour:.4f}" if node_row.usd_per_hour else "-"
    return (
        render_with_reason(node_row.name or "not joined yet", node_row.claim),
        kind,
        node_row.zone or "-",
        price,
        node_age,
        render_with_reason(node_row.verdict, node_row.reason),
    )


def _render_blocked(report: FleetReport) -> Iterator[Markup]:
    yield render_tag("h2", "What is blocked, and why")
    if not (report.cycles or report.is_live):
        yield render_tag("p", UNKNOWN, class_="no")
        return
    if not (report.blocked_pods or report.blocked_nodes):
        yield render_tag("p", "Nothing: no pod waits without a place, and of no node it is said why it stays.")
    if report.blocked_pods:
        yield _render_groups("Pods without a place", "pods", report.blocked_pods)
    if report.blocked_nodes:
        yield _render_groups("Nodes that stay", "nodes", report.blocked_nodes)


def _render_groups(caption: str, noun: str, groups: Sequence[BlockedGroup]) -> Markup:
    columns = (TableColumn(title=noun, is_number=True), TableColumn(title="why"), TableColumn(title="which"))
    rows = (
        (
            f"{len(group.names):,}",
            join_markup((group.verdict, *(render_tag("div", reason, class_="why") for reason in group.reasons))),
            _render_names(group.names),
        )
        for group in groups
    )
    return render_html_table(caption, columns, rows)


def _render_names(names: Sequence[str]) -> Markup:
    if len(names) <= MAX_LISTED_NAMES:
        return join_markup((", ".join(names),))
    return render_details(join_names(names, 3), ", ".join(names))


def _render_decisions(report: FleetReport) -> Iterator[Markup]:
    yield render_tag("h2", "Decisions")
    if not report.decisions:
        yield render_tag("p", "None.")
        return
    shown_decisions = report.decisions[:MAX_DECISIONS]
    omitted_count = len(report.decisions) - len(shown_decisions)
    caption = "Newest first, in UTC" + (
        f"; {omitted_count:,} earlier ones are left out (-o json has them)" if omitted_count else ""
    )
    columns = (TableColumn(title="when"), TableColumn(title="who"), TableColumn(title="what, and why"))
    rows = (
        (
            format_time(decision.at),
            decision.function,
            render_with_reason(
                render_tag("span", decision.summary, class_="no") if decision.is_failed else decision.summary,
                decision.reason,
            ),
        )
        for decision in shown_decisions
    )
    yield render_html_table(caption, columns, rows)


def _render_problems(report: FleetReport) -> Iterator[Markup]:
    if report.problems:
        yield render_tag("h2", "Problems at the end")
        columns = (TableColumn(title="kind"), TableColumn(title="name"), TableColumn(title="what is wrong"))
        yield render_html_table(
            "Objects that were left out or told of", columns, ((p.kind, p.name, p.message) for p in report.problems)
        )
    if report.failures:
        yield render_tag("h2", "Cycles that failed")
        columns = (TableColumn(title="times", is_number=True), TableColumn(title="last"), TableColumn(title="error"))
        yield render_html_table(
            "By error",
            columns,
            ((f"{failure.times:,}", format_time(failure.last), failure.error) for failure in report.failures),
        )


def format_time(at: datetime) -> str:
    """Format *at* in UTC, to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def build_report_document(report: FleetReport) -> dict[str, Any]:
    """Return the JSON document: stable keys in camelCase, times in UTC, USD."""
    report_json: dict[str, Any] = _convert_to_camel_case(msgspec.to_builtins(report, builtin_types=(datetime,)))
    report_json["problems"] = [
        {"kind": problem.kind, "name": problem.name, "message": problem.message} for problem in report.problems
    ]
    for pool, pool_row in zip(report_json["pools"], report.pools, strict=True):
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
