"""What state an alarm is in: by periods, of which so many of so many are beyond a threshold.

Periods end at whole minutes, and slide by one, however long they are. Two more of them are looked at than the alarm
asks for: where some have nothing, older ones count in their place, and what is missing then is treated as the alarm
says. As in the user guide ("Configuring how CloudWatch alarms treat missing data"); its exception for an old breach
before which nothing is known is not played.
"""

import operator
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

import msgspec

from sim.watching.expressions import Series, evaluated
from sim.watching.metrics import STATISTICS, Measured, Metric, metric_of

State: TypeAlias = Literal["ALARM", "INSUFFICIENT_DATA", "OK"]
MINUTE: Final = timedelta(minutes=1)
FURTHER: Final = 2
"""Periods that are looked at besides those that are asked for."""
_BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)
_BEYOND: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "GreaterThanOrEqualToThreshold": operator.ge,
    "GreaterThanThreshold": operator.gt,
    "LessThanOrEqualToThreshold": operator.le,
    "LessThanThreshold": operator.lt,
}


class Statistic(msgspec.Struct, frozen=True, kw_only=True):
    """A metric, and what is made of the numbers of one period."""

    metric: Metric
    name: str


class Alarm(msgspec.Struct, frozen=True, kw_only=True):
    """What an alarm looks at, and when it rings."""

    statistics: dict[str, Statistic]
    """By id."""
    expression: str
    """Of those ids."""
    minutes: int
    """Of one period."""
    threshold: float
    comparison: str
    periods: int
    bad_periods: int
    """Of those, so many have to be beyond the threshold."""
    missing: str = "missing"

    def metrics(self) -> list[Metric]:
        """Answer the metrics that it looks at, by id."""
        return [one.metric for _, one in sorted(self.statistics.items())]

    def state(self, measured: Measured, now: datetime, minute: timedelta = MINUTE) -> State | None:
        """Answer the state at *now*; None: what it was before. A minute lasts *minute*.

        Raises:
            NotUnderstood: its expression says something that is unknown here.
        """
        found = evaluated(self.expression, self._series(measured, now, minute))
        known = [_BEYOND[self.comparison](one, self.threshold) for one in found if one is not None][-self.periods :]
        bad, holes = sum(known), self.periods - len(known)
        if bad >= self.bad_periods:
            return "ALARM"
        if self.missing == "breaching":
            return "ALARM" if bad + holes >= self.bad_periods else "OK"
        if self.missing == "ignore" and bad + holes >= self.bad_periods:
            return None
        return "INSUFFICIENT_DATA" if self.missing == "missing" and not known else "OK"

    def _series(self, measured: Measured, now: datetime, minute: timedelta) -> dict[str, Series]:
        """Answer what each statistic was in each period that is over, oldest first."""
        period, end = self.minutes * minute, now - (now - _BEGINNING) % minute
        begins = [end - period * (place + 1) for place in reversed(range(self.periods + FURTHER))]
        found = {}
        for key, statistic in self.statistics.items():
            points = list(measured.points(statistic.metric))
            values = [[value for at, value in points if begin <= at < begin + period] for begin in begins]
            found[key] = tuple(STATISTICS[statistic.name](some) if some else None for some in values)
        return found


def parse_alarm(said: Mapping[str, Any]) -> Alarm:
    """Read an alarm as DescribeAlarms answers it, or a template whose references are resolved.

    Raises:
        KeyError: it looks at something that is unknown here, like a percentile.
    """
    periods = int(said["EvaluationPeriods"])
    queries = {one["Id"]: one for one in said.get("Metrics") or ()}
    if queries:
        stats = {key: one["MetricStat"] for key, one in queries.items() if one.get("MetricStat")}
        statistics = {key: Statistic(metric=metric_of(one["Metric"]), name=one["Stat"]) for key, one in stats.items()}
        seconds = max(int(one["Period"]) for one in stats.values())
        [shown] = [key for key, one in queries.items() if one.get("ReturnData", True)]
        expression = queries[shown].get("Expression") or shown
    else:
        statistics = {"it": Statistic(metric=metric_of(said), name=said["Statistic"])}
        seconds, expression = int(said["Period"]), "it"
    return Alarm(
        statistics=statistics,
        expression=expression,
        minutes=seconds // 60,
        threshold=float(said["Threshold"]),
        comparison=said["ComparisonOperator"],
        periods=periods,
        bad_periods=int(said.get("DatapointsToAlarm") or periods),
        missing=said.get("TreatMissingData") or "missing",
    )
