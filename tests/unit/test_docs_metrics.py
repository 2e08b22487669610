"""The page of metrics names what is published, and nothing else."""

import re
from pathlib import Path
from typing import Final

import pytest

from cli.prometheus import exposition
from infra.queries import FIRST
from shared.report.metrics import EVERY
from tests.unit.catalogues import world

PAGE: Final = Path("docs/guide/metrics.md").read_text()
OURS: Final = re.compile(r"`([A-Z][A-Za-z0-9]+)`")
LAMBDA_AND_SQS: Final = {"Duration", "ApproximateAgeOfOldestMessage", "NumberOfMessagesReceived", "Joiner"}


def rows() -> list[list[str]]:
    """Answer the cells of the table of names."""
    table = PAGE.partition("## Karpenter's names and ours")[2].partition("\n## ")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:2] == "| "]


def test_every_metric_of_ours_is_in_the_table_and_nothing_that_is_none() -> None:
    named = {name for row in rows() for name in OURS.findall(row[1])}
    assert named == set(EVERY)


@pytest.mark.parametrize("row", rows()[1:], ids=lambda row: f"{row[0]} {row[1]}")
def test_where_there_is_no_metric_the_table_says_where_to_look(row: list[str]) -> None:
    assert OURS.findall(row[1]) or row[2]
    assert set(OURS.findall(row[2])) <= LAMBDA_AND_SQS


def test_what_prometheus_gets_is_named_with_its_family() -> None:
    families = re.findall(r"# TYPE (\w+)", exposition(world()))
    assert [name for name in families if f"`{name}`" not in PAGE] == []


def test_fields_of_the_log_that_the_page_names_are_those_that_the_dashboard_asks_for() -> None:
    asked = " ".join(line for query in FIRST for line in query.lines)
    named = set(re.findall(r"(?:counts|done)\.\w+", PAGE))
    assert {name for name in named if name not in asked} == set()
