"""A report as an HTML page, and as a JSON document with stable keys."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from cli.report.data import FleetReport
from cli.terminal.charts import Chart, TimeAxis, draw_bar_chart, draw_line_chart
from cli.terminal.html import render_template
from shared.model.core.formatting import format_usd, format_usd_per_hour

MAX_DECISIONS: Final = 400
"""Decisions on the page; the JSON document has all."""
MAX_LISTED_NAMES: Final = 12
UNKNOWN: Final = "Unknown: the journal has no cycles of this time."
_MAX_SPAN_WITH_CLOCK_LABELS: Final = timedelta(days=2)


def render_report(report: FleetReport) -> str:
    """Render *report* as HTML."""
    return render_template(
        "report/report.html.jinja",
        report=report,
        tiles=_list_tiles(report),
        charts=list(_draw_charts(report)),
        format_time=format_time,
        max_decisions=MAX_DECISIONS,
        max_listed_names=MAX_LISTED_NAMES,
        unknown=UNKNOWN,
    )


def _list_tiles(report: FleetReport) -> dict[str, str]:
    return {
        "nodes": f"{len(report.nodes):,}" if report.cycles or report.is_live else "?",
        "cost": format_usd_per_hour(sum(pool.usd_per_hour for pool in report.pools)),
        "instance cost in this period": format_usd(report.usd),
        "saved by disruption commands": format_usd_per_hour(report.saved_usd_per_hour),
        "launched": f"{sum(change.launched for change in report.changes):,}",
        "terminated": f"{sum(change.terminated for change in report.changes):,}",
        "unschedulable pods": f"{sum(len(group.names) for group in report.blocked_pods):,}",
        "failed cycles": f"{sum(failure.times for failure in report.failures):,}",
    }


def _draw_charts(report: FleetReport) -> Iterator[Chart]:
    span = TimeAxis(began=report.began, ended=report.ended, label=_build_label_formatter(report))
    if report.fleet:
        yield draw_line_chart("Nodes", [("nodes", [(sample.at, sample.nodes) for sample in report.fleet])], span)
        prices = [(sample.at, sample.usd_per_hour) for sample in report.fleet]
        yield draw_line_chart("Cost in $/h", [("instances", prices)], span)
    if report.waiting:
        pending_series = ("pending", [(sample.at, sample.pods) for sample in report.waiting])
        unschedulable_series = ("unschedulable", [(sample.at, sample.without_place) for sample in report.waiting])
        yield draw_line_chart("Pending pods", [pending_series, unschedulable_series], span)
    if any(change.launched or change.terminated for change in report.changes):
        launched_series = ("launched", [(change.at, float(change.launched)) for change in report.changes])
        terminated_series = ("terminated", [(change.at, float(change.terminated)) for change in report.changes])
        title = "Launches and terminations"
        yield draw_bar_chart(title, launched_series, terminated_series, span, report.change_seconds)


def _build_label_formatter(report: FleetReport) -> Callable[[datetime], str]:
    time_format = "%b %d" if report.ended - report.began > _MAX_SPAN_WITH_CLOCK_LABELS else "%H:%M"
    return lambda at: f"{at.astimezone(UTC):{time_format}}"


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
