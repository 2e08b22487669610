"""Alarms, their notifications, and the dashboard."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shared.report.metrics.emf import ALARM_METRICS, MONEY_USED, NAMESPACE, REJECTED_CANARIES, emit_metrics
from sim.authorization.template_policies import Template, get_resources
from sim.benchmarks.decision_time import build_benchmark_world
from tests.infra.stacks import PRIVATE, synthesize_stack


def test_every_alarm_has_a_description_and_notifies_the_configured_topic(template: Template, private: Template) -> None:
    alarms = get_resources(template, "AWS::CloudWatch::Alarm").values()
    assert {alarm["AlarmDescription"].startswith("Joiner, demo: ") for alarm in alarms} == {True}
    assert not [alarm for alarm in alarms if alarm.keys() & {"AlarmActions", "OKActions"}]
    for alarm in get_resources(private, "AWS::CloudWatch::Alarm").values():
        assert alarm["AlarmActions"] == [PRIVATE["alarm-topic"]]


def test_alarm_recovery_notifies_the_same_topic(private: Template) -> None:
    for alarm in get_resources(private, "AWS::CloudWatch::Alarm").values():
        assert alarm["OKActions"] == alarm["AlarmActions"]
        assert "InsufficientDataActions" not in alarm


def test_dead_letters_and_silent_functions_have_alarms(template: Template) -> None:
    alarms = get_resources(template, "AWS::CloudWatch::Alarm").values()
    [dead] = [alarm for alarm in alarms if alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible"]
    assert (dead["Threshold"], dead["EvaluationPeriods"]) == (1, 1)
    silent = [alarm for alarm in alarms if alarm["ComparisonOperator"] == "LessThanThreshold"]
    assert {alarm["TreatMissingData"] for alarm in silent} == {"ignore"}
    watched = {
        str(query["MetricStat"]["Metric"]["Dimensions"]) for alarm in silent for query in list_metric_queries(alarm)
    }
    assert len(silent) == len(watched) == 3


def list_metric_queries(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the queries of *alarm* that read a metric."""
    return [query for query in alarm["Metrics"] if "MetricStat" in query]


def test_alarms_use_emitted_metrics_and_dashboard_uses_only_free_metrics(
    template: Template,
) -> None:
    alarms = get_resources(template, "AWS::CloudWatch::Alarm").values()
    metric_names = {alarm["MetricName"] for alarm in alarms if alarm.get("Namespace") == NAMESPACE}
    assert metric_names == ALARM_METRICS - {MONEY_USED, REJECTED_CANARIES}  # their alarms are off by default
    [page] = get_resources(template, "AWS::CloudWatch::Dashboard").values()
    body = json.loads(page["DashboardBody"])
    metrics = [metric for widget in body["widgets"] for metric in widget["properties"].get("metrics", [])]
    assert {metric[0] for metric in metrics} == {"AWS/Lambda", "AWS/SQS"}


@pytest.mark.parametrize("setting", ["limit-usd-per-hour", "monthly-budget-usd"])
def test_limits_in_money_have_an_alarm_at_80_percent(setting: str, tmp_path: Path) -> None:
    template = synthesize_stack(str(tmp_path), {"cluster": "demo", setting: "100"})
    alarms = get_resources(template, "AWS::CloudWatch::Alarm").values()
    [alarm] = [alarm for alarm in alarms if alarm.get("MetricName") == MONEY_USED]
    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (80, "GreaterThanOrEqualToThreshold")


@pytest.mark.parametrize(("setting", "count"), [("true", 1), ("false", 0)])
def test_rejected_canaries_have_an_alarm_if_it_is_enabled(setting: str, count: int, tmp_path: Path) -> None:
    template = synthesize_stack(str(tmp_path), {"cluster": "demo", "canary-alarm": setting})
    alarms = get_resources(template, "AWS::CloudWatch::Alarm").values()
    assert [alarm.get("MetricName") for alarm in alarms].count(REJECTED_CANARIES) == count


def test_every_dashboard_widget_has_title_unit_and_series_labels(template: Template) -> None:
    [page] = get_resources(template, "AWS::CloudWatch::Dashboard").values()
    widget_properties = [widget["properties"] for widget in json.loads(page["DashboardBody"])["widgets"]]
    assert [properties for properties in widget_properties if not properties.get("title")] == []
    graphs = [properties for properties in widget_properties if "metrics" in properties]
    assert [properties["title"] for properties in graphs] == [
        "Function duration (ms)",
        "Messages by queue",
    ]
    for graph in graphs:
        assert graph["yAxis"]["left"]["min"] == 0
        assert all(line[-1].get("label") for line in graph["metrics"])


def test_dashboard_can_be_disabled(tmp_path: Path) -> None:
    template = synthesize_stack(str(tmp_path), {"dashboard": "false"})
    assert not get_resources(template, "AWS::CloudWatch::Dashboard")


def test_outdated_prices_have_an_alarm_unless_disabled(template: Template, private: Template) -> None:
    [alarm] = list_price_alarms(template)
    emitted: list[dict[str, Any]] = []
    benchmark_world = msgspec.structs.replace(
        build_benchmark_world(1), emit=lambda line: emitted.append(msgspec.json.decode(line))
    )
    emit_metrics({"PriceAgeSeconds": 60.0 * 60 * 48}, benchmark_world)
    [[dimensions]] = [metric_set["Dimensions"] for metric_set in emitted[0]["_aws"]["CloudWatchMetrics"]]
    assert alarm["Namespace"] == emitted[0]["_aws"]["CloudWatchMetrics"][0]["Namespace"]
    dimension_values = {name: emitted[0][name] for name in dimensions} | {"cluster": "demo"}
    assert {dimension["Name"]: dimension["Value"] for dimension in alarm["Dimensions"]} == dimension_values
    assert alarm["Threshold"] == timedelta(hours=48).total_seconds()
    assert not list_price_alarms(private)


def list_price_alarms(template: Template) -> list[dict[str, Any]]:
    alarms = get_resources(template, "AWS::CloudWatch::Alarm").values()
    return [alarm for alarm in alarms if alarm.get("MetricName") == "PriceAgeSeconds"]
