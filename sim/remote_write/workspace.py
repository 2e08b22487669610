"""A workspace of Amazon Managed Service for Prometheus: it checks the series of a request and keeps their samples.

Rules of the ingestion of Cortex, on which the service is built, with the quotas of the service
(https://docs.aws.amazon.com/prometheus/latest/userguide/AMP_quotas.html).
"""

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

from shared.model.core.metrics.metric_samples import LabelPairs
from sim.remote_write.write_request import ReceivedSample, ReceivedSeries

MAX_LABELS: Final = 150
MAX_LABEL_NAME_LENGTH: Final = 1024
MAX_LABEL_VALUE_LENGTH: Final = 2048
MAX_SAMPLE_AGE: Final = timedelta(hours=1)
MAX_CLOCK_SKEW: Final = timedelta(minutes=10)
_METRIC_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class RefusedSeries(Exception):
    """Samples of a request are refused; those of other series are kept."""


class Workspace:
    """The samples of a workspace."""

    def __init__(self, get_time: Callable[[], datetime]) -> None:
        """Start without samples."""
        self._get_time = get_time
        self.samples_by_labels: dict[LabelPairs, list[ReceivedSample]] = {}
        """The samples by the labels of their series, oldest first."""
        self.request_count = 0

    def receive(self, received_series: tuple[ReceivedSeries, ...]) -> None:
        """Keep the samples of *received_series*.

        Raises:
            RefusedSeries: a series or a sample is refused; the others are kept.
        """
        self.request_count += 1
        errors = [error for series in received_series for error in self._receive_series(series)]
        if errors:
            raise RefusedSeries(f"{errors[0]} ({len(errors)} in total)" if len(errors) > 1 else errors[0])

    def get_latest(self, name: str) -> dict[LabelPairs, float]:
        """Return the latest values of the metric *name*, by the other labels."""
        return {
            tuple(pair for pair in labels if pair[0] != "__name__"): samples[-1].value
            for labels, samples in self.samples_by_labels.items()
            if dict(labels)["__name__"] == name
        }

    def _receive_series(self, series: ReceivedSeries) -> Iterator[str]:
        error = _find_label_error(series.labels)
        if error:
            yield error
            return
        if not series.samples:
            yield f"no samples in {dict(series.labels)}"
        kept_samples = self.samples_by_labels.get(series.labels, [])
        for sample in series.samples:
            error = self._find_sample_error(sample, kept_samples)
            if error:
                yield f"{error}: {dict(series.labels)}"
                continue
            kept_samples.append(sample)
            self.samples_by_labels[series.labels] = kept_samples

    def _find_sample_error(self, sample: ReceivedSample, kept_samples: list[ReceivedSample]) -> str:
        now_ms = self._get_time().timestamp() * 1000
        if sample.timestamp_ms > now_ms + MAX_CLOCK_SKEW / timedelta(milliseconds=1):
            return "timestamp too new"
        if sample.timestamp_ms < now_ms - MAX_SAMPLE_AGE / timedelta(milliseconds=1):
            return "timestamp too old"
        latest = kept_samples[-1] if kept_samples else None
        if latest is not None and sample.timestamp_ms < latest.timestamp_ms:
            return "out of order sample"
        if latest is not None and sample.timestamp_ms == latest.timestamp_ms:
            return "duplicate sample for timestamp"
        return ""


def _find_label_error(labels: LabelPairs) -> str:
    """Return why the labels of a series are refused; "" if they are not."""
    names = [name for name, _ in labels]
    metric_name = dict(labels).get("__name__", "")
    errors_by_check = (
        (not _METRIC_NAME.fullmatch(metric_name), f"sample has no valid metric name: {metric_name!r}"),
        (len(labels) > MAX_LABELS, f"series has {len(labels)} labels, and the limit is {MAX_LABELS}: {metric_name}"),
        (names != sorted(names), f"labels are not sorted: {', '.join(names)}"),
        (len(set(names)) < len(names), f"duplicate label name: {', '.join(names)}"),
        *((bool(error), error) for error in map(_find_pair_error, labels)),
    )
    return next((error for is_wrong, error in errors_by_check if is_wrong), "")


def _find_pair_error(pair: tuple[str, str]) -> str:
    name, value = pair
    if len(name) > MAX_LABEL_NAME_LENGTH or not _LABEL_NAME.fullmatch(name):
        return f"sample invalid label: {name[:100]!r}"
    if not value:
        return f"label without a value: {name}"
    return f"label value too long: {name}" if len(value) > MAX_LABEL_VALUE_LENGTH else ""
