"""Metrics: one line in CloudWatch's embedded metric format."""

import json
from datetime import timedelta
from typing import Any

import pytest

from shared.report.metrics import emit
from tests.unit.actions_world import Outside


def line(**counts: float) -> dict[str, Any]:
    outside = Outside()
    emit(counts, outside.world())
    [only] = outside.lines
    return dict(json.loads(only))


def test_the_line_is_what_cloudwatch_reads_and_has_no_more_than_is_published() -> None:
    assert line(PendingPods=3.0, Faults=1.0, Actions=2.0) == {
        "_aws": {
            "Timestamp": 1795248000000,
            "CloudWatchMetrics": [
                {
                    "Namespace": "Joiner",
                    "Dimensions": [["cluster", "service"]],
                    "Metrics": [{"Name": "Faults", "Unit": "Count"}, {"Name": "PendingPods", "Unit": "Count"}],
                }
            ],
        },
        "service": "joiner",
        "cluster": "joiner",
        "Faults": [1.0],
        "PendingPods": [3.0],
    }


@pytest.mark.parametrize(
    ("name", "unit"),
    [("OpenCommands", "Count"), ("PriceAgeSeconds", "Seconds"), ("SavedUsdPerHour", "None")],
)
def test_a_name_says_its_unit(name: str, unit: str) -> None:
    [metrics] = line(**{name: 1.0})["_aws"]["CloudWatchMetrics"]
    assert metrics["Metrics"] == [{"Name": name, "Unit": unit}]


def test_pods_that_can_be_in_one_zone_only_have_a_line_by_zone() -> None:
    outside = Outside()
    emit({}, outside.world(), (("a", 2), ("flexible", 3)))
    lines = [json.loads(one) for one in outside.lines]
    assert [(one["zone"], one["PendingPodsByEffectiveZone"]) for one in lines] == [
        ("a", [2.0]),
        ("flexible", [3.0]),
    ]


def test_where_there_is_nothing_to_count_nothing_is_said() -> None:
    outside = Outside()
    emit({}, outside.world())
    emit({"Actions": 1.0}, outside.world())
    assert outside.lines == []


@pytest.mark.parametrize("days", [-400, 0, 400])
def test_only_the_worlds_clock_is_looked_at(days: int) -> None:
    outside = Outside()
    outside.clock._now += timedelta(days=days)  # noqa: SLF001 - no clock runs backwards
    emit({"Faults": 1.0}, outside.world())
    assert json.loads(outside.lines[0])["_aws"]["Timestamp"] == outside.clock.now().timestamp() * 1000


def test_two_lines_do_not_share_a_count() -> None:
    outside = Outside()
    emit({"Faults": 1.0}, outside.world())
    emit({"PendingPods": 2.0}, outside.world())
    first, second = map(json.loads, outside.lines)
    assert "PendingPods" not in first
    assert "Faults" not in second


def test_what_rarely_happens_is_said_only_when_it_does() -> None:
    assert line(PendingPods=0.0, Faults=0.0)["_aws"]["CloudWatchMetrics"][0]["Metrics"] == [
        {"Name": "PendingPods", "Unit": "Count"}
    ]
    outside = Outside()
    emit({"LaunchFailures": 0.0}, outside.world())
    assert outside.lines == []
