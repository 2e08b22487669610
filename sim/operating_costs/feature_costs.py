"""What optional features add to the bill, from the requests that the functions make with each of them.

The same cluster is measured without and with each feature. Processor time is left out, because it varies by more than
the features cost: of the duration of the functions, only the calls count.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

import msgspec

from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from sim.operating_costs.bill import build_bill, sum_usd
from sim.operating_costs.list_prices import SECONDS_PER_MONTH
from sim.operating_costs.usage import StackUsage
from sim.operating_costs.usage_measurement import measure_usage

FEATURE_NODE_COUNT: Final = 20
"""The size of the cluster in which features are measured."""
SETTINGS_BY_FEATURE: Final[Mapping[str, Mapping[str, str]]] = {
    "gangs": {"gangs": "on"},
    "provisioning-requests": {"provisioning-requests": "on"},
    "dynamic-resource-allocation": {"dynamic-resource-allocation": "on"},
    "canary": {"canary-alarm": "true"},
    "group": {
        "group": "batch",
        "group-limit-usd-per-hour": "10000",
        "group-table": "arn:aws:dynamodb:us-east-1:111122223333:table/joiner-groups",
    },
    "event-bus": {"event-bus": "alerts"},
    "scheduled-scaling": {"scheduled-scaling": "on"},
}
"""The settings of each feature. With `canary`, AWS releases an image, and a canary tests it."""
KUBERNETES_PORT: Final = "kube"


class FeatureCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a feature adds per month; less than nothing if its runs do less."""

    feature: str
    kubernetes_requests: int
    aws_requests: int
    usd: float


def measure_feature_costs(duration: timedelta, report_progress: Callable[[str], None]) -> Iterator[FeatureCost]:
    """Yield what each feature adds in a cluster of `FEATURE_NODE_COUNT` nodes, measured during *duration*."""
    plain_template, plain_usage = _measure({}, duration, report_progress)
    for feature, settings in SETTINGS_BY_FEATURE.items():
        report_progress(f"with {feature}")
        template, usage = _measure(settings, duration, report_progress, has_canary=feature == "canary")
        yield compare_usages(feature, (plain_template, plain_usage), (template, usage))


def compare_usages(
    feature: str, plain: tuple[Mapping[str, Any], StackUsage], with_feature: tuple[Mapping[str, Any], StackUsage]
) -> FeatureCost:
    """Return what *with_feature* costs more than *plain*; each is a template and its usage."""
    monthly_factor = SECONDS_PER_MONTH / plain[1].duration.total_seconds()
    requests = [_count_requests(usage) for _, usage in (plain, with_feature)]
    usd = [sum_usd(build_bill(template, _without_processor_time(usage))) for template, usage in (plain, with_feature)]
    return FeatureCost(
        feature=feature,
        kubernetes_requests=round((requests[1][0] - requests[0][0]) * monthly_factor),
        aws_requests=round((requests[1][1] - requests[0][1]) * monthly_factor),
        usd=usd[1] - usd[0],
    )


def format_feature_costs(costs: Iterable[FeatureCost]) -> Iterator[str]:
    """Yield the lines of a table, each as soon as it is measured."""
    yield f"optional features, {FEATURE_NODE_COUNT} nodes: additional requests and USD a month\n"
    for cost in costs:
        quantity = f"{cost.kubernetes_requests:,} requests to Kubernetes, {cost.aws_requests:,} to AWS"
        yield f"{cost.feature:30}{quantity:52}{cost.usd:8.2f}\n"


def _measure(
    settings: Mapping[str, str],
    duration: timedelta,
    report_progress: Callable[[str], None],
    *,
    has_canary: bool = False,
) -> tuple[Mapping[str, Any], StackUsage]:
    template = synthesize_template(settings=ACTIVE_SETTINGS | dict(settings))
    usage = measure_usage(template, FEATURE_NODE_COUNT, duration, report_progress, has_canary=has_canary)
    return template, usage


def _count_requests(usage: StackUsage) -> tuple[int, int]:
    """Return the number of requests to Kubernetes and to AWS."""
    calls = [call for function_usage in usage.functions.values() for call in function_usage.calls.items()]
    kubernetes_count = sum(times for (port, _), times in calls if port == KUBERNETES_PORT)
    return kubernetes_count, sum(times for _, times in calls) - kubernetes_count


def _without_processor_time(usage: StackUsage) -> StackUsage:
    functions = {
        name: msgspec.structs.replace(function_usage, processor_seconds=0.0)
        for name, function_usage in usage.functions.items()
    }
    return msgspec.structs.replace(usage, functions=functions)
