"""The trace of a pod as an OTLP/JSON document (ExportTraceServiceRequest of OpenTelemetry)."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cli.explain.pod_trace.trace import PodTrace, TraceStep

_SPAN_KIND_INTERNAL: Final = 1
_STATUS_CODE_ERROR: Final = 2
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def build_trace_id(trace: PodTrace) -> str:
    """Return the trace ID: 32 hexadecimal digits from the pod's UID; from its name if the UID is not known."""
    return _compute_digest(trace.uid or trace.pod, 32)


def build_otlp_document(trace: PodTrace) -> dict[str, Any]:
    """Return the trace: one span for the pod, and one for each recorded step that ends at the time of the step.

    The same pod and steps always have the same IDs. Steps without a time have no span: an attribute lists them.
    """
    trace_id = build_trace_id(trace)
    root_id = _compute_digest(f"{trace_id}/pod", 16)
    namespace, _, name = trace.pod.rpartition("/")
    resource_attributes = {
        "service.name": "joiner",
        "k8s.namespace.name": namespace,
        "k8s.pod.name": name,
        "k8s.pod.uid": trace.uid,
        "k8s.node.name": trace.node,
    }
    scope_spans = {"scope": {"name": "joiner"}, "spans": _build_spans(trace, trace_id, root_id)}
    return {
        "resourceSpans": [
            {"resource": {"attributes": _build_attributes(resource_attributes)}, "scopeSpans": [scope_spans]}
        ]
    }


def _build_spans(trace: PodTrace, trace_id: str, root_id: str) -> list[dict[str, Any]]:
    if trace.started_at is None or trace.ended_at is None:
        return []
    root_attributes = {
        "joiner.node_claim": trace.node_claim,
        "joiner.waiting": "true" if trace.is_waiting else "",
        "joiner.steps_not_recorded": ", ".join(step.name for step in trace.steps if step.status == "not recorded"),
    }
    root = {
        "traceId": trace_id,
        "spanId": root_id,
        "name": "pod Pending to Running",
        "kind": _SPAN_KIND_INTERNAL,
        "startTimeUnixNano": _format_nanoseconds(trace.started_at),
        "endTimeUnixNano": _format_nanoseconds(trace.ended_at),
        "attributes": _build_attributes(root_attributes),
    }
    spans = [root]
    end = trace.started_at
    for position, step in enumerate(trace.recorded_steps):
        end = max(end, step.at or end)
        spans.append(_build_step_span(step, end, trace_id, root_id, position))
    return spans


def _build_step_span(step: TraceStep, end: datetime, trace_id: str, root_id: str, position: int) -> dict[str, Any]:
    attributes = {
        "joiner.source": step.source,
        "joiner.node_claim": step.node_claim,
        "joiner.message": "" if step.is_failed else step.detail,
    }
    span: dict[str, Any] = {
        "traceId": trace_id,
        "spanId": _compute_digest(f"{trace_id}/{position}/{step.name}", 16),
        "parentSpanId": root_id,
        "name": step.name,
        "kind": _SPAN_KIND_INTERNAL,
        "startTimeUnixNano": _format_nanoseconds(end - (step.elapsed or timedelta())),
        "endTimeUnixNano": _format_nanoseconds(end),
        "attributes": _build_attributes(attributes),
    }
    return span | {"status": {"code": _STATUS_CODE_ERROR, "message": step.detail}} if step.is_failed else span


def _build_attributes(values: dict[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in values.items() if value]


def _format_nanoseconds(at: datetime) -> str:
    return str((at - _EPOCH) // timedelta(microseconds=1) * 1000)


def _compute_digest(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
