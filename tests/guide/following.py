"""A user who follows a page: a shell with the tools that the page requires, in a separate checkout.

The commands of a page are run as written, except that the names NAME and GROUP are replaced. The shell has the control
plane's `kubectl`, the checkout's `joiner` and `npx`, and for `aws` the operations of `tests.guide.awscli`. `cdk` asks
before it changes permissions; the shell is not interactive, so `~/.cdk.json` disables the question.
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

from tests.guide.pages import ROOT, Block, find_unmet_line

MAX_COMMAND_SECONDS: Final = 25 * 60
_LEFT_OUT: Final = frozenset((".git", ".cdk", "cdk.out", "dist", "docs", "journal"))
_WRITABLE: Final = "clusters"
"""The folder of settings files, in which pages create files."""
_STAMPS: Final = {".venv": ".ready", "node_modules": ".package-lock.json"}
"""What `make` sets up, by the file that marks it as finished: the shared folders are ready and must not be changed."""
_SCRIPT: Final = """set -eu -o pipefail
if [ -e {state} ]; then . {state}; fi
{block}
export -p > {state}
"""
_HIDDEN_PREFIXES: Final = ("AWS_", "CLUSTER_NAME", "JOINER_", "KUBE", "MAKE", "PYTHON", "VIRTUAL_ENV")
"""Prefixes of environment variables that belong to the user who runs the tests."""

Tell = Callable[[str], None]
Wait = Callable[[subprocess.Popen[bytes]], int]


class NotAsWritten(AssertionError):
    """A command failed, or its output differs from the page."""


class Follower:
    """One user at one shell, for the duration of a `with` block."""

    def __init__(
        self,
        environment: Mapping[str, str],
        names: Mapping[str, str],
        programs: Iterable[Path],
        *,
        tell: Tell = lambda _: None,
        wait: Wait = lambda process: process.wait(MAX_COMMAND_SECONDS),
    ) -> None:
        """Start a shell with *environment* added, *names* replaced in the page's text, and *programs* on PATH.

        *wait* returns the exit code of a process once it has ended, and may advance a simulated world in the meantime.
        """
        self.names, self._tell, self._wait = dict(names), tell, wait
        self._folder = tempfile.TemporaryDirectory(prefix="joiner-guide-", ignore_cleanup_errors=True)
        self._home = home = Path(self._folder.name)
        self._checkout = _create_checkout(home / "checkout")
        tools = home / "bin"
        tools.mkdir()
        _write_program(tools / "aws", f'exec {sys.executable} -m tests.guide.awscli "$@"')
        home.joinpath(".cdk.json").write_text('{"requireApproval": "never"}\n')
        path = os.pathsep.join(map(str, (tools, *programs, os.environ["PATH"])))
        variables = {name: value for name, value in os.environ.items() if not name.startswith(_HIDDEN_PREFIXES)}
        cache_environment = {"UV_CACHE_DIR": variables.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv"))}
        self._environment = {
            **variables,
            **cache_environment,
            "HOME": str(home),
            "PATH": path,
            "TERM": "dumb",
            **environment,
        }

    def __enter__(self) -> Self:
        """Return the follower."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove all files."""
        self._folder.cleanup()

    def follow(self, blocks: Iterable[Block]) -> None:
        """Play *blocks*, one after the other, in one session.

        Raises:
            NotAsWritten: a block fails, or its output differs from the page; later blocks are not played.
        """
        for block in blocks:
            self.play(block)

    def play(self, block: Block) -> str:
        """Play *block* and return its output, errors included.

        Raises:
            NotAsWritten: the block fails, or its output differs from the page.
        """
        script = self.translate(block.text)
        self._tell(f"\n--- {block.where}\n{script.rstrip()}")
        started_at = monotonic()
        status, output = self._run(script)
        self._tell(f"{output.rstrip()}\n    ({monotonic() - started_at:.0f} s)")
        if status not in block.ends:
            raise NotAsWritten(f"{block.where} ends with {status}:\n{script}\n{output}")
        if missing := find_unmet_line(block.expected, output):
            raise NotAsWritten(f"{block.where}: {missing!r} is not in what this says:\n{script}\n{output}")
        return output

    def _run(self, script: str) -> tuple[int, str]:
        """Return exit code and output of *script*; an interrupt leaves no process behind."""
        output_path = self._home / "said"
        with output_path.open("wb") as output:
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
        return status, output_path.read_text(encoding="utf-8", errors="replace")

    def translate(self, text: str) -> str:
        """Return *text* with the names of this environment."""
        for name, replacement in self.names.items():
            text = re.sub(rf"\b{name}\b", replacement, text)
        return text


def _create_checkout(folder: Path) -> Path:
    """Create a checkout at *folder*: it links to the real files, and new files are written only there."""
    folder.mkdir()
    _link(ROOT, folder, _LEFT_OUT | {_WRITABLE} | _STAMPS.keys())
    folder.joinpath(_WRITABLE).mkdir()
    folder.joinpath(_WRITABLE, "example.yaml").symlink_to(ROOT / _WRITABLE / "example.yaml")
    for name, stamp in _STAMPS.items():
        if not ROOT.joinpath(name, stamp).exists():
            continue  # not set up: `make` does that if a page requires it
        folder.joinpath(name).mkdir()
        _link(ROOT / name, folder / name, {stamp})
        folder.joinpath(name, stamp).touch()
    return folder


def _link(source: Path, target: Path, excluded: Collection[str]) -> None:
    for path in source.iterdir():
        if path.name not in excluded:
            target.joinpath(path.name).symlink_to(path)


def _write_program(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
