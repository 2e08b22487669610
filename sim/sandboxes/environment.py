"""One execution environment: a process, which is one unit of concurrency, and what is told of how each call ended.

It is not frozen between invocations, gets a whole processor whatever its memory, and its memory is watched by Linux's
/proc alone: elsewhere nothing is too much. A start has ten seconds and the function's time-out besides, as where Lambda
repeats a start that took too long.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from queue import Empty
from typing import Final, Literal

import msgspec

from sim.sandboxes.runtime_api import News, RuntimeApi, Work

INIT: Final = timedelta(seconds=10)
_LOOK_SECONDS: Final = 0.02
_PEAK: Final = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
_SECOND: Final = timedelta(seconds=1)
_MILLISECOND: Final = timedelta(milliseconds=1)

Status = Literal["success", "error", "timeout"]
"""In Lambda's own words."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is started."""

    command: tuple[str, ...]
    variables: Mapping[str, str]
    """All of them but AWS_LAMBDA_RUNTIME_API."""
    folder: Path
    """Where the process is at home: its code."""
    log: Path
    """What the process writes to; a new file."""
    memory_mb: int
    timeout: timedelta


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How one invocation ended."""

    status: Status
    error_type: str = ""
    """Lambda's own, if it was not the handler that failed."""
    payload: bytes
    lines: tuple[str, ...]
    """What the process wrote, from its start or the end of the invocation before."""
    init: timedelta | None
    """What the start took; None: it was an earlier invocation's."""
    duration: timedelta
    memory_mb: int
    """The most that the process has had; 0 where nobody can say."""


class _Broken(Exception):
    """The process did not do what was asked, and is no more."""

    def __init__(self, error_type: str, document: bytes, status: Status = "error") -> None:
        super().__init__(error_type)
        self.error_type, self.document, self.status = error_type, document, status


class ExecutionEnvironment:
    """A process that waits for work. One thread at a time may use it."""

    def __init__(self, plan: Plan, clock: Callable[[], datetime]) -> None:
        """Start it; it is ready when it says so, which the first invocation waits for."""
        self._plan, self._clock = plan, clock
        self._began: datetime | None = clock()
        """Until it has said that it is ready."""
        self._read = self._peak = 0
        self._is_over = False
        self._api = RuntimeApi()
        with plan.log.open("ab") as log:
            self._process = subprocess.Popen(
                plan.command,
                cwd=plan.folder,
                env={**plan.variables, "AWS_LAMBDA_RUNTIME_API": self._api.address},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process's id; 0 if it has ended."""
        return self._process.pid if self._process.poll() is None else 0

    def invoke(self, request_id: str, payload: bytes, arn: str, trace_id: str) -> Ended:
        """Have *payload* handled, and answer how that ended; while `pid` is not 0, it may be asked again."""
        init, began = None, self._clock()
        try:
            if self._began is not None:
                self._awaited({"next"}, self._began + INIT + self._plan.timeout, request_id)
                began = self._clock()
                init, self._began = began - self._began, None
            deadline = began + self._plan.timeout
            work = Work(
                request_id=request_id,
                payload=payload,
                arn=arn,
                deadline_ms=round(deadline.timestamp() * 1000),
                trace_id=trace_id,
            )
            self._api.work.put(work)
            news = self._awaited({"response", "error"}, deadline, request_id)
        except _Broken as broken:
            self.end()
            return self._ended(broken.status, broken.document, init, began, broken.error_type)
        return self._ended("success" if news.what == "response" else "error", news.body, init, began)

    def end(self) -> None:
        """Kill the process and all it has started; once more is nothing."""
        if self._is_over:
            return
        self._is_over = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._api.close()

    def _awaited(self, wanted: set[str], until: datetime, request_id: str) -> News:
        """Answer the first news of the *wanted* kinds.

        Raises:
            _Broken: the process ended, could not begin, has too much memory, or is not done by *until*.
        """
        while True:
            code = self._process.poll()
            news = self._heard()
            self._weigh(request_id)
            if news is not None and news.what == "init-error":
                raise _Broken("Runtime.InitError", news.body)
            if news is not None and news.what in wanted:
                return news
            if news is None and code is not None:
                raise _said("Runtime.ExitError", request_id, _exited(code))
            if news is None and self._clock() >= until:
                seconds = self._plan.timeout / _SECOND
                raise _said("Sandbox.Timedout", request_id, f"Task timed out after {seconds:.2f} seconds", "timeout")

    def _heard(self) -> News | None:
        try:
            return self._api.news.get(timeout=_LOOK_SECONDS)
        except Empty:
            return None

    def _weigh(self, request_id: str) -> None:
        """Look how much memory the process has had.

        Raises:
            _Broken: more than it may have.
        """
        with contextlib.suppress(OSError):
            found = _PEAK.search(Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii"))
            self._peak = int(found[1]) // 1024 if found else self._peak
        if self._peak > self._plan.memory_mb:
            raise _said("Runtime.OutOfMemory", request_id, _exited(-signal.SIGKILL))

    def _ended(self, status: Status, payload: bytes, init: timedelta | None, began: datetime, why: str = "") -> Ended:
        return Ended(
            status=status,
            error_type=why,
            payload=payload,
            lines=self._lines(),
            init=init,
            duration=max(self._clock() - began, _MILLISECOND),
            memory_mb=self._peak,
        )

    def _lines(self) -> tuple[str, ...]:
        with self._plan.log.open("rb") as log:
            log.seek(self._read)
            body = log.read()
        self._read += len(body)
        return tuple(body.decode(errors="replace").splitlines())


def _exited(code: int) -> str:
    if not code:
        return "Runtime exited without providing a reason"
    if code < 0:
        return f"Runtime exited with error: signal: {signal.strsignal(-code)}".lower().replace("runtime", "Runtime")
    return f"Runtime exited with error: exit status {code}"


def _said(error_type: str, request_id: str, what: str, status: Status = "error") -> _Broken:
    """Answer what Lambda says in the handler's place; of memory it says no more than that something killed it."""
    shown = "Runtime.ExitError" if error_type == "Runtime.OutOfMemory" else error_type
    body = {"errorType": shown, "errorMessage": f"RequestId: {request_id} Error: {what}"}
    return _Broken(error_type, json.dumps(body).encode(), status)
