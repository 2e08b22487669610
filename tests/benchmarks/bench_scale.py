"""Run whole cycles of the functions in clusters of 1,000 and more nodes, and compare what they use with goals.

Each function runs in a process of its own, with 30 pods per node in a simulated cluster; see docs/scale.md. CPU time,
memory, requests and bytes are measured; "on Lambda" is an estimate: CPU time on the share of a processor that Lambda
provides for the function's memory, plus 5 ms for each response. Goals are those for 5,000 nodes.

The exit code is 1 if a count, a size or a growth exponent misses its goal by more than noise. Seconds depend on the
computer: a goal in seconds that is missed is only reported.
"""

import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from tests.benchmarks.scale.report import format_growth, format_result
from tests.benchmarks.scale.results import Growth, ScenarioResult, compute_growth
from tests.benchmarks.scale.scenarios import SCENARIOS, run_scenarios

DEFAULT_NODES: Final = (1000, 5000)
EXAMPLES: Final = """
examples:
  make bench-scale
  make bench-scale NODES="5000 15000" SCENARIOS="cold-snapshot quiet-tick"
  python -m tests.benchmarks.bench_scale --nodes 1000 2000 5000 --scenario burst -o json > scale.json
"""


def parse_arguments(arguments: Sequence[str] | None) -> tuple[list[int], list[str], str]:
    """Return the numbers of nodes, the scenarios and the output format."""
    scenario_lines = "".join(f"  {name:16} {scenario.purpose}\n" for name, scenario in SCENARIOS.items())
    parser = ArgumentParser(
        prog="bench_scale",
        description=__doc__,
        epilog=f"scenarios:\n{scenario_lines}{EXAMPLES}",
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--nodes", type=int, nargs="+", default=list(DEFAULT_NODES), metavar="N", help="numbers of nodes"
    )
    parser.add_argument("--scenario", nargs="+", choices=tuple(SCENARIOS), default=list(SCENARIOS), metavar="NAME")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parsed = parser.parse_args(arguments)
    if min(parsed.nodes) < 1:
        parser.error("--nodes: at least 1")
    return parsed.nodes, parsed.scenario, parsed.output


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit code."""
    node_counts, names, output = parse_arguments(arguments)
    results: list[ScenarioResult] = []
    for node_count in node_counts:
        for result in run_scenarios(names, node_count, _write_progress):
            results.append(result)
            if output == "table":
                _write_lines(format_result(result))
    growths = compute_growth(results)
    if output == "json":
        report = {"scenarios": results, "growth": growths}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(report), indent=1).decode() + "\n")
    else:
        _write_lines(format_growth(growths))
    return int(has_failure(results, growths))


def has_failure(results: Iterable[ScenarioResult], growths: Iterable[Growth]) -> bool:
    """Return whether a count or a growth exponent misses its goal by more than noise."""
    measures = (measure for result in results for measure in result.measures)
    return any(measure.fails for measure in measures) or any(growth.fails for growth in growths)


def _write_lines(lines: Iterable[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def _write_progress(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
