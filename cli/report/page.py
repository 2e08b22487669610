"""A report as an HTML page, and as a JSON document with stable keys."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from cli.report.data import FleetReport
from cli.status.canaries import build_canary_document
from cli.status.schedules import build_schedule_document
from cli.ui.page import render_fleet_page
from shared.model.core.formatting import format_usd, format_usd_per_hour

MAX_DECISIONS: Final = 400
"""Decisions on the page; the JSON document has all."""
MAX_LISTED_NAMES: Final = 12
UNKNOWN: Final = "Unknown: the journal has no cycles of this time."
_STYLE_FILE: Final = Path(__file__).with_name("report.css")


def render_report(report: FleetReport, body: bytes) -> str:
    """Render *report* as HTML, with the interactive page of the fleet document *body* above its tables.

    Raises:
        InputError: The script of the page is not built.
    """
    return render_fleet_page(
        f"Joiner: {report.cluster or report.source or 'cluster'}",
        body,
        template="report/report.html.jinja",
        extra_style=_STYLE_FILE.read_text(encoding="utf-8"),
        report=report,
        tiles=_list_tiles(report),
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


def format_time(at: datetime) -> str:
    """Format *at* in UTC, to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def build_report_document(report: FleetReport) -> dict[str, Any]:
    """Return the JSON document: stable keys in camelCase, times in UTC, USD."""
    report_json: dict[str, Any] = _convert_to_camel_case(msgspec.to_builtins(report, builtin_types=(datetime,)))
    report_json["problems"] = [
        {"kind": problem.kind, "name": problem.name, "message": problem.message} for problem in report.problems
    ]
    report_json["schedules"] = [build_schedule_document(schedule) for schedule in report.schedules]
    report_json["canaries"] = [build_canary_document(canary) for canary in report.canaries]
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
