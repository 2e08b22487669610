"""The CDK's command line, unmodified, as a process beside the play."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.e2e.libraries import ROOT


class NotSo(Exception):
    """Something did not come about; the message says what."""


class Cdk:
    """The CDK's command line at work; what it says is kept in a file."""

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path) -> None:
        """Run `cdk` with *words* in *folder*; what it says goes to *log*."""
        self._words, self._log = words, log
        command = [str(ROOT / "node_modules" / ".bin" / "cdk"), *words, "--ci", "--progress", "events"]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def __enter__(self) -> Self:
        """Be at work."""
        return self

    def __exit__(self, *_: object) -> None:
        """End, whether it is done or not."""
        self._process.kill()
        self._process.wait()

    @property
    def name(self) -> str:
        """What it is doing, as a person types it."""
        return f"cdk {self._words[0]}"

    def has_ended(self) -> bool:
        """Whether it is done."""
        return self._process.poll() is not None

    def judge(self) -> None:
        """Look how it ended.

        Raises:
            NotSo: badly; with its last words.
        """
        if self._process.returncode:
            tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-40:])
            raise NotSo(f"{self.name} failed ({self._process.returncode}):\n{tail}")
