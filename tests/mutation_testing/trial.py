"""Runs the tests of a mutant in a copy of the repository, so that the checkout never holds a mutant."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final, Literal

COPIED: Final = (
    *("app.py", "cdk.json", "pyproject.toml", "requirements-lambda.lock"),
    *("cli", "docs", "examples", "functions", "infra", "shared", "sim", "tests"),
)
"""What tests read or import."""
IGNORED: Final = shutil.ignore_patterns("__pycache__", "_build", ".*_cache")
MIN_TIMEOUT_SECONDS: Final = 60
TIMEOUT_FACTOR: Final = 5
"""A mutant whose tests take this many times longer than without a change is killed: it does not end."""
PROFILE: Final = "quick"

Outcome = Literal["killed", "survived", "timeout"]


class TrialError(Exception):
    """The tests of a module fail without any change; the message is the output of pytest."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The result of the tests of one mutant."""

    outcome: Outcome
    killer: str
    """The first test that failed; "" if none did."""
    seconds: float


class Timeouts:
    """How long tests may take, by the set of tests: measured once, without a change."""

    def __init__(self) -> None:
        """Begin without measurements."""
        self._lock = Lock()
        self._seconds_by_tests: dict[frozenset[str], float] = {}

    def get_timeout(self, tests: Sequence[str], measure: Callable[[], float]) -> float:
        """Return the timeout of *tests* in seconds; call *measure* for their duration if it is unknown."""
        with self._lock:  # the other workspaces wait: two measurements at a time would disturb each other
            key = frozenset(tests)
            if key not in self._seconds_by_tests:
                self._seconds_by_tests[key] = max(MIN_TIMEOUT_SECONDS, TIMEOUT_FACTOR * measure())
            return self._seconds_by_tests[key]


class Workspace:
    """A copy of the repository in which one module at a time is changed."""

    def __init__(self, folder: Path, root: Path, timeouts: Timeouts) -> None:
        """Copy the repository at *root* to *folder*; *timeouts* are common to all workspaces."""
        self._folder, self._timeouts = folder, timeouts
        for name in COPIED:
            source = root / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=IGNORED)
            else:
                shutil.copy(source, folder / name)

    def measure_unchanged(self, tests: Sequence[str]) -> float:
        """Return the seconds that *tests* take without a change.

        Raises:
            TrialError: they fail.
        """
        started_at = time.monotonic()
        process = self._run(tests, timeout=None)
        if process.returncode:
            raise TrialError(f"without a change: {process.stdout[-3000:]}{process.stderr[-1000:]}")
        return time.monotonic() - started_at

    def try_mutant(self, module: str, text: str, tests: Sequence[str], first_tests: Sequence[str] = ()) -> Trial:
        """Run *tests* with *text* as the module at the path *module*, up to the first failure.

        *first_tests* are a part of *tests* that runs first.

        Raises:
            TrialError: the tests fail without a change.
        """
        timeout = self._timeouts.get_timeout(tests, partial(self.measure_unchanged, tests))
        path = self._folder / module
        original = path.read_text(encoding="utf-8")
        path.write_text(text, encoding="utf-8")
        started_at = time.monotonic()
        try:
            process = self._run([*first_tests, *tests], timeout=timeout)
        except subprocess.TimeoutExpired:
            return Trial(outcome="timeout", killer="", seconds=time.monotonic() - started_at)
        finally:
            path.write_text(original, encoding="utf-8")
        seconds = time.monotonic() - started_at
        if process.returncode:  # a test failed, or pytest cannot import a file: it could without the change
            return Trial(outcome="killed", killer=find_first_failure(process.stdout), seconds=seconds)
        return Trial(outcome="survived", killer="", seconds=seconds)

    def _run(self, tests: Sequence[str], timeout: float | None) -> subprocess.CompletedProcess[str]:
        # Bytecode is not written: it would be found by time stamp and size, which two mutants can share.
        environment = os.environ | {"HYPOTHESIS_PROFILE": PROFILE, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--no-header", "--tb=no", "-rfE"]
        return subprocess.run(
            [*command, *tests],
            cwd=self._folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )


def find_first_failure(output: str) -> str:
    """Return the id of the first test that failed or could not be imported, from pytest's summary; "" if none did."""
    for line in output.splitlines():
        kind, _, test_and_error = line.partition(" ")
        if kind in ("FAILED", "ERROR") and test_and_error:
            return test_and_error.partition(" - ")[0]
    return ""
