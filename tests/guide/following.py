"""Somebody who follows a page: a shell with the tools that the page asks for, in a checkout of their own.

What a page says is what is run, but for the names that it calls NAME and GROUP. The shell has the control plane's
`kubectl`, the checkout's `joiner` and `npx`, and for `aws` what `tests.guide.awscli` knows. `cdk` asks before it
changes rights; nobody sits there, so this person's own settings (`~/.cdk.json`) say that it need not ask.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from signal import SIGKILL
from time import monotonic
from types import TracebackType
from typing import Final, Self

from tests.guide.pages import ROOT, Block, unmet

LONGEST_SECONDS: Final = 25 * 60
_LEFT_OUT: Final = frozenset((".git", ".cdk", "cdk.out", "dist", "docs", "journal"))
_STAMPS: Final = {".venv": ".ready", "node_modules": ".package-lock.json"}
"""What `make` sets up, by the file that says it is done: it is done, and must not be done to what is lent."""
_SCRIPT: Final = """set -eu -o pipefail
if [ -e {state} ]; then . {state}; fi
{block}
export -p > {state}
"""
_UNSEEN: Final = ("AWS_", "CLUSTER_NAME", "JOINER_", "KUBE", "MAKE", "PYTHON", "VIRTUAL_ENV")
"""How variables begin that are the business of whoever runs the tests."""

Tell = Callable[[str], None]
Wait = Callable[[subprocess.Popen[bytes]], int]


class NotAsWritten(AssertionError):
    """A command failed, or did not say what the page says it does."""


class Follower:
    """One person at one shell, for as long as a `with` lasts."""

    def __init__(
        self,
        environment: Mapping[str, str],
        names: Mapping[str, str],
        programs: Iterable[Path],
        *,
        tell: Tell = lambda _: None,
        wait: Wait = lambda process: process.wait(LONGEST_SECONDS),
    ) -> None:
        """Be somebody who has *environment* besides, reads *names* as they are here, and has *programs* on PATH.

        *wait* answers the exit code of a process, once it has ended, and may let a world go on meanwhile.
        """
        self.names, self._tell, self._wait = dict(names), tell, wait
        self._folder = tempfile.TemporaryDirectory(prefix="joiner-guide-", ignore_cleanup_errors=True)
        self._home = home = Path(self._folder.name)
        self._checkout = _lent(home / "checkout")
        tools = home / "bin"
        tools.mkdir()
        _write_program(tools / "aws", f'exec {sys.executable} -m tests.guide.awscli "$@"')
        home.joinpath(".cdk.json").write_text('{"requireApproval": "never"}\n')
        path = os.pathsep.join(map(str, (tools, *programs, os.environ["PATH"])))
        own = {name: value for name, value in os.environ.items() if not name.startswith(_UNSEEN)}
        kept = {"UV_CACHE_DIR": own.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv"))}
        self._environment = {**own, **kept, "HOME": str(home), "PATH": path, "TERM": "dumb", **environment}

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave nothing."""
        self._folder.cleanup()

    def follow(self, some: Iterable[Block]) -> None:
        """Play *some*, one after the other, in one session.

        Raises:
            NotAsWritten: one ends with an error, or says something else than the page; those after it are not played.
        """
        for block in some:
            self.play(block)

    def play(self, block: Block) -> str:
        """Play *block* and answer what it printed, errors included.

        Raises:
            NotAsWritten: it ends with an error, or says something else than the page.
        """
        script = self.translated(block.text)
        self._tell(f"\n--- {block.where}\n{script.rstrip()}")
        begun = monotonic()
        status, said = self._run(script)
        self._tell(f"{said.rstrip()}\n    ({monotonic() - begun:.0f} s)")
        if status not in block.ends:
            raise NotAsWritten(f"{block.where} ends with {status}:\n{script}\n{said}")
        if missing := unmet(block.expected, said):
            raise NotAsWritten(f"{block.where}: {missing!r} is not in what this says:\n{script}\n{said}")
        return said

    def _run(self, script: str) -> tuple[int, str]:
        """Answer exit code and output of *script*; whoever is interrupted leaves no process behind."""
        said = self._home / "said"
        with said.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", _SCRIPT.format(state=self._home / "state", block=script)],  # noqa: S607 - the person's own
                cwd=self._checkout,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                status = self._wait(process)
            except BaseException:
                os.killpg(process.pid, SIGKILL)
                process.wait()
                raise
        return status, said.read_text(encoding="utf-8", errors="replace")

    def translated(self, text: str) -> str:
        """Answer *text* with the names of here."""
        for name, here in self.names.items():
            text = re.sub(rf"\b{name}\b", here, text)
        return text


def _lent(folder: Path) -> Path:
    """Answer a checkout at *folder*: its files are the true ones, what is written there is written there alone."""
    folder.mkdir()
    _link(ROOT, folder, _LEFT_OUT | _STAMPS.keys())
    for name, stamp in _STAMPS.items():
        if not ROOT.joinpath(name, stamp).exists():
            continue  # it was not set up: `make` does that, if a page asks for it
        folder.joinpath(name).mkdir()
        _link(ROOT / name, folder / name, {stamp})
        folder.joinpath(name, stamp).touch()
    return folder


def _link(here: Path, there: Path, without: Collection[str]) -> None:
    for path in here.iterdir():
        if path.name not in without:
            there.joinpath(path.name).symlink_to(path)


def _write_program(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
