"""The unmodified CDK CLI as a process beside the test."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.e2e.libraries import ROOT


class ExpectationFailed(Exception):
    """An expected event did not happen; the message names it."""


class Cdk:
    """A running CDK CLI; its output is kept in a file."""

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path) -> None:
        """Run `cdk` with *words* in *folder*; its output goes to *log*."""
        self._words, self._log = words, log
        command = [str(ROOT / "node_modules" / ".bin" / "cdk"), *words, "--ci", "--progress", "events"]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def __enter__(self) -> Self:
        """Return the running process."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the process if it is still running."""
        self._process.kill()
        self._process.wait()

    @property
    def name(self) -> str:
        """The command as a person types it."""
        return f"cdk {self._words[0]}"

    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        return self._process.poll() is not None

    def raise_for_failure(self) -> None:
        """Check the exit code.

        Raises:
            ExpectationFailed: the command failed; with the last lines of its output.
        """
        if self._process.returncode:
            tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-40:])
            raise ExpectationFailed(f"{self.name} failed ({self._process.returncode}):\n{tail}")
