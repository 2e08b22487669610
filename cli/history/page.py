"""The workload history as text and as a document."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from cli.history.recorded_history import list_known_hours
from cli.planning.table import MAX_ROWS
from cli.terminal.table import TableLayout, render_table
from cli.terminal.text import Palette
from shared.decide.disruption.savings.remaining_run_time import summarize_run_times
from shared.decide.disruption.savings.workload_forecast import FORECAST_HOURS, estimate_record_replicas
from shared.decide.disruption.savings.workload_history import compute_hour_of_week
from shared.model.core.formatting import format_bytes, format_count, format_elapsed
from shared.model.core.units import format_instant
from shared.model.decisions.pod_run_time import RunTimeRecord
from shared.model.decisions.workload_history import HOURS_PER_WEEK, TENTHS_RATIO, WorkloadHistory, WorkloadRecord

WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_ONE_HOUR: Final = timedelta(hours=1)
_HOURS_PER_DAY: Final = 24


def build_document(
    history: WorkloadHistory, now: datetime, notes: Iterable[str], *, is_detailed: bool
) -> dict[str, Any]:
    """Return *history* for -o json; *is_detailed*: with the hours and the forecast of each workload."""
    return {
        "updatedAt": format_instant(history.updated_at) if history.updated_at is not None else None,
        "knownHours": len(list_known_hours(history)),
        "notes": list(notes),
        "workloads": [_build_workload_document(record, now, is_detailed=is_detailed) for record in history.workloads],
        "runTimes": [_build_run_time_document(record) for record in history.run_times],
    }


def render_page(
    history: WorkloadHistory,
    now: datetime,
    palette: Palette,
    width: int | None,
    *,
    source: str,
    is_detailed: bool,
    is_whole: bool,
) -> Iterator[str]:
    """Yield the lines of the page: a table of all workloads, or each workload with its hours and its forecast."""
    known_hours = len(list_known_hours(history))
    age = f"{format_elapsed(now - history.updated_at)} ago" if history.updated_at is not None else "never"
    yield palette.colorize(
        "bold",
        f"workload history of {source}: {format_count(len(history.workloads), 'workload')}, "
        f"{known_hours} of {HOURS_PER_WEEK} hours of the week known, updated {age}",
    )
    if is_detailed:
        for record in history.workloads:
            yield from _render_workload(record, now, palette, width)
    elif history.workloads:
        yield from _render_workloads(history.workloads, palette, width, is_whole=is_whole)
    if history.run_times:
        yield from _render_run_times(history.run_times, palette, width, is_whole=is_whole)


def _render_workloads(
    records: tuple[WorkloadRecord, ...], palette: Palette, width: int | None, *, is_whole: bool
) -> Iterator[str]:
    ranked = sorted(records, key=lambda record: (-record.size, record.name))
    listed = ranked if is_whole else ranked[:MAX_ROWS]
    layout = TableLayout(
        headings=("WORKLOAD", "NODEPOOL", "HOURS", "MEAN", "MAX", "CPU", "MEMORY"), alignment="~<>>>>>"
    )
    rows = [
        (
            *(record.name, record.pool or "-", str(sum(1 for weeks in record.weeks if weeks))),
            *(
                (_format_replicas(_compute_mean(record)), _format_replicas(max(record.means)))
                if any(record.weeks)
                else "--"
            ),
            *(f"{record.cpu_milli}m", format_bytes(record.memory_bytes)),
        )
        for record in listed
    ]
    yield from render_table(layout, rows, palette, width)
    if len(ranked) > len(listed):
        yield f"… and {format_count(len(ranked) - len(listed), 'more workload')} (--all shows them)"


def _render_workload(record: WorkloadRecord, now: datetime, palette: Palette, width: int | None) -> Iterator[str]:
    yield ""
    yield palette.colorize(
        "bold",
        f"{record.name}: NodePool {record.pool or 'unknown'}, {record.cpu_milli}m CPU and "
        f"{format_bytes(record.memory_bytes)} for each replica",
    )
    yield "replicas by hour of the week (UTC); - is unknown, ± is the mean error:"
    rows = [
        (f"{hour:02}:00", *(_format_hour(record, day * _HOURS_PER_DAY + hour) for day in range(len(WEEKDAYS))))
        for hour in range(_HOURS_PER_DAY)
    ]
    layout = TableLayout(headings=("HOUR", *WEEKDAYS), alignment="<" + ">" * len(WEEKDAYS))
    yield from render_table(layout, rows, palette, width)
    yield "forecast for the next 24 hours (UTC):"
    forecast_rows = [
        (f"{at:%a %H:%M}", "unknown" if mean is None else _format_estimate(mean, error))
        for at, mean, error in _list_forecast(record, now)
    ]
    yield from render_table(TableLayout(headings=("FROM", "REPLICAS"), alignment="<>"), forecast_rows, palette, width)


def _render_run_times(
    records: tuple[RunTimeRecord, ...], palette: Palette, width: int | None, *, is_whole: bool
) -> Iterator[str]:
    ranked = sorted(records, key=lambda record: (-record.run_count, record.family))
    listed = ranked if is_whole else ranked[:MAX_ROWS]
    yield ""
    layout = TableLayout(headings=("FINITE PODS", "RUNS", "RUN TIME", "90%", "LAST SEEN"), alignment="~>>><")
    rows = []
    for record in listed:
        mean, error, ninety_percent = summarize_run_times(record)
        run_time = f"{format_elapsed(mean)} ± {format_elapsed(error)}"
        last_seen = f"{record.last_seen_at:%Y-%m-%d %H:%M}"
        rows.append((record.family, str(record.run_count), run_time, format_elapsed(ninety_percent), last_seen))
    yield from render_table(layout, rows, palette, width)
    if len(ranked) > len(listed):
        yield f"… and {format_count(len(ranked) - len(listed), 'more family')} (--all shows them)"


def _build_workload_document(record: WorkloadRecord, now: datetime, *, is_detailed: bool) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": record.name,
        "nodePool": record.pool,
        "cpu": f"{record.cpu_milli}m",
        "memory": str(record.memory_bytes),
        "knownHours": sum(1 for weeks in record.weeks if weeks),
        "meanReplicas": _compute_mean(record) / TENTHS_RATIO,
        "maxReplicas": max(record.means) / TENTHS_RATIO,
    }
    if not is_detailed:
        return document
    return document | {
        "hours": [
            {
                "weekday": WEEKDAYS[hour // _HOURS_PER_DAY],
                "hour": hour % _HOURS_PER_DAY,
                "replicas": record.means[hour] / TENTHS_RATIO,
                "error": record.errors[hour] / TENTHS_RATIO,
                "weeks": record.weeks[hour],
            }
            for hour in range(HOURS_PER_WEEK)
            if record.weeks[hour]
        ],
        "forecast": [
            {
                "at": format_instant(at),
                "replicas": None if mean is None else mean / TENTHS_RATIO,
                "error": error / TENTHS_RATIO,
            }
            for at, mean, error in _list_forecast(record, now)
        ],
    }


def _build_run_time_document(record: RunTimeRecord) -> dict[str, Any]:
    mean, error, ninety_percent = summarize_run_times(record)
    return {
        "name": record.family,
        "runs": record.run_count,
        "meanSeconds": round(mean.total_seconds()),
        "errorSeconds": round(error.total_seconds()),
        "ninetyPercentSeconds": round(ninety_percent.total_seconds()),
        "lastSeenAt": format_instant(record.last_seen_at),
    }


def _list_forecast(record: WorkloadRecord, now: datetime) -> Iterator[tuple[datetime, int | None, int]]:
    """Yield the next 24 full hours with the expected replicas, in tenths, and their error; None: unknown."""
    starts_at = now.replace(minute=0, second=0, microsecond=0) + _ONE_HOUR
    for number in range(FORECAST_HOURS):
        at = starts_at + number * _ONE_HOUR
        estimate = estimate_record_replicas(record, compute_hour_of_week(at))
        yield (at, None, 0) if estimate is None else (at, estimate.mean, estimate.error)


def _compute_mean(record: WorkloadRecord) -> int:
    """Return the mean of the known hours, in tenths of replicas."""
    known_means = [mean for mean, weeks in zip(record.means, record.weeks, strict=True) if weeks]
    return sum(known_means) // len(known_means) if known_means else 0


def _format_hour(record: WorkloadRecord, hour: int) -> str:
    return _format_estimate(record.means[hour], record.errors[hour]) if record.weeks[hour] else "-"


def _format_estimate(mean: int, error: int) -> str:
    return f"{_format_replicas(mean)} ±{_format_replicas(error)}" if error else _format_replicas(mean)


def _format_replicas(tenths: int) -> str:
    """Format tenths of replicas.

    >>> _format_replicas(40), _format_replicas(45)
    ('4', '4.5')
    """
    return f"{tenths / TENTHS_RATIO:g}"
