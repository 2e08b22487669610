"""Processes that end with us, however we end: by us, at exit, or by the watchdog."""

import atexit
import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

_WATCHDOG: Final = Path(__file__).with_name("watchdog.py")
_TAIL_LINES: Final = 20


class Processes:
    """The processes of one control plane, by name; each writes to ``<folder>/<name>.log``."""

    def __init__(self, folder: Path) -> None:
        """Own *folder*, which goes when they do."""
        self.folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, list[str]] = {}
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", str(_WATCHDOG), str(folder)], stdin=subprocess.PIPE, process_group=0
        )
        atexit.register(self.end)

    def start(self, name: str, command: list[str]) -> None:
        """Start *command* in the background, away from the terminal's Ctrl-C."""
        self._commands[name] = command
        with self._log(name).open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=_environment(self.folder),
                process_group=self._watchdog.pid,
            )
        self._running[name] = process
        assert self._watchdog.stdin
        self._watchdog.stdin.write(f"{process.pid}\n".encode())
        self._watchdog.stdin.flush()

    def kill(self, name: str) -> None:
        """End one at once, as a crash would; `revive` starts it again."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def revive(self, name: str) -> None:
        """Start one that was killed again, by the same command."""
        self.start(name, self._commands[name])

    def pids(self) -> dict[str, int]:
        """Answer the processes that should be running."""
        return {name: process.pid for name, process in self._running.items()}

    def died(self) -> str:
        """Answer what is known of those that ended by themselves: nothing, or names and last lines."""
        dead = {name: process.poll() for name, process in self._running.items() if process.poll() is not None}
        return "\n".join(f"{name} ended with {code}:\n{self._tail(name)}" for name, code in sorted(dead.items()))

    def keep_logs(self, where: Path) -> None:
        """Copy the logs to *where*, for after the end."""
        where.mkdir(parents=True, exist_ok=True)
        for log in sorted(self.folder.glob("*.log")):
            shutil.copy(log, where)

    def end(self) -> None:
        """Kill all, last first, and remove the folder; what they kept was for this run only."""
        atexit.unregister(self.end)
        for name in reversed(tuple(self._running)):
            self.kill(name)
        self._watchdog.kill()
        self._watchdog.wait()
        if self._watchdog.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._watchdog.stdin.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _tail(self, name: str) -> str:
        return "\n".join(self._log(name).read_text(errors="replace").splitlines()[-_TAIL_LINES:])


def _environment(folder: Path) -> dict[str, str]:
    """Answer ours without proxies and settings that a person's kubectl or etcd may have."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "LANG") if name in os.environ}
    return kept | {"HOME": str(folder)}
