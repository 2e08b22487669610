"""The trace of a pod as a waterfall for people, and as a document with stable keys."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from cli.explain.pod_trace.otlp_document import build_trace_id
from cli.explain.pod_trace.trace import PodTrace, TraceStep
from cli.terminal.text import Palette, wrap_text
from shared.model.core.formatting import format_elapsed

_NAME_WIDTH: Final = 19
_DETAIL_INDENT: Final = " " * 2
_BAR_COLUMNS: Final = 40
_NARROW_BAR_COLUMNS: Final = 20
_NARROW_WIDTH: Final = 90


def render_waterfall(trace: PodTrace, coverage: str, palette: Palette, width: int | None) -> str:
    """Return *trace* as text: one line per step with its time, duration and bar."""
    place = f" on node {trace.node}" if trace.node else ""
    claim = f" (NodeClaim {trace.node_claim})" if trace.node_claim else ""
    lines = wrap_text(f"pod {trace.pod}{place}{claim}", width, "")
    lines = [palette.colorize("bold", line) for line in lines]
    lines += [*wrap_text(_summarize_trace(trace), width, ""), ""]
    lines.append(palette.colorize("bold", f"{'STEP':<{_NAME_WIDTH}}{'AT (UTC)':<14}{'TOOK':>7}  FROM"))
    bar_columns = _NARROW_BAR_COLUMNS if width is not None and width < _NARROW_WIDTH else _BAR_COLUMNS
    for step in trace.steps:
        lines += _render_step(step, trace, palette, width, bar_columns)
    lines += ["", *(palette.colorize("dim", line) for line in wrap_text(coverage, width, ""))]
    return "\n".join(lines) + "\n"


def _summarize_trace(trace: PodTrace) -> str:
    """Return the total, and the step that took the most of it."""
    if trace.started_at is None or trace.ended_at is None:
        return "no step is recorded"
    words = "waiting for" if trace.is_waiting else "recorded time:"
    text = (
        f"{words} {format_elapsed(trace.total)}, from {trace.started_at:%Y-%m-%d %H:%M:%S} to {trace.ended_at:%H:%M:%S}"
    )
    longest = trace.longest_step
    if longest is None or longest.elapsed is None:
        return text
    percent = round(100 * (longest.elapsed / trace.total))
    return f"{text}; longest step: {longest.name}, {format_elapsed(longest.elapsed)} ({percent}%)"


def _render_step(
    step: TraceStep, trace: PodTrace, palette: Palette, width: int | None, bar_columns: int
) -> Iterator[str]:
    if step.at is None or step.elapsed is None:
        yield palette.colorize("dim", f"{step.name:<{_NAME_WIDTH}}{step.status}")
        return
    bar = _draw_span(step, trace, bar_columns)
    line = (
        f"{step.name:<{_NAME_WIDTH}}{step.at:%H:%M:%S}      {format_elapsed(step.elapsed):>7}  {step.source:<9}  {bar}"
    )
    yield palette.colorize("red" if step.is_failed else "", line.rstrip())
    if step.detail:
        detail = f"{'failed: ' if step.is_failed else ''}{step.detail}"
        yield from (palette.colorize("dim", line) for line in wrap_text(detail, width, _DETAIL_INDENT))


def _draw_span(step: TraceStep, trace: PodTrace, columns: int) -> str:
    """Return the bar of *step* at its place in the whole period; a step that took no time is a thin line."""
    if step.at is None or step.elapsed is None or trace.started_at is None or not trace.total:
        return ""
    end = round(columns * ((step.at - trace.started_at) / trace.total))
    length = round(columns * (step.elapsed / trace.total))
    if not length:
        return " " * min(end, columns - 1) + "▏"
    return " " * (end - length) + "█" * length


def build_trace_document(trace: PodTrace) -> dict[str, Any]:
    """Return *trace* as a document: stable keys, instants in UTC."""
    longest = trace.longest_step
    return {
        "kind": "pod",
        "name": trace.pod,
        "uid": trace.uid,
        "traceId": build_trace_id(trace),
        "node": trace.node,
        "nodeClaim": trace.node_claim,
        "waiting": trace.is_waiting,
        "startedAt": trace.started_at,
        "endedAt": trace.ended_at,
        "totalSeconds": _count_seconds(trace.total),
        "longestStep": longest.name if longest is not None else "",
        "steps": [_build_step_document(step, trace.started_at) for step in trace.steps],
    }


def _build_step_document(step: TraceStep, started_at: datetime | None) -> dict[str, Any]:
    offset = step.at - started_at if step.at is not None and started_at is not None else None
    return {
        "name": step.name,
        "status": step.status,
        "at": step.at,
        "offsetSeconds": _count_seconds(offset),
        "seconds": _count_seconds(step.elapsed),
        "source": step.source,
        "nodeClaim": step.node_claim,
        "message": step.detail,
        "failed": step.is_failed,
    }


def _count_seconds(duration: timedelta | None) -> float | None:
    return round(duration.total_seconds(), 3) if duration is not None else None
