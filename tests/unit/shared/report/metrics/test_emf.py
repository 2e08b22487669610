"""Metrics: one line in CloudWatch's embedded metric format."""

import json
from datetime import timedelta
from typing import Any

import pytest

from shared.report.metrics.emf import ALARM_METRICS, ALL_METRICS, emit_metrics
from tests.support.actions_world import Outside


def emit_single_line(*, metric_set: str = "all", **counts: float) -> dict[str, Any]:
    [only] = emit_lines(counts, metric_set=metric_set)
    return only


def emit_lines(
    counts: dict[str, float], by_zone: tuple[tuple[str, int], ...] = (), *, metric_set: str
) -> list[dict[str, Any]]:
    outside = Outside(metrics=metric_set)
    emit_metrics(counts, outside.build_world(), by_zone)
    return [dict(json.loads(log_line)) for log_line in outside.lines]


def list_metric_names(emf: dict[str, Any]) -> list[str]:
    [metrics] = emf["_aws"]["CloudWatchMetrics"]
    return [metric["Name"] for metric in metrics["Metrics"]]


def test_the_line_is_what_cloudwatch_reads_and_has_no_more_than_is_published() -> None:
    assert emit_single_line(PendingPods=3.0, CycleFailures=1.0, Actions=2.0) == {
        "_aws": {
            "Timestamp": 1795248000000,
            "CloudWatchMetrics": [
                {
                    "Namespace": "Joiner",
                    "Dimensions": [["cluster", "service"]],
                    "Metrics": [{"Name": "CycleFailures", "Unit": "Count"}, {"Name": "PendingPods", "Unit": "Count"}],
                }
            ],
        },
        "service": "joiner",
        "cluster": "joiner",
        "CycleFailures": [1.0],
        "PendingPods": [3.0],
    }


@pytest.mark.parametrize(
    ("name", "unit"),
    [("OpenCommands", "Count"), ("PriceAgeSeconds", "Seconds"), ("SavingsUsdPerHour", "None")],
)
def test_a_name_says_its_unit(name: str, unit: str) -> None:
    [only] = emit_lines({name: 1.0}, metric_set="all")
    [metrics] = only["_aws"]["CloudWatchMetrics"]
    assert metrics["Metrics"] == [{"Name": name, "Unit": unit}]


def test_pods_that_can_be_in_one_zone_only_have_a_line_by_zone_where_all_is_wanted() -> None:
    zones = (("a", 2), ("flexible", 3))
    zone_values = [
        (emf_line["zone"], emf_line["PendingPodsByEffectiveZone"])
        for emf_line in emit_lines({}, zones, metric_set="all")
    ]
    assert zone_values == [("a", [2.0]), ("flexible", [3.0])]
    assert emit_lines({}, zones, metric_set="alarms") == []


def test_where_there_is_nothing_to_count_nothing_is_said() -> None:
    outside = Outside(metrics="all")
    emit_metrics({}, outside.build_world())
    emit_metrics({"Actions": 1.0}, outside.build_world())
    assert outside.lines == []


@pytest.mark.parametrize("days", [-400, 0, 400])
def test_only_the_worlds_clock_is_looked_at(days: int) -> None:
    outside = Outside()
    outside.clock._now += timedelta(days=days)  # noqa: SLF001 - no clock runs backwards
    emit_metrics({"CycleFailures": 1.0}, outside.build_world())
    assert json.loads(outside.lines[0])["_aws"]["Timestamp"] == outside.clock.get_time().timestamp() * 1000


def test_two_lines_do_not_share_a_count() -> None:
    outside = Outside(metrics="all")
    emit_metrics({"CycleFailures": 1.0}, outside.build_world())
    emit_metrics({"PendingPods": 2.0}, outside.build_world())
    first, second = map(json.loads, outside.lines)
    assert "PendingPods" not in first
    assert "CycleFailures" not in second


def test_what_rarely_happens_is_said_only_when_it_does() -> None:
    assert list_metric_names(emit_single_line(PendingPods=0.0, CycleFailures=0.0)) == ["PendingPods"]
    assert emit_lines({"LaunchFailures": 0.0}, metric_set="all") == []


def test_unless_all_is_wanted_only_what_an_alarm_needs_is_paid_for_and_only_when_there_is_something() -> None:
    all_counts = dict.fromkeys(ALL_METRICS, 1.0) | {"OrphanedInstancesTerminated": 0.0}
    assert set(list_metric_names(emit_single_line(metric_set="alarms", **all_counts))) == ALARM_METRICS - {
        "OrphanedInstancesTerminated",
        "PriceAgeSeconds",
    }
    assert emit_lines({"PendingPods": 5.0}, metric_set="alarms") == []


@pytest.mark.parametrize(("hours", "expected"), [(12, []), (13, []), (14, ["PriceAgeSeconds"])])
def test_how_old_prices_are_is_published_once_they_should_have_been_asked_for_again(
    hours: int, expected: list[str]
) -> None:
    emf_lines = emit_lines({"PriceAgeSeconds": 3600.0 * hours}, metric_set="alarms")
    assert [name for emf_line in emf_lines for name in list_metric_names(emf_line)] == expected


def test_we_have_no_more_than_twenty_five_metrics() -> None:
    assert ALARM_METRICS < ALL_METRICS
    assert len(ALL_METRICS) <= 25
