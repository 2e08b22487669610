"""Metrics: one line in CloudWatch's embedded metric format."""

import json
from datetime import timedelta
from typing import Any

import pytest

from shared.report.metrics.emf import (
    ALARM_METRICS,
    ALL_METRICS,
    MONEY_USED,
    REJECTED_CANARIES,
    REMOTE_WRITE_FAILURES,
    emit_metrics,
)
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


def test_emf_line_contains_only_published_metrics() -> None:
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
def test_metric_unit_follows_from_its_name(name: str, unit: str) -> None:
    [only] = emit_lines({name: 1.0}, metric_set="all")
    [metrics] = only["_aws"]["CloudWatchMetrics"]
    assert metrics["Metrics"] == [{"Name": name, "Unit": unit}]


def test_pending_pods_by_zone_are_published_only_if_all_metrics_are_enabled() -> None:
    zones = (("a", 2), ("flexible", 3))
    zone_values = [
        (emf_line["zone"], emf_line["PendingPodsByEffectiveZone"])
        for emf_line in emit_lines({}, zones, metric_set="all")
    ]
    assert zone_values == [("a", [2.0]), ("flexible", [3.0])]
    assert emit_lines({}, zones, metric_set="alarms") == []


def test_no_emf_line_without_published_metrics() -> None:
    outside = Outside(metrics="all")
    emit_metrics({}, outside.build_world())
    emit_metrics({"Actions": 1.0}, outside.build_world())
    assert outside.lines == []


@pytest.mark.parametrize("days", [-400, 0, 400])
def test_emf_timestamp_comes_from_the_world_clock(days: int) -> None:
    outside = Outside()
    outside.clock._now += timedelta(days=days)  # noqa: SLF001 - no clock runs backwards
    emit_metrics({"CycleFailures": 1.0}, outside.build_world())
    assert json.loads(outside.lines[0])["_aws"]["Timestamp"] == outside.clock.get_time().timestamp() * 1000


def test_emf_lines_do_not_share_counts() -> None:
    outside = Outside(metrics="all")
    emit_metrics({"CycleFailures": 1.0}, outside.build_world())
    emit_metrics({"PendingPods": 2.0}, outside.build_world())
    first, second = map(json.loads, outside.lines)
    assert "PendingPods" not in first
    assert "CycleFailures" not in second


def test_rare_metrics_are_published_only_if_not_zero() -> None:
    assert list_metric_names(emit_single_line(PendingPods=0.0, CycleFailures=0.0)) == ["PendingPods"]
    assert emit_lines({"LaunchFailures": 0.0}, metric_set="all") == []


def test_alarm_metric_set_publishes_only_nonzero_alarm_metrics() -> None:
    all_counts = dict.fromkeys(ALL_METRICS, 1.0) | {"OrphanedInstancesTerminated": 0.0}
    assert set(list_metric_names(emit_single_line(metric_set="alarms", **all_counts))) == ALARM_METRICS - {
        "OrphanedInstancesTerminated",
        "PriceAgeSeconds",
        MONEY_USED,
    }
    assert emit_lines({"PendingPods": 5.0}, metric_set="alarms") == []


@pytest.mark.parametrize(("hours", "expected"), [(12, []), (13, []), (14, ["PriceAgeSeconds"])])
def test_price_age_is_published_after_a_missed_refresh(hours: int, expected: list[str]) -> None:
    emf_lines = emit_lines({"PriceAgeSeconds": 3600.0 * hours}, metric_set="alarms")
    assert [name for emf_line in emf_lines for name in list_metric_names(emf_line)] == expected


@pytest.mark.parametrize(("percent", "expected"), [(79.0, []), (80.0, [MONEY_USED]), (120.0, [MONEY_USED])])
def test_used_money_is_published_from_80_percent_on(percent: float, expected: list[str]) -> None:
    emf_lines = emit_lines({MONEY_USED: percent}, metric_set="alarms")
    assert [name for emf_line in emf_lines for name in list_metric_names(emf_line)] == expected


def test_number_of_metrics_is_at_most_25() -> None:
    assert ALARM_METRICS < ALL_METRICS
    optional_metrics = {MONEY_USED, REJECTED_CANARIES, REMOTE_WRITE_FAILURES}  # only with the settings for them
    assert len(ALL_METRICS - optional_metrics) <= 25
