"""Computes the state of an alarm: M of N datapoints beyond the threshold.

Periods end at whole minutes and slide by one minute, at any length. Two more periods are evaluated than the
alarm asks for: older datapoints replace missing ones, and what is still missing is treated as the alarm says. Source:
the CloudWatch user guide ("Configuring how CloudWatch alarms treat missing data"); its exception for an old breach with
no earlier data is not simulated.
"""

import operator
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

import msgspec

from sim.cloudwatch.expressions import Series, evaluate_expression
from sim.cloudwatch.metrics import AGGREGATE_BY_STATISTIC, Metric, MetricSource, parse_metric

AlarmState: TypeAlias = Literal["ALARM", "INSUFFICIENT_DATA", "OK"]
REAL_MINUTE: Final = timedelta(minutes=1)
EXTRA_PERIODS: Final = 2
"""The periods that are evaluated in addition to the evaluation periods."""
_PERIOD_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_IS_BREACHING_BY_OPERATOR: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "GreaterThanThreshold": operator.gt,
    "LessThanOrEqualToThreshold": operator.le,
    "LessThanThreshold": operator.lt,
}


class MetricStatistic(msgspec.Struct, frozen=True, kw_only=True):
    """A metric and the statistic of each period."""

    metric: Metric
    name: str


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """A CloudWatch alarm: its metrics, threshold and evaluation periods."""

    statistics: dict[str, MetricStatistic]
    """By query id."""
    expression: str
    """The metric math expression over these ids."""
    period_minutes: int
    """The length of one period."""
    threshold: float
    comparison: str
    evaluation_periods: int
    datapoints_to_alarm: int
    """The number of evaluation periods that must be beyond the threshold."""
    treat_missing_data: str = "missing"

    def list_metrics(self) -> list[Metric]:
        """Return the metrics of the alarm, by query id."""
        return [statistic.metric for _, statistic in sorted(self.statistics.items())]

    def compute_state(
        self, metric_source: MetricSource, now: datetime, minute: timedelta = REAL_MINUTE
    ) -> AlarmState | None:
        """Return the state at *now*; None: the state does not change. A simulated minute lasts *minute*.

        Raises:
            NotUnderstood: the expression is not supported.
        """
        data_points = evaluate_expression(self.expression, self._build_series(metric_source, now, minute))
        breaches = [
            _IS_BREACHING_BY_OPERATOR[self.comparison](value, self.threshold)
            for value in data_points
            if value is not None
        ][-self.evaluation_periods :]
        breach_count, missing_count = sum(breaches), self.evaluation_periods - len(breaches)
        if breach_count >= self.datapoints_to_alarm:
            return "ALARM"
        if self.treat_missing_data == "breaching":
            return "ALARM" if breach_count + missing_count >= self.datapoints_to_alarm else "OK"
        if self.treat_missing_data == "ignore" and breach_count + missing_count >= self.datapoints_to_alarm:
            return None
        return "INSUFFICIENT_DATA" if self.treat_missing_data == "missing" and not breaches else "OK"

    def _build_series(self, metric_source: MetricSource, now: datetime, minute: timedelta) -> dict[str, Series]:
        """Return the value of each statistic in each completed period, oldest first."""
        period, end = self.period_minutes * minute, now - (now - _PERIOD_EPOCH) % minute
        period_starts = [
            end - period * (index + 1) for index in reversed(range(self.evaluation_periods + EXTRA_PERIODS))
        ]
        series_by_id = {}
        for key, statistic in self.statistics.items():
            points = list(metric_source.list_data_points(statistic.metric))
            values = [
                [value for at, value in points if period_start <= at < period_start + period]
                for period_start in period_starts
            ]
            series_by_id[key] = tuple(
                AGGREGATE_BY_STATISTIC[statistic.name](values) if values else None for values in values
            )
        return series_by_id


def parse_alarm(alarm_json: Mapping[str, Any]) -> Alarm:
    """Parse an alarm as DescribeAlarms returns it, or as in a template whose references are resolved.

    Raises:
        KeyError: it uses an unsupported feature, for example a percentile.
    """
    periods = int(alarm_json["EvaluationPeriods"])
    queries = {query["Id"]: query for query in alarm_json.get("Metrics") or ()}
    if queries:
        metric_stats = {key: query["MetricStat"] for key, query in queries.items() if query.get("MetricStat")}
        statistics = {
            key: MetricStatistic(metric=parse_metric(metric_stat["Metric"]), name=metric_stat["Stat"])
            for key, metric_stat in metric_stats.items()
        }
        seconds = max(int(metric_stat["Period"]) for metric_stat in metric_stats.values())
        [returned_id] = [key for key, query in queries.items() if query.get("ReturnData", True)]
        expression = queries[returned_id].get("Expression") or returned_id
    else:
        statistics = {"it": MetricStatistic(metric=parse_metric(alarm_json), name=alarm_json["Statistic"])}
        seconds, expression = int(alarm_json["Period"]), "it"
    return Alarm(
        statistics=statistics,
        expression=expression,
        period_minutes=seconds // 60,
        threshold=float(alarm_json["Threshold"]),
        comparison=alarm_json["ComparisonOperator"],
        evaluation_periods=periods,
        datapoints_to_alarm=int(alarm_json.get("DatapointsToAlarm") or periods),
        treat_missing_data=alarm_json.get("TreatMissingData") or "missing",
    )
