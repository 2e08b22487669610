"""The page of metrics names what is published, and nothing else."""

import re
from pathlib import Path
from typing import Final

import pytest

from infra.monitoring.queries import FIRST_QUERIES
from shared.decide.prometheus.metric_table import METRIC_BY_NAME, METRIC_TYPE, METRICS
from shared.report.metrics.emf import ALL_METRICS

PAGE: Final = Path("docs/guide/metrics.md").read_text()
OURS: Final = re.compile(r"`([A-Z][A-Za-z0-9]+)`")
LAMBDA_AND_SQS: Final = {"Duration", "ApproximateAgeOfOldestMessage", "NumberOfMessagesReceived", "Joiner"}


def list_metric_rows() -> list[list[str]]:
    """Return the cells of the table of names."""
    table = PAGE.partition("## Metric names of Karpenter and Joiner")[2].partition("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:2] == "| "]


def test_metrics_page_lists_exactly_the_published_metrics() -> None:
    names = {name for row in list_metric_rows() for name in OURS.findall(row[1])}
    assert names == set(ALL_METRICS)


@pytest.mark.parametrize("row", list_metric_rows()[1:], ids=lambda row: f"{row[0]} {row[1]}")
def test_karpenter_metrics_without_equivalent_name_an_alternative(row: list[str]) -> None:
    assert OURS.findall(row[1]) or row[2]
    assert set(OURS.findall(row[2])) <= LAMBDA_AND_SQS


def test_prometheus_page_has_exactly_the_metric_table() -> None:
    page = Path("docs/guide/prometheus.md").read_text()
    rows = re.findall(
        r"^\| `((?:joiner|karpenter|operator)_\w+)` \| (\w+) \| ([^|]+) \| ([^|]+) \|", page, re.MULTILINE
    )
    assert rows == [
        (metric.name, METRIC_TYPE, metric.unit, ", ".join(f"`{label}`" for label in metric.labels) or "\N{EN DASH}")
        for metric in METRICS
    ]


def test_metrics_page_links_metrics_of_prometheus_that_exist() -> None:
    names = {name for row in list_metric_rows() for name in re.findall(r"`(joiner_\w+)`", row[2])}
    assert names <= set(METRIC_BY_NAME)


def test_log_fields_on_the_metrics_page_are_queried_by_the_dashboard() -> None:
    query_text = " ".join(line for query in FIRST_QUERIES for line in query.lines)
    fields = set(re.findall(r"(?:counts|done)\.\w+", PAGE))
    assert {name for name in fields if name not in query_text} == set()
