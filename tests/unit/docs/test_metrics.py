"""The page of metrics names what is published, and nothing else."""

import re
from pathlib import Path
from typing import Final

import pytest

from cli.status.prometheus import render_metrics
from infra.monitoring.queries import FIRST_QUERIES
from shared.report.metrics.emf import ALL_METRICS
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import make_cluster_snapshot

PAGE: Final = Path("docs/guide/metrics.md").read_text()
OURS: Final = re.compile(r"`([A-Z][A-Za-z0-9]+)`")
LAMBDA_AND_SQS: Final = {"Duration", "ApproximateAgeOfOldestMessage", "NumberOfMessagesReceived", "Joiner"}


def list_metric_rows() -> list[list[str]]:
    """Return the cells of the table of names."""
    table = PAGE.partition("## Metric names of Karpenter and Joiner")[2].partition("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:2] == "| "]


def test_every_metric_of_ours_is_in_the_table_and_nothing_that_is_none() -> None:
    names = {name for row in list_metric_rows() for name in OURS.findall(row[1])}
    assert names == set(ALL_METRICS)


@pytest.mark.parametrize("row", list_metric_rows()[1:], ids=lambda row: f"{row[0]} {row[1]}")
def test_where_there_is_no_metric_the_table_says_where_to_look(row: list[str]) -> None:
    assert OURS.findall(row[1]) or row[2]
    assert set(OURS.findall(row[2])) <= LAMBDA_AND_SQS


def test_what_prometheus_gets_is_named_with_its_family() -> None:
    families = re.findall(r"# TYPE (\w+)", render_metrics(ClusterState(make_cluster_snapshot())))
    assert [name for name in families if f"`{name}`" not in PAGE] == []


def test_fields_of_the_log_that_the_page_names_are_those_that_the_dashboard_asks_for() -> None:
    query_text = " ".join(line for query in FIRST_QUERIES for line in query.lines)
    fields = set(re.findall(r"(?:counts|done)\.\w+", PAGE))
    assert {name for name in fields if name not in query_text} == set()
