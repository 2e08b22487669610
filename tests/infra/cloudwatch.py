"""CloudWatch as far as alarms need it: metrics of an embedded run, and what the alarms of a template make of them."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from sim.embedded import Embedded
from sim.lambdas.intrinsics import Resolver
from sim.watching.alarms import Alarm, parse_alarm
from sim.watching.metrics import Metric, embedded_in
from tests.infra.policies import Template, resources

MINUTE = timedelta(minutes=1)


class CloudWatch:
    """What was measured in *world*, whose stack is that of *template*."""

    def __init__(self, world: Embedded, template: Template) -> None:
        """Look at *world* whenever asked."""
        self._world = world
        self.alarms: dict[str, Alarm] = {
            key: parse_alarm(alarm)
            for key, alarm in resources(template, "AWS::CloudWatch::Alarm").items()
            if not key.startswith("Deployments")
        }
        functions, resolver = resources(template, "AWS::Lambda::Function"), Resolver(template)
        self._names = {resolver.ref(key): one["Handler"].split(".")[1] for key, one in functions.items()}

    def ringing(self) -> set[str]:
        """Answer which alarms ring now, as ``ProvisionSilent``."""
        now = self._world.clock.now()
        return {_short(key) for key, alarm in self.alarms.items() if alarm.state(self, now) == "ALARM"}

    def points(self, metric: Metric) -> Iterator[tuple[datetime, float]]:
        """Iterate over what was measured; queues were a minute ago as they are now."""
        dimensions = dict(metric.dimensions)
        if metric.namespace == "AWS/SQS":
            yield self._world.clock.now() - MINUTE, self._world.runtime.queue(dimensions["QueueName"]).visible()
        elif metric.namespace == "AWS/Lambda":
            for record in self._world.runtime.records:
                if record.function == self._names[dimensions["FunctionName"]]:
                    yield record.at, 1.0 if metric.name == "Invocations" else float(record.outcome != "ok")
        else:
            yield from ((one.at, one.value) for one in embedded_in(self._world.lines) if one.metric == metric)


def _short(logical_id: str) -> str:
    return re.sub(r"^Alarms|[0-9A-F]{8}$", "", logical_id)
