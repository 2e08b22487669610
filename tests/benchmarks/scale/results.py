"""The results of scenarios: what functions used, and measured values next to their goals."""

import math
from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from tests.benchmarks.scale.scale_world import MeteredInvocation, ScaleWorld

GoalKind = Literal["count", "seconds"]
"""Counts (requests, bytes, memory) fail the benchmark if they miss their goal; seconds depend on the computer."""
COUNT_TOLERANCE: Final = 1.1
"""A count misses its goal only above this factor."""
REFERENCE_NODE_COUNT: Final = 5000
"""Goals apply to clusters up to this size."""
MAX_GROWTH_EXPONENT: Final = 1.3
"""CPU time may grow with this power of the number of nodes: 1 is linear; the rest is noise of short invocations."""


class FunctionUsage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What all invocations of a function used in a scenario, next to its settings."""

    function: str
    invocations: int
    cpu_seconds: float
    max_cpu_seconds: float
    """Of the most expensive invocation."""
    wall_seconds: float
    max_lambda_seconds: float
    """Estimated duration of the longest invocation on Lambda: CPU time on its share of a processor, and responses."""
    timeout_seconds: float
    base_mib: float
    """Memory of the process before its first invocation."""
    peak_mib: float
    memory_mb: int
    kube_requests: int
    kube_bytes: int
    aws_requests: int
    aws_bytes: int
    calls: dict[str, int]


class Measure(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A measured value, and its goal if it has one."""

    name: str
    value: float
    unit: str = ""
    goal: float | None = None
    kind: GoalKind = "count"

    @property
    def is_met(self) -> bool:
        """Whether the goal is met."""
        return self.goal is None or self.value <= self.goal

    @property
    def fails(self) -> bool:
        """Whether the benchmark fails: a count is above its goal by more than noise."""
        return self.kind == "count" and self.goal is not None and self.value > self.goal * COUNT_TOLERANCE


class ScenarioResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of one scenario with one number of nodes."""

    scenario: str
    nodes: int
    pods: int
    functions: tuple[FunctionUsage, ...]
    measures: tuple[Measure, ...]


class Growth(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How the CPU time of a function grows from the smallest to the largest number of nodes."""

    scenario: str
    function: str
    exponent: float

    @property
    def fails(self) -> bool:
        """Whether the growth is superlinear by more than noise."""
        return self.exponent > MAX_GROWTH_EXPONENT


def summarize_functions(world: ScaleWorld, invocations: Iterable[MeteredInvocation]) -> tuple[FunctionUsage, ...]:
    """Return the usage of each function in *invocations*, in the order of their first invocation."""
    by_function: dict[str, list[MeteredInvocation]] = {}
    for invocation in invocations:
        by_function.setdefault(invocation.function, []).append(invocation)
    settings = {function.name: function for function in world.wiring.functions}
    return tuple(
        _summarize(function, group, settings[function].memory_mb, settings[function].timeout.total_seconds())
        for function, group in by_function.items()
    )


def _summarize(
    function: str, invocations: list[MeteredInvocation], memory_mb: int, timeout_seconds: float
) -> FunctionUsage:
    usages = [invocation.usage for invocation in invocations if invocation.usage is not None]
    calls: dict[str, int] = {}
    for invocation in invocations:
        for name, count in invocation.calls.items():
            calls[name] = calls.get(name, 0) + count
    return FunctionUsage(
        function=function,
        invocations=len(invocations),
        cpu_seconds=round(sum(usage.cpu_seconds for usage in usages), 3),
        max_cpu_seconds=round(max(usage.cpu_seconds for usage in usages), 3),
        wall_seconds=round(sum(usage.wall_seconds for usage in usages), 3),
        max_lambda_seconds=round(max(usage.lambda_seconds for usage in usages), 3),
        timeout_seconds=timeout_seconds,
        base_mib=round(usages[0].base_mib, 1),
        peak_mib=round(max(usage.peak_mib for usage in usages), 1),
        memory_mb=memory_mb,
        kube_requests=sum(invocation.kube_requests for invocation in invocations),
        kube_bytes=sum(invocation.kube_bytes for invocation in invocations),
        aws_requests=sum(invocation.aws_requests for invocation in invocations),
        aws_bytes=sum(invocation.aws_bytes for invocation in invocations),
        calls=dict(sorted(calls.items())),
    )


def compute_growth(results: Iterable[ScenarioResult], min_cpu_seconds: float = 0.2) -> tuple[Growth, ...]:
    """Return the growth of each function of each scenario that ran with at least two numbers of nodes.

    Functions that use less than *min_cpu_seconds* with the smallest number are omitted: their time is mostly constant.
    """
    cpu_by_key: dict[tuple[str, str], dict[int, float]] = {}
    for result in results:
        for usage in result.functions:
            cpu_by_key.setdefault((result.scenario, usage.function), {})[result.nodes] = usage.cpu_seconds
    return tuple(
        Growth(scenario=scenario, function=function, exponent=round(_compute_exponent(cpu_by_nodes), 2))
        for (scenario, function), cpu_by_nodes in cpu_by_key.items()
        if len(cpu_by_nodes) > 1 and cpu_by_nodes[min(cpu_by_nodes)] >= min_cpu_seconds
    )


def _compute_exponent(cpu_by_nodes: Mapping[int, float]) -> float:
    """Return the exponent *e* of the smallest and largest size: CPU time grows with nodes ** e.

    >>> _compute_exponent({1000: 1.0, 2000: 3.0, 10_000: 10.0})
    1.0
    """
    smallest, largest = min(cpu_by_nodes), max(cpu_by_nodes)
    return math.log(cpu_by_nodes[largest] / cpu_by_nodes[smallest]) / math.log(largest / smallest)
