"""Recorded metrics: numbers with their time, as CloudWatch stores them.

A metric is identified by its namespace, its name and all of its dimensions: one more dimension is another metric.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final, Protocol

import msgspec

AGGREGATE_BY_STATISTIC: Final[Mapping[str, Callable[[list[float]], float]]] = {
    "Average": lambda values: sum(values) / len(values),
    "Maximum": max,
    "Minimum": min,
    "SampleCount": lambda values: float(len(values)),
    "Sum": sum,
}


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...] = ()
    """Sorted by name."""


class MetricDatum(msgspec.Struct, frozen=True, kw_only=True):
    """One value of a metric."""

    metric: Metric
    timestamp: datetime
    value: float


class MetricSource(Protocol):
    """Provides the recorded values of metrics."""

    def list_data_points(self, metric: Metric) -> Iterable[tuple[datetime, float]]:
        """Return all values of *metric* with their time, in any order."""


class MetricStore:
    """All recorded metrics; safe to share between threads."""

    def __init__(self) -> None:
        """Start without metrics."""
        self._points: dict[Metric, list[tuple[datetime, float]]] = {}
        self._lock = Lock()

    def record_data(self, data: Iterable[MetricDatum]) -> None:
        """Record *data*."""
        with self._lock:
            for datum in data:
                self._points.setdefault(datum.metric, []).append((datum.timestamp, datum.value))

    def list_data_points(self, metric: Metric) -> tuple[tuple[datetime, float], ...]:
        """Return all values of *metric* with their time, in the order of their arrival."""
        with self._lock:
            return tuple(self._points.get(metric, ()))


def parse_metric(metric_json: Mapping[str, Any]) -> Metric:
    """Parse a metric as the API and templates write it."""
    dimensions = sorted((dimension["Name"], dimension["Value"]) for dimension in metric_json.get("Dimensions") or ())
    return Metric(namespace=metric_json["Namespace"], name=metric_json["MetricName"], dimensions=tuple(dimensions))


def parse_embedded_metrics(lines: Iterable[str]) -> Iterator[MetricDatum]:
    """Yield the data in the log *lines* that have the embedded metric format (EMF); other lines are skipped."""
    for line in lines:
        if '"_aws"' not in line:
            continue
        try:
            document = json.loads(line)
        except ValueError:
            continue
        metadata = document.get("_aws") if isinstance(document, dict) else None
        if isinstance(metadata, dict):
            yield from _build_data(document, metadata)


def _build_data(document: Mapping[str, Any], metadata: Mapping[str, Any]) -> Iterator[MetricDatum]:
    at = datetime.fromtimestamp(metadata["Timestamp"] / 1000, UTC)
    for directive in metadata.get("CloudWatchMetrics", ()):
        for dimension_names in directive["Dimensions"]:
            dimensions = tuple((key, str(document[key])) for key in sorted(dimension_names))
            for definition in directive["Metrics"]:
                metric = Metric(namespace=directive["Namespace"], name=definition["Name"], dimensions=dimensions)
                values = document[definition["Name"]]
                for value in values if isinstance(values, list) else (values,):
                    yield MetricDatum(metric=metric, timestamp=at, value=float(value))
