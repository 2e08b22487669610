"""Samples of metrics for Prometheus."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

LabelPairs: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values of labels, sorted by name."""
Sample: TypeAlias = tuple[LabelPairs, float]
MetricSamples: TypeAlias = Mapping[str, Sequence[Sample]]
"""Samples by metric, sorted by metric and labels."""
MetricDetail: TypeAlias = Literal["summary", "nodes", "all"]
"""`summary`: without metrics that have a series for each node; `nodes`: with these."""
