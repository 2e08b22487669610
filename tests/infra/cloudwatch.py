"""CloudWatch as far as alarms need it: metrics of an embedded run, and what the alarms of a template make of them."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sim.embedded import Embedded
from sim.lambdas.intrinsics import Resolver
from tests.infra.policies import Template, resources

_FILL: Final = re.compile(r"FILL\((\w+), 0\)")
STATISTICS: Final[Mapping[str, Callable[[Iterable[float]], float]]] = {"Sum": sum, "Maximum": max}


class CloudWatch:
    """What was measured in *world*, whose stack is that of *template*."""

    def __init__(self, world: Embedded, template: Template) -> None:
        """Look at *world* whenever asked."""
        self._world = world
        self.alarms = {
            key: alarm
            for key, alarm in resources(template, "AWS::CloudWatch::Alarm").items()
            if not key.startswith("Deployments")
        }
        functions, resolver = resources(template, "AWS::Lambda::Function"), Resolver(template)
        self._names = {resolver.ref(key): one["Handler"].split(".")[1] for key, one in functions.items()}

    def ringing(self) -> set[str]:
        """Answer which alarms ring now, as ``ProvisionSilent``."""
        return {name for key, alarm in self.alarms.items() if self._rings(alarm) for name in [_short(key)]}

    def _rings(self, alarm: Mapping[str, Any]) -> bool:
        now = self._world.clock.now()
        period = timedelta(seconds=alarm.get("Period") or max(map(_period, alarm["Metrics"])))
        return all(
            self._is_beyond(alarm, now - period * (number + 1), now - period * number)
            for number in range(alarm["EvaluationPeriods"])
        )

    def _is_beyond(self, alarm: Mapping[str, Any], begin: datetime, end: datetime) -> bool:
        value = self._value(alarm, begin, end)
        if value is None:
            return bool(alarm["TreatMissingData"] == "breaching")
        if alarm["ComparisonOperator"] == "LessThanThreshold":
            return bool(value < alarm["Threshold"])
        assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
        return bool(value >= alarm["Threshold"])

    def _value(self, alarm: Mapping[str, Any], begin: datetime, end: datetime) -> float | None:
        if "MetricName" in alarm:
            return self._statistic(alarm, alarm["Statistic"], begin, end)
        stats = {one["Id"]: one["MetricStat"] for one in alarm["Metrics"] if "MetricStat" in one}
        [expression] = [one["Expression"] for one in alarm["Metrics"] if "Expression" in one]
        found = {name: self._statistic(one["Metric"], one["Stat"], begin, end) for name, one in stats.items()}
        if all(value is None for value in found.values()):
            return None
        plus, minus = _FILL.findall(expression)
        assert expression == f"FILL({plus}, 0) - FILL({minus}, 0)"
        return (found[plus] or 0.0) - (found[minus] or 0.0)

    def _statistic(self, metric: Mapping[str, Any], name: str, begin: datetime, end: datetime) -> float | None:
        wanted = {one["Name"]: one["Value"] for one in metric["Dimensions"]}
        points = [
            value for at, value in self._points(metric["Namespace"], metric["MetricName"], wanted) if begin < at <= end
        ]
        return float(STATISTICS[name](points)) if points else None

    def _points(self, namespace: str, name: str, wanted: Mapping[str, str]) -> Iterator[tuple[datetime, float]]:
        if namespace == "AWS/SQS":
            yield self._world.clock.now(), self._world.runtime.queue(wanted["QueueName"]).visible()
        elif namespace == "AWS/Lambda":
            for record in self._world.runtime.records:
                if record.function == self._names[wanted["FunctionName"]]:
                    yield record.at, 1.0 if name == "Invocations" else float(record.outcome != "ok")
        else:
            yield from published(self._world.lines, namespace, name, wanted)


def published(
    lines: list[str], namespace: str, name: str, wanted: Mapping[str, str]
) -> Iterator[tuple[datetime, float]]:
    """Iterate over what *lines* say of one metric, in embedded metric format."""
    for line in lines:
        document = json.loads(line)
        for directive in document.get("_aws", {}).get("CloudWatchMetrics", []):
            for keys in directive["Dimensions"]:
                is_it = directive["Namespace"] == namespace and {key: document[key] for key in keys} == wanted
                if is_it and any(metric["Name"] == name for metric in directive["Metrics"]):
                    at = datetime.fromtimestamp(document["_aws"]["Timestamp"] / 1000, UTC)
                    yield from ((at, value) for value in document[name])


def _period(query: Mapping[str, Any]) -> int:
    return int(query["MetricStat"]["Period"]) if "MetricStat" in query else 0


def _short(logical_id: str) -> str:
    return re.sub(r"^Alarms|[0-9A-F]{8}$", "", logical_id)
