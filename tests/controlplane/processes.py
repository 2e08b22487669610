"""Processes that end with this process, however it ends: stopped, at exit, or killed by the watchdog."""

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
        """Own *folder*, which is removed with the processes."""
        self.folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, list[str]] = {}
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", str(_WATCHDOG), str(folder)], stdin=subprocess.PIPE, process_group=0
        )
        atexit.register(self.stop_all)

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
                env=_build_environment(self.folder),
                process_group=self._watchdog.pid,
            )
        self._running[name] = process
        assert self._watchdog.stdin
        self._watchdog.stdin.write(f"{process.pid}\n".encode())
        self._watchdog.stdin.flush()

    def kill_process(self, name: str) -> None:
        """Kill the process *name* immediately, as a crash would; `restart` starts it again."""
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def restart(self, name: str) -> None:
        """Start a killed process again, with the same command."""
        self.start(name, self._commands[name])

    def get_pids(self) -> dict[str, int]:
        """Return the ids of the processes that should be running, by name."""
        return {name: process.pid for name, process in self._running.items()}

    def describe_dead(self) -> str:
        """Return the names and last log lines of processes that ended by themselves, "" if all run."""
        dead = {name: process.poll() for name, process in self._running.items() if process.poll() is not None}
        return "\n".join(f"{name} ended with {code}:\n{self._read_tail(name)}" for name, code in sorted(dead.items()))

    def keep_logs(self, destination: Path) -> None:
        """Copy the logs to *destination*, where they remain after the end."""
        destination.mkdir(parents=True, exist_ok=True)
        for log in sorted(self.folder.glob("*.log")):
            shutil.copy(log, destination)

    def stop_all(self) -> None:
        """Kill all processes, last first, and remove the folder with their data."""
        atexit.unregister(self.stop_all)
        for name in reversed(tuple(self._running)):
            self.kill_process(name)
        self._watchdog.kill()
        self._watchdog.wait()
        if self._watchdog.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._watchdog.stdin.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _read_tail(self, name: str) -> str:
        return "\n".join(self._log(name).read_text(errors="replace").splitlines()[-_TAIL_LINES:])


def _build_environment(folder: Path) -> dict[str, str]:
    """Return this process's environment without proxies and settings of a person's kubectl or etcd."""
    inherited = {name: os.environ[name] for name in ("PATH", "TMPDIR", "LANG") if name in os.environ}
    return inherited | {"HOME": str(folder)}
