"""Lambda's metrics of an invocation: by function, by invoked resource, and by version if an alias routes to two."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from sim.aws_account.function_runtime import DeployedFunction
from sim.cloudwatch.metrics import Metric, MetricDatum, parse_embedded_metrics
from sim.lambda_processes.sandboxes import SandboxInvocation

_ONE_MILLISECOND: Final = timedelta(milliseconds=1)


def build_invocation_metrics(function: DeployedFunction, call: SandboxInvocation) -> Iterator[MetricDatum]:
    """Yield the data of an invocation of *function*: Lambda's metrics, and the EMF metrics in its log."""
    values = {
        "Duration": call.result.duration / _ONE_MILLISECOND,
        "Errors": float(call.result.status != "success"),
        "Invocations": 1.0,
    }
    yield from _build_metric_data(function, call.started_at, values)
    yield from parse_embedded_metrics(call.log_lines)


def build_throttle_metrics(function: DeployedFunction, at: datetime) -> Iterator[MetricDatum]:
    """Yield the data of a throttled call of *function* at *at*: it does not count as an invocation."""
    yield from _build_metric_data(function, at, {"Throttles": 1.0})


def _build_metric_data(function: DeployedFunction, at: datetime, values: dict[str, float]) -> Iterator[MetricDatum]:
    resource_dimension = ("Resource", function.arn.partition(":function:")[2])
    function_dimension, version_dimension = ("FunctionName", function.name), ("ExecutedVersion", function.version)
    dimension_sets = (
        (function_dimension,),
        (function_dimension, resource_dimension),
        *(((version_dimension, function_dimension, resource_dimension),) if function.is_weighted_choice else ()),
    )
    for name, value in values.items():
        for dimensions in dimension_sets:
            yield MetricDatum(
                metric=Metric(namespace="AWS/Lambda", name=name, dimensions=dimensions), timestamp=at, value=value
            )
