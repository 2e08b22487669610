"""The part of CloudWatch that alarms need: metrics of an embedded run, and the states of a template's alarms."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from sim.authorization.template_policies import Template, get_resources
from sim.cloudwatch.alarms import Alarm, parse_alarm
from sim.cloudwatch.metrics import Metric, parse_embedded_metrics
from sim.lambda_runtime.stack_template.generated_references import IntrinsicResolver
from sim.world.embedded_world import EmbeddedWorld

ONE_MINUTE = timedelta(minutes=1)


class CloudWatch:
    """CloudWatch for *world*, whose stack is that of *template*."""

    def __init__(self, world: EmbeddedWorld, template: Template) -> None:
        """Read the alarms of *template*."""
        self._world = world
        self.alarms: dict[str, Alarm] = {
            key: parse_alarm(alarm)
            for key, alarm in get_resources(template, "AWS::CloudWatch::Alarm").items()
            if not key.startswith("Deployments")
        }
        functions, resolver = get_resources(template, "AWS::Lambda::Function"), IntrinsicResolver(template)
        self._names = {
            resolver.resolve_ref(key): function_properties["Handler"].split(".")[1]
            for key, function_properties in functions.items()
        }

    def list_ringing_alarms(self) -> set[str]:
        """Return the names of the alarms that ring now, such as ``ProvisionNotSucceeding``."""
        now = self._world.clock.get_time()
        return {
            _shorten_alarm_id(key) for key, alarm in self.alarms.items() if alarm.compute_state(self, now) == "ALARM"
        }

    def list_data_points(self, metric: Metric) -> Iterator[tuple[datetime, float]]:
        """Yield the data points of *metric*; a queue's current length counts for one minute ago."""
        dimensions = dict(metric.dimensions)
        if metric.namespace == "AWS/SQS":
            yield (
                self._world.clock.get_time() - ONE_MINUTE,
                self._world.runtime.get_queue(dimensions["QueueName"]).count_visible(),
            )
        elif metric.namespace == "AWS/Lambda":
            for record in self._world.runtime.invocations:
                if record.function == self._names[dimensions["FunctionName"]]:
                    yield record.started_at, 1.0 if metric.name == "Invocations" else float(record.outcome != "ok")
        else:
            yield from (
                (data_point.timestamp, data_point.value)
                for data_point in parse_embedded_metrics(self._world.log_lines)
                if data_point.metric == metric
            )


def _shorten_alarm_id(logical_id: str) -> str:
    return re.sub(r"^Alarms|[0-9A-F]{8}$", "", logical_id)
