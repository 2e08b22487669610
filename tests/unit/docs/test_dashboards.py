"""Dashboards of Grafana show every metric of the table, and nothing else; a real Prometheus runs their queries."""

import json
import re
from typing import Any

import pytest

from docs.reference.dashboards import DASHBOARDS, FOLDER, render_dashboards
from shared.decide.prometheus.metric_table import METRIC_BY_NAME

METRIC = re.compile(r"(?:joiner|karpenter|operator)_\w+")


def list_expressions() -> list[str]:
    """Return the queries of all panels of the files."""
    documents = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]
    return [target["expr"] for document in documents for panel in document["panels"] for target in panel["targets"]]


def test_files_are_those_that_the_generator_writes() -> None:
    assert {path: path.read_text() for path in FOLDER.glob("*.json")} == render_dashboards()


def test_every_metric_is_shown_and_only_metrics_of_the_table() -> None:
    assert {name for expression in list_expressions() for name in METRIC.findall(expression)} == METRIC_BY_NAME.keys()


@pytest.mark.parametrize(
    "panel", [panel for dashboard in DASHBOARDS for panel in dashboard.panels], ids=lambda p: p.title
)
def test_panels_use_labels_that_their_metrics_have(panel: Any) -> None:
    for name in filter(None, (panel.metric, panel.divisor)):
        labels = set(METRIC_BY_NAME[name].labels)
        assert set(panel.shown_labels) <= labels
        assert bool(panel.resource) == ("resource_type" in labels)


def test_panels_do_not_overlap_and_titles_are_unique() -> None:
    for path in FOLDER.glob("*.json"):
        panels = json.loads(path.read_text())["panels"]
        assert len({panel["title"] for panel in panels}) == len(panels)
        assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)
        assert {panel["gridPos"]["x"] + panel["gridPos"]["w"] for panel in panels} <= {12, 24}
