"""Alarms by what was measured: as the tables of the user guide have it, and as the metrics of a log are read."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sim.watching.alarms import FURTHER, Alarm, parse_alarm
from sim.watching.expressions import NotUnderstood, evaluated
from sim.watching.metrics import Datum, Metric, Metrics, embedded_in

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SEEN = {"Namespace": "N", "MetricName": "M", "Dimensions": [{"Name": "b", "Value": "2"}, {"Name": "a", "Value": "1"}]}
METRIC = Metric(namespace="N", name="M", dimensions=(("a", "1"), ("b", "2")))
TREATMENTS = ("missing", "ignore", "breaching", "notBreaching")


def alarm(**said: Any) -> Alarm:
    """Answer one that rings at 1 and above in each of three minutes, unless *said* says otherwise."""
    usual = {"Statistic": "Sum", "Period": 60, "EvaluationPeriods": 3, "Threshold": 1.0}
    return parse_alarm({**SEEN, **usual, "ComparisonOperator": "GreaterThanOrEqualToThreshold", **said})


def measured(*values: tuple[float, float], metric: Metric = METRIC) -> Metrics:
    """Answer *values* by their minutes before noon."""
    made = Metrics()
    made.record(Datum(metric=metric, at=NOON - minutes * MINUTE, value=value) for minutes, value in values)
    return made


def drawn(text: str) -> Metrics:
    """Answer five minutes before noon as the guide draws them: X is beyond the threshold, 0 is not, - is missing."""
    drawn = {"X": 1.0, "0": 0.0}
    there = list(zip(range(len(text.split())), text.split(), strict=True))
    return measured(*((5 - place, drawn[one]) for place, one in there if one in drawn))


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
def test_what_is_missing_is_treated_as_the_alarm_says(bad: int, points: str, states: tuple[str | None, ...]) -> None:
    found = [alarm(DatapointsToAlarm=bad, TreatMissingData=one).state(drawn(points), NOON) for one in TREATMENTS]
    assert found == list(states)


@pytest.mark.parametrize(
    ("comparison", "ringing"),
    [
        ("GreaterThanOrEqualToThreshold", [False, True, True]),
        ("GreaterThanThreshold", [False, False, True]),
        ("LessThanOrEqualToThreshold", [True, True, False]),
        ("LessThanThreshold", [True, False, False]),
    ],
)
def test_beyond_is_as_the_alarm_compares(comparison: str, ringing: list[bool]) -> None:
    one = alarm(ComparisonOperator=comparison, EvaluationPeriods=1)
    assert [one.state(measured((1, value)), NOON) == "ALARM" for value in (0.0, 1.0, 2.0)] == ringing


@pytest.mark.parametrize(
    ("statistic", "value"), [("Sum", 6.0), ("Maximum", 3.0), ("Minimum", 1.0), ("Average", 2.0), ("SampleCount", 3.0)]
)
def test_a_period_is_one_number(statistic: str, value: float) -> None:
    numbers = measured((0.9, 1.0), (0.5, 3.0), (1.0, 2.0))
    for threshold, state in ((value, "ALARM"), (value + 0.1, "OK")):
        assert alarm(Statistic=statistic, EvaluationPeriods=1, Threshold=threshold).state(numbers, NOON) == state


def test_a_minute_counts_when_it_is_over_and_long_periods_slide_by_minutes() -> None:
    one = alarm(Period=300, EvaluationPeriods=1, TreatMissingData="notBreaching")
    numbers = measured((0, 1.0))
    later = [one.state(numbers, NOON + minutes * MINUTE) for minutes in (0, 0.9, 1, 5.9)]
    assert later == ["OK", "OK", "ALARM", "ALARM"]
    gone = 5 * (1 + FURTHER) + 1
    assert one.state(numbers, NOON + gone * MINUTE) == "OK"


def test_minutes_may_pass_as_fast_as_somebody_wants() -> None:
    second = timedelta(seconds=1)
    numbers = Metrics()
    numbers.record(Datum(metric=METRIC, at=NOON - number * second, value=1.0) for number in (1, 2, 3))
    assert alarm(TreatMissingData="notBreaching").state(numbers, NOON) == "OK"
    assert alarm(TreatMissingData="notBreaching").state(numbers, NOON, second) == "ALARM"


def test_another_dimension_is_another_metric() -> None:
    further = Metric(namespace="N", name="M", dimensions=(*METRIC.dimensions, ("c", "3")))
    assert alarm(EvaluationPeriods=1).state(measured((1, 1.0), metric=further), NOON) == "INSUFFICIENT_DATA"


def test_several_metrics_are_put_together_by_an_expression() -> None:
    stat = {"Metric": SEEN, "Period": 60, "Stat": "Sum"}
    queries = [
        {"Id": "e", "Expression": "FILL(a, 0) * 2 - 1"},
        {"Id": "a", "MetricStat": stat, "ReturnData": False},
    ]
    said = {"Metrics": queries, "EvaluationPeriods": 1, "Threshold": 3, "ComparisonOperator": "GreaterThanThreshold"}
    assert parse_alarm(said).state(measured((1, 2.5)), NOON) == "ALARM"
    assert parse_alarm(said).state(measured((1, 2.0)), NOON) == "OK"
    assert parse_alarm(said).metrics() == [METRIC]
    plain = {**said, "Metrics": [{"Id": "a", "MetricStat": stat}]}
    assert parse_alarm(plain).state(measured((1, 4.0)), NOON) == "ALARM"


@pytest.mark.parametrize(
    ("expression", "found"),
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
def test_math_is_done_period_by_period(expression: str, found: tuple[float | None, ...]) -> None:
    series = {"one": (1.0, None, 3.0), "two": (10.0, 20.0, None), "none": (None, None, None)}
    assert evaluated(expression, series) == found


@pytest.mark.parametrize(
    "expression",
    ["", "unknown", "1", "one +", "one / 2", "METRICS()", "SUM(one)", "FILL(1, 0)", "METRICS() + one", "IF(one, 1, 0)"],
)
def test_math_that_is_not_understood_is_refused(expression: str) -> None:
    with pytest.raises(NotUnderstood):
        evaluated(expression, {"one": (1.0,)})


def test_a_log_says_metrics_among_other_things() -> None:
    directive = {"Namespace": "N", "Dimensions": [["b", "a"], ["a"]], "Metrics": [{"Name": "M"}, {"Name": "L"}]}
    stamp = round(NOON.timestamp() * 1000)
    said = {"_aws": {"Timestamp": stamp, "CloudWatchMetrics": [directive]}, "a": 1, "b": 2, "M": 4, "L": [5, 6]}
    lines = ["hello", '{"_aws"', '["_aws"]', '{"_aws": 1}', json.dumps({"n": 1}), json.dumps(said)]
    found = [(one.metric.name, one.metric.dimensions, one.value) for one in embedded_in(lines)]
    both, single = (("a", "1"), ("b", "2")), (("a", "1"),)
    assert found == [(name, keys, value) for keys in (both, single) for name, value in (("M", 4), ("L", 5), ("L", 6))]
    assert {one.at for one in embedded_in(lines)} == {NOON}
