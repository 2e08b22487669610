"""What was measured: numbers with their instants, as CloudWatch keeps them.

A metric is its namespace, its name and all of its dimensions: with one dimension more it is another.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Final, Protocol

import msgspec

STATISTICS: Final[Mapping[str, Callable[[list[float]], float]]] = {
    "Average": lambda values: sum(values) / len(values),
    "Maximum": max,
    "Minimum": min,
    "SampleCount": lambda values: float(len(values)),
    "Sum": sum,
}


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One of them."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...] = ()
    """Sorted by name."""


class Datum(msgspec.Struct, frozen=True, kw_only=True):
    """A number that was measured."""

    metric: Metric
    at: datetime
    value: float


class Measured(Protocol):
    """Who knows what was measured."""

    def points(self, metric: Metric) -> Iterable[tuple[datetime, float]]:
        """Answer all numbers of *metric*, in any order."""


class Metrics:
    """All that was recorded; safe to share between threads."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._points: dict[Metric, list[tuple[datetime, float]]] = {}
        self._lock = Lock()

    def record(self, data: Iterable[Datum]) -> None:
        """Keep *data*."""
        with self._lock:
            for one in data:
                self._points.setdefault(one.metric, []).append((one.at, one.value))

    def points(self, metric: Metric) -> tuple[tuple[datetime, float], ...]:
        """Answer all numbers of *metric*, as they came."""
        with self._lock:
            return tuple(self._points.get(metric, ()))


def metric_of(said: Mapping[str, Any]) -> Metric:
    """Read a metric as the API and templates say it."""
    dimensions = sorted((one["Name"], one["Value"]) for one in said.get("Dimensions") or ())
    return Metric(namespace=said["Namespace"], name=said["MetricName"], dimensions=tuple(dimensions))


def embedded_in(lines: Iterable[str]) -> Iterator[Datum]:
    """Iterate over what *lines* of a log say in embedded metric format; all others are passed over."""
    for line in lines:
        if '"_aws"' not in line:
            continue
        try:
            document = json.loads(line)
        except ValueError:
            continue
        said = document.get("_aws") if isinstance(document, dict) else None
        if isinstance(said, dict):
            yield from _data(document, said)


def _data(document: Mapping[str, Any], said: Mapping[str, Any]) -> Iterator[Datum]:
    at = datetime.fromtimestamp(said["Timestamp"] / 1000, UTC)
    for directive in said.get("CloudWatchMetrics", ()):
        for keys in directive["Dimensions"]:
            dimensions = tuple((key, str(document[key])) for key in sorted(keys))
            for one in directive["Metrics"]:
                metric = Metric(namespace=directive["Namespace"], name=one["Name"], dimensions=dimensions)
                values = document[one["Name"]]
                for value in values if isinstance(values, list) else (values,):
                    yield Datum(metric=metric, at=at, value=float(value))
