"""Tests of alarms, by the tables of the CloudWatch user guide, and of metrics that are read from a log."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sim.cloudwatch.alarms import EXTRA_PERIODS, Alarm, parse_alarm
from sim.cloudwatch.expressions import NotUnderstood, evaluate_expression
from sim.cloudwatch.metrics import Metric, MetricDatum, MetricStore, parse_embedded_metrics

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ONE_MINUTE = timedelta(minutes=1)
METRIC_FIELDS = {
    "Namespace": "N",
    "MetricName": "M",
    "Dimensions": [{"Name": "b", "Value": "2"}, {"Name": "a", "Value": "1"}],
}
METRIC = Metric(namespace="N", name="M", dimensions=(("a", "1"), ("b", "2")))
TREATMENTS = ("missing", "ignore", "breaching", "notBreaching")


def make_alarm(**fields: Any) -> Alarm:
    """Return an alarm that fires at 1 and above in each of three minutes; *fields* override its fields."""
    usual = {"Statistic": "Sum", "Period": 60, "EvaluationPeriods": 3, "Threshold": 1.0}
    return parse_alarm({**METRIC_FIELDS, **usual, "ComparisonOperator": "GreaterThanOrEqualToThreshold", **fields})


def make_metric_store(*values: tuple[float, float], metric: Metric = METRIC) -> MetricStore:
    """Return a store of *values*, given as minutes before noon and value."""
    store = MetricStore()
    store.record_data(
        MetricDatum(metric=metric, timestamp=NOON - minutes * ONE_MINUTE, value=value) for minutes, value in values
    )
    return store


def draw_metric_store(text: str) -> MetricStore:
    """Return five minutes before noon as the guide draws them: X is beyond the threshold, 0 is not, - is missing."""
    value_by_symbol = {"X": 1.0, "0": 0.0}
    numbered_symbols = list(zip(range(len(text.split())), text.split(), strict=True))
    return make_metric_store(
        *((5 - place, value_by_symbol[symbol]) for place, symbol in numbered_symbols if symbol in value_by_symbol)
    )


@pytest.mark.parametrize(
    ("bad", "points", "states"),
    [
        (3, "0 - X - X", ("OK", "OK", "OK", "OK")),
        (3, "0 - - - -", ("OK", "OK", "OK", "OK")),
        (3, "- - - - -", ("INSUFFICIENT_DATA", None, "ALARM", "OK")),
        (3, "0 X X - X", ("ALARM", "ALARM", "ALARM", "ALARM")),
        (2, "0 - X - X", ("ALARM", "ALARM", "ALARM", "ALARM")),
        (2, "0 0 X 0 X", ("ALARM", "ALARM", "ALARM", "ALARM")),
        (2, "0 - X - -", ("OK", None, "ALARM", "OK")),
        (2, "- - - - 0", ("OK", None, "ALARM", "OK")),
        (1, "- - - - X", ("ALARM", "ALARM", "ALARM", "ALARM")),
    ],
)
def test_missing_data_is_treated_as_the_alarm_configures(bad: int, points: str, states: tuple[str | None, ...]) -> None:
    actual_states = [
        make_alarm(DatapointsToAlarm=bad, TreatMissingData=treatment).compute_state(draw_metric_store(points), NOON)
        for treatment in TREATMENTS
    ]
    assert actual_states == list(states)


@pytest.mark.parametrize(
    ("comparison", "ringing"),
    [
        ("GreaterThanOrEqualToThreshold", [False, True, True]),
        ("GreaterThanThreshold", [False, False, True]),
        ("LessThanOrEqualToThreshold", [True, True, False]),
        ("LessThanThreshold", [True, False, False]),
    ],
)
def test_alarm_supports_all_comparison_operators(comparison: str, ringing: list[bool]) -> None:
    single_period_alarm = make_alarm(ComparisonOperator=comparison, EvaluationPeriods=1)
    assert [
        single_period_alarm.compute_state(make_metric_store((1, value)), NOON) == "ALARM" for value in (0.0, 1.0, 2.0)
    ] == ringing


@pytest.mark.parametrize(
    ("statistic", "value"), [("Sum", 6.0), ("Maximum", 3.0), ("Minimum", 1.0), ("Average", 2.0), ("SampleCount", 3.0)]
)
def test_alarm_statistics_aggregate_a_period(statistic: str, value: float) -> None:
    numbers = make_metric_store((0.9, 1.0), (0.5, 3.0), (1.0, 2.0))
    for threshold, state in ((value, "ALARM"), (value + 0.1, "OK")):
        assert (
            make_alarm(Statistic=statistic, EvaluationPeriods=1, Threshold=threshold).compute_state(numbers, NOON)
            == state
        )


def test_alarm_evaluates_completed_minutes_and_sliding_periods() -> None:
    five_minute_alarm = make_alarm(Period=300, EvaluationPeriods=1, TreatMissingData="notBreaching")
    numbers = make_metric_store((0, 1.0))
    later = [five_minute_alarm.compute_state(numbers, NOON + minutes * ONE_MINUTE) for minutes in (0, 0.9, 1, 5.9)]
    assert later == ["OK", "OK", "ALARM", "ALARM"]
    evaluated_minutes = 5 * (1 + EXTRA_PERIODS) + 1
    assert five_minute_alarm.compute_state(numbers, NOON + evaluated_minutes * ONE_MINUTE) == "OK"


def test_alarm_minute_length_is_configurable() -> None:
    second = timedelta(seconds=1)
    numbers = MetricStore()
    numbers.record_data(MetricDatum(metric=METRIC, timestamp=NOON - number * second, value=1.0) for number in (1, 2, 3))
    assert make_alarm(TreatMissingData="notBreaching").compute_state(numbers, NOON) == "OK"
    assert make_alarm(TreatMissingData="notBreaching").compute_state(numbers, NOON, second) == "ALARM"


def test_metric_with_another_dimension_is_a_different_metric() -> None:
    further = Metric(namespace="N", name="M", dimensions=(*METRIC.dimensions, ("c", "3")))
    assert (
        make_alarm(EvaluationPeriods=1).compute_state(make_metric_store((1, 1.0), metric=further), NOON)
        == "INSUFFICIENT_DATA"
    )


def test_alarm_evaluates_a_metric_math_expression() -> None:
    stat = {"Metric": METRIC_FIELDS, "Period": 60, "Stat": "Sum"}
    queries = [
        {"Id": "e", "Expression": "FILL(a, 0) * 2 - 1"},
        {"Id": "a", "MetricStat": stat, "ReturnData": False},
    ]
    alarm_fields = {
        "Metrics": queries,
        "EvaluationPeriods": 1,
        "Threshold": 3,
        "ComparisonOperator": "GreaterThanThreshold",
    }
    assert parse_alarm(alarm_fields).compute_state(make_metric_store((1, 2.5)), NOON) == "ALARM"
    assert parse_alarm(alarm_fields).compute_state(make_metric_store((1, 2.0)), NOON) == "OK"
    assert parse_alarm(alarm_fields).list_metrics() == [METRIC]
    plain = {**alarm_fields, "Metrics": [{"Id": "a", "MetricStat": stat}]}
    assert parse_alarm(plain).compute_state(make_metric_store((1, 4.0)), NOON) == "ALARM"


@pytest.mark.parametrize(
    ("expression", "expected_values"),
    [
        ("one + two", (11.0, None, None)),
        ("one * 2 - 1", (1.0, None, 5.0)),
        ("2 - 1 + one", (2.0, None, 4.0)),
        ("FILL(one, 7)", (1.0, 7.0, 3.0)),
        ("FILL(none, 0)", (None, None, None)),
        ("SUM(METRICS())", (11.0, 20.0, 3.0)),
        ("MAX(METRICS())", (10.0, 20.0, 3.0)),
        ("MIN(METRICS())", (1.0, 20.0, 3.0)),
        ("AVG(METRICS())", (5.5, 20.0, 3.0)),
    ],
)
def test_metric_math_is_evaluated_per_period(expression: str, expected_values: tuple[float | None, ...]) -> None:
    series = {"one": (1.0, None, 3.0), "two": (10.0, 20.0, None), "none": (None, None, None)}
    assert evaluate_expression(expression, series) == expected_values


@pytest.mark.parametrize(
    "expression",
    ["", "unknown", "1", "one +", "one / 2", "METRICS()", "SUM(one)", "FILL(1, 0)", "METRICS() + one", "IF(one, 1, 0)"],
)
def test_unsupported_metric_math_is_rejected(expression: str) -> None:
    with pytest.raises(NotUnderstood):
        evaluate_expression(expression, {"one": (1.0,)})


def test_embedded_metrics_are_parsed_from_log_lines() -> None:
    directive = {"Namespace": "N", "Dimensions": [["b", "a"], ["a"]], "Metrics": [{"Name": "M"}, {"Name": "L"}]}
    stamp = round(NOON.timestamp() * 1000)
    log_record = {"_aws": {"Timestamp": stamp, "CloudWatchMetrics": [directive]}, "a": 1, "b": 2, "M": 4, "L": [5, 6]}
    lines = ["hello", '{"_aws"', '["_aws"]', '{"_aws": 1}', json.dumps({"n": 1}), json.dumps(log_record)]
    metric_values = [
        (datum.metric.name, datum.metric.dimensions, datum.value) for datum in parse_embedded_metrics(lines)
    ]
    key_pair, single = (("a", "1"), ("b", "2")), (("a", "1"),)
    assert metric_values == [
        (name, keys, value) for keys in (key_pair, single) for name, value in (("M", 4), ("L", 5), ("L", 6))
    ]
    assert {datum.timestamp for datum in parse_embedded_metrics(lines)} == {NOON}
