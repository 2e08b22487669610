"""`python -m tests.mutation_testing`: change the code at random places, and list the changes that no test notices.

Each change (mutant) is made in a copy of the repository. A mutant is killed if a test fails or the tests do not end.
The others survive: either a test is missing, or the change makes no difference, which `survivors.toml` explains.

Exit codes: 0 each survivor is explained, 1 a survivor is not, 2 the tests cannot run.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.mutation_testing.core_modules import TESTS_BY_MODULE, find_own_tests
from tests.mutation_testing.mutants import Change, Mutant, Sources, draw_sample, find_change, read_sources, render_diff
from tests.mutation_testing.survivors import read_survivors, render_survivor
from tests.mutation_testing.trial import Timeouts, Trial, TrialError, Workspace

ROOT: Final = Path(__file__).parents[2]
EXIT_UNEXPLAINED: Final = 1
EXIT_NOT_RUN: Final = 2


def main(words: Sequence[str] | None = None) -> int:
    """Try a sample of mutants; print each, and the counts; return the exit code."""
    args = _build_parser().parse_args(words)
    if unknown := sorted(set(args.modules) - set(TESTS_BY_MODULE)):
        sys.stderr.write(
            f"{unknown[0]}: no tests are known: add the module to tests/mutation_testing/core_modules.py\n"
        )
        return EXIT_NOT_RUN
    sources = read_sources(ROOT, args.modules or TESTS_BY_MODULE)
    reasons = read_survivors()
    mutants = draw_sample(sources, args.mutants, args.seed)
    unexplained: list[Change] = []
    killed_count = explained_count = 0
    try:
        for mutant, trial in try_mutants(mutants, sources, args.jobs):
            source = sources[mutant.module]
            change = find_change(mutant, source)
            if trial.outcome != "survived":
                killed_count += 1
            elif change in reasons:
                explained_count += 1
            else:
                unexplained.append(change)
            sys.stdout.write(render_trial(mutant, source, trial, reasons.get(change, "")))
            sys.stdout.flush()
    except TrialError as error:
        sys.stderr.write(f"the tests cannot run: {error}\n")
        return EXIT_NOT_RUN
    sys.stdout.write(render_counts(len(mutants), killed_count, explained_count, args.seed))
    for change in unexplained:
        sys.stdout.write(f"\n{render_survivor(change)}\n")
    if unexplained:
        sys.stdout.write(
            "\nFor each of these: add a test, or add it to tests/mutation_testing/survivors.toml with a reason.\n"
        )
    return EXIT_UNEXPLAINED if unexplained else 0


def try_mutants(mutants: Sequence[Mutant], sources: Sources, jobs: int) -> Iterator[tuple[Mutant, Trial]]:
    """Yield each of *mutants* with its result, in order; *jobs* at a time, each in its own copy of the repository.

    Raises:
        TrialError: the tests of a module fail without a change.
    """
    with tempfile.TemporaryDirectory(prefix="joiner-mutants-") as folder:
        workspaces: SimpleQueue[Workspace] = SimpleQueue()
        timeouts = Timeouts()
        for number in range(jobs):
            copy = Path(folder) / str(number)
            copy.mkdir()
            workspaces.put(Workspace(copy, ROOT, timeouts))

        def try_mutant(mutant: Mutant) -> Trial:
            module, workspace = mutant.module, workspaces.get()
            try:
                text = mutant.render(sources[module])
                return workspace.try_mutant(module, text, TESTS_BY_MODULE[module], find_own_tests(module))
            finally:
                workspaces.put(workspace)

        with ThreadPoolExecutor(jobs) as pool:
            try:
                yield from zip(mutants, pool.map(try_mutant, mutants), strict=True)
            finally:
                pool.shutdown(cancel_futures=True)


def render_trial(mutant: Mutant, source: str, trial: Trial, reason: str) -> str:
    """Return a line for a killed mutant; for a survivor, its diff and the known reason."""
    title = f"{trial.outcome} {mutant.module}:{mutant.start[0]} ({mutant.operator}, {trial.seconds:.0f} s)"
    if trial.outcome != "survived":
        change = find_change(mutant, source)
        return f"{title}: {change.before} -> {change.after}{f' by {trial.killer}' if trial.killer else ''}\n"
    return f"{title}\n{render_diff(mutant, source)}\n  {f'reason: {reason}' if reason else 'no reason is known'}\n"


def render_counts(count: int, killed_count: int, explained_count: int, seed: int) -> str:
    """Return the summary: counts of killed and surviving mutants."""
    survived_count = count - killed_count
    percent = 100 * killed_count / count if count else 100
    return (
        f"\n{count} mutants with seed {seed}: {killed_count} killed ({percent:.0f} %), {survived_count} survived "
        f"({explained_count} with a reason)\n"
    )


def list_stale_survivors(reasons: Mapping[Change, str], sources: Sources) -> list[Change]:
    """Return the known survivors whose code no longer exists."""
    return [change for change in reasons if not _contains_lines(sources.get(change.module, ""), change.before)]


def _contains_lines(source: str, text: str) -> bool:
    lines = [line.strip() for line in source.splitlines()]
    sought_lines = text.splitlines()
    return any(lines[start : start + len(sought_lines)] == sought_lines for start in range(len(lines)))


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation_testing", description=__doc__)
    parser.add_argument("--mutants", type=int, default=40, metavar="N", help="size of the sample; default: 40")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample; default: 1")
    parser.add_argument("--jobs", type=int, default=2, help="mutants that are tried at a time; default: 2")
    parser.add_argument("modules", nargs="*", help="paths of modules to change; default: all core modules")
    return parser


if __name__ == "__main__":
    sys.exit(main())
