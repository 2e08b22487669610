"""`python -m tests.flaky_tests`: run tests again and again, and list those that failed at least once.

Each run has its own seed. The seed decides the order of the files and of the tests within a file, the hash seed of
Python and thus the order of sets, and the examples of hypothesis. A test that fails with one seed has an error, or the
code has: nothing is retried.

Exit codes: 0 no test failed, 1 at least one test failed, 2 pytest could not run.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.flaky_tests.summary import RunResult, render_summary

ROOT: Final = Path(__file__).parents[2]
EXIT_FAILED: Final = 1
EXIT_NOT_RUN: Final = 2
PYTEST_EXIT_CODES: Final = (0, 1)
"""Exit codes of pytest after which its results count: all tests passed, some failed."""
PROFILE: Final = "random"


def main(words: Sequence[str] | None = None) -> int:
    """Run the tests with consecutive seeds; return the exit code."""
    args = _build_parser().parse_args(words)
    results = list[RunResult]()
    for seed in range(args.first_seed, args.first_seed + args.runs):
        result = run_tests(args.tests, seed, args.workers)
        if result.exit_code not in PYTEST_EXIT_CODES:
            sys.stdout.write(f"{result.output}\npytest could not run with seed {seed}: exit code {result.exit_code}\n")
            return EXIT_NOT_RUN
        results.append(result)
        sys.stdout.write(f"seed {seed}: {result.last_line}\n")
        sys.stdout.flush()
    sys.stdout.write(render_summary(results))
    return EXIT_FAILED if any(result.failed_tests for result in results) else 0


def run_tests(tests: Sequence[str], seed: int, workers: int) -> RunResult:
    """Run *tests* once with *seed*, in *workers* processes; 0 stands for the process of pytest itself."""
    with tempfile.TemporaryDirectory(prefix="joiner-flaky-") as folder:
        failures = Path(folder) / "failures.txt"
        failures.touch()
        process = subprocess.run(
            build_command(tests, seed, workers, failures),
            cwd=ROOT,
            env=build_environment(os.environ, seed),
            capture_output=True,
            text=True,
            check=False,
        )
        failed_tests = tuple(sorted(set(failures.read_text(encoding="utf-8").splitlines())))
    return RunResult(seed=seed, exit_code=process.returncode, failed_tests=failed_tests, output=process.stdout)


def build_command(tests: Sequence[str], seed: int, workers: int, failures: Path) -> list[str]:
    """Return the command of one run; the ids of failed tests go to the file *failures*."""
    plugin = ["-p", "tests.flaky_tests.seeded_order", f"--order-seed={seed}", f"--failures-file={failures}"]
    distribution = ["-n", str(workers), "--dist", "worksteal"] if workers else []
    return [sys.executable, "-m", "pytest", *plugin, f"--hypothesis-seed={seed}", *distribution, *tests]


def build_environment(environment: Mapping[str, str], seed: int) -> dict[str, str]:
    """Return *environment* with *seed* for the hashes of strings, and hypothesis without its fixed examples."""
    return {**environment, "PYTHONHASHSEED": str(seed), "HYPOTHESIS_PROFILE": PROFILE}


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.flaky_tests", description=__doc__)
    parser.add_argument("--runs", type=int, default=10, metavar="N", help="number of runs; default: %(default)s")
    parser.add_argument("--first-seed", type=int, default=1, metavar="SEED", help="seed of the first run; default: 1")
    parser.add_argument("--workers", type=int, default=2, help="processes of pytest-xdist; 0: none; default: 2")
    parser.add_argument("tests", nargs="*", help="files, folders or ids of tests; default: all")
    return parser


if __name__ == "__main__":
    sys.exit(main())
