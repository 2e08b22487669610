"""The summary of `make flaky`: which tests failed, how often, with which seeds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

MAX_SHOWN_SEEDS_COUNT: Final = 5


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """One run of the tests."""

    seed: int
    exit_code: int
    failed_tests: tuple[str, ...]
    output: str

    @property
    def last_line(self) -> str:
        """Return pytest's last line, for example `3 passed in 0.1s`."""
        lines = self.output.strip().splitlines()
        return lines[-1] if lines else "no output"


def render_summary(results: Sequence[RunResult]) -> str:
    """Return a line for each test that failed, the most frequent first, with the command that repeats a failure."""
    seeds_by_test = group_seeds_by_test(results)
    if not seeds_by_test:
        return f"no test failed in {_format_runs(len(results))}\n"
    rows = sorted(seeds_by_test.items(), key=lambda row: (-len(row[1]), row[0]))
    lines = [f"{len(rows)} tests failed at least once:" if len(rows) > 1 else "1 test failed at least once:"]
    for test, seeds in rows:
        shown_seeds = ", ".join(map(str, seeds[:MAX_SHOWN_SEEDS_COUNT])) + (
            ", …" if len(seeds) > MAX_SHOWN_SEEDS_COUNT else ""
        )
        noun = "seed" if len(seeds) == 1 else "seeds"
        lines.append(f"  {test}: {len(seeds)} of {_format_runs(len(results))}, {noun} {shown_seeds}")
    first_test, first_seeds = rows[0]
    file = first_test.partition("::")[0]
    lines.append(f"To repeat the first: make flaky N=1 FLAKY_SEED={first_seeds[0]} TESTS={file}")
    return "".join(f"{line}\n" for line in lines)


def group_seeds_by_test(results: Iterable[RunResult]) -> dict[str, list[int]]:
    """Return the seeds with which each test failed, in the order of the runs."""
    seeds_by_test: dict[str, list[int]] = {}
    for result in results:
        for test in result.failed_tests:
            seeds_by_test.setdefault(test, []).append(result.seed)
    return seeds_by_test


def _format_runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"
