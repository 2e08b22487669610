"""When a person is told, and what there is to look at."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from shared.report.metrics import ALARMED, NAMESPACE, emit
from sim.bench import prepared
from tests.infra.policies import Template, resources
from tests.infra.stacks import PRIVATE, synthesis


def test_every_alarm_says_what_to_do_and_whom_it_tells(template: Template, private: Template) -> None:
    alarms = resources(template, "AWS::CloudWatch::Alarm").values()
    assert {alarm["AlarmDescription"].startswith("Joiner, demo: ") for alarm in alarms} == {True}
    assert not [alarm for alarm in alarms if alarm.keys() & {"AlarmActions", "OKActions"}]
    for alarm in resources(private, "AWS::CloudWatch::Alarm").values():
        assert alarm["AlarmActions"] == [PRIVATE["joiner:alarm-topic"]]


def test_whoever_is_told_of_an_alarm_is_told_that_it_is_over(private: Template) -> None:
    for alarm in resources(private, "AWS::CloudWatch::Alarm").values():
        assert alarm["OKActions"] == alarm["AlarmActions"]
        assert "InsufficientDataActions" not in alarm


def test_dead_letters_and_silence_are_noticed(template: Template) -> None:
    alarms = resources(template, "AWS::CloudWatch::Alarm").values()
    [dead] = [one for one in alarms if one.get("MetricName") == "ApproximateNumberOfMessagesVisible"]
    assert (dead["Threshold"], dead["EvaluationPeriods"]) == (1, 1)
    silent = [one for one in alarms if one["ComparisonOperator"] == "LessThanThreshold"]
    assert {one["TreatMissingData"] for one in silent} == {"breaching"}
    watched = {str(query["MetricStat"]["Metric"]["Dimensions"]) for one in silent for query in measured(one)}
    assert len(silent) == len(watched) == 3


def measured(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """Answer the queries of *alarm* that read a metric."""
    return [query for query in alarm["Metrics"] if "MetricStat" in query]


def test_alarms_read_metrics_that_functions_write_for_them_and_the_dashboard_none_that_cost(
    template: Template,
) -> None:
    alarms = resources(template, "AWS::CloudWatch::Alarm").values()
    assert {one["MetricName"] for one in alarms if one.get("Namespace") == NAMESPACE} == ALARMED
    [page] = resources(template, "AWS::CloudWatch::Dashboard").values()
    body = json.loads(page["DashboardBody"])
    metrics = [one for widget in body["widgets"] for one in widget["properties"].get("metrics", [])]
    assert {one[0] for one in metrics} == {"AWS/Lambda", "AWS/SQS"}


def test_every_widget_says_what_is_drawn_in_which_unit_and_every_line_whose_it_is(template: Template) -> None:
    [page] = resources(template, "AWS::CloudWatch::Dashboard").values()
    drawn = [one["properties"] for one in json.loads(page["DashboardBody"])["widgets"]]
    assert [one for one in drawn if not one.get("title")] == []
    graphs = [one for one in drawn if "metrics" in one]
    assert [one["title"] for one in graphs] == [
        "How long functions take, in milliseconds",
        "Messages that wait, by queue",
    ]
    for graph in graphs:
        assert graph["yAxis"]["left"]["min"] == 0
        assert all(line[-1].get("label") for line in graph["metrics"])


def test_nobody_needs_a_dashboard(tmp_path: Path) -> None:
    without = synthesis(str(tmp_path), {"joiner:dashboard": "false"})
    assert not resources(without, "AWS::CloudWatch::Dashboard")


def test_prices_that_grow_old_are_noticed_unless_nobody_wants_to_know(template: Template, private: Template) -> None:
    [alarm] = price_alarms(template)
    emitted: list[dict[str, Any]] = []
    some = msgspec.structs.replace(prepared(1), emit=lambda line: emitted.append(msgspec.json.decode(line)))
    emit({"PriceAgeSeconds": 60.0 * 60 * 48}, some)
    [[dimensions]] = [each["Dimensions"] for each in emitted[0]["_aws"]["CloudWatchMetrics"]]
    assert alarm["Namespace"] == emitted[0]["_aws"]["CloudWatchMetrics"][0]["Namespace"]
    written = {name: emitted[0][name] for name in dimensions} | {"cluster": "demo"}
    assert {each["Name"]: each["Value"] for each in alarm["Dimensions"]} == written
    assert alarm["Threshold"] == timedelta(hours=48).total_seconds()
    assert not price_alarms(private)


def price_alarms(template: Template) -> list[dict[str, Any]]:
    alarms = resources(template, "AWS::CloudWatch::Alarm").values()
    return [alarm for alarm in alarms if alarm.get("MetricName") == "PriceAgeSeconds"]
