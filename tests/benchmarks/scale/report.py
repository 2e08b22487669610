"""The report of the benchmark as text."""

from collections.abc import Iterable, Iterator

from tests.benchmarks.scale.results import FunctionUsage, Growth, Measure, ScenarioResult

HEAD = (
    f"  {'function':10}{'runs':>5}{'CPU s':>9}{'longest, CPU s':>16}{'on Lambda s':>13}{'timeout s':>11}"
    f"{'peak MiB':>10}{'memory MB':>11}{'kube requests':>15}{'KB':>11}{'AWS calls':>11}{'KB':>9}"
)


def format_result(result: ScenarioResult) -> Iterator[str]:
    """Yield the lines about one scenario."""
    yield f"{result.scenario}: {result.nodes:,} nodes, {result.pods:,} pods"
    yield HEAD
    for usage in result.functions:
        yield _format_usage(usage)
    for measure in result.measures:
        yield _format_measure(measure)
    yield ""


def format_growth(growths: Iterable[Growth]) -> Iterator[str]:
    """Yield a line for each growth exponent."""
    for growth in growths:
        state = "MISSED" if growth.fails else "met"
        yield f"  {state:7} {growth.scenario}, {growth.function}: CPU time grows with nodes^{growth.exponent}"


def _format_usage(usage: FunctionUsage) -> str:
    return (
        f"  {usage.function:10}{usage.invocations:5}{usage.cpu_seconds:9.2f}{usage.max_cpu_seconds:16.2f}"
        f"{usage.max_lambda_seconds:13.2f}{usage.timeout_seconds:11.0f}{usage.peak_mib:10,.0f}{usage.memory_mb:11,}"
        f"{usage.kube_requests:15,}{usage.kube_bytes / 1e3:11,.1f}{usage.aws_requests:11,}{usage.aws_bytes / 1e3:9,.1f}"
    )


def _format_measure(measure: Measure) -> str:
    unit = f" {measure.unit}" if measure.unit else ""
    text = f"{measure.name}: {measure.value:,.2f}".rstrip("0").rstrip(".") + unit
    if measure.goal is None:
        return f"  {'':7} {text}"
    state = "met" if measure.is_met else "MISSED" if measure.fails else "missed"
    return f"  {state:7} {text} (goal: {measure.goal:,g}{unit})"
