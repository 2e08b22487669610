"""An execution environment: one process, which runs one invocation at a time, and the result of each invocation.

The process is not frozen between invocations and gets a whole processor regardless of its memory size. Its memory is
limited only on Linux, by /proc: elsewhere there is no limit. A start may take ten seconds plus the function's timeout,
because Lambda repeats an initialization that took too long.
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

from sim.lambda_processes.runtime_api import InvocationRequest, RuntimeApi, RuntimeMessage

INIT_TIMEOUT: Final = timedelta(seconds=10)
_POLL_INTERVAL_SECONDS: Final = 0.02
_PEAK_MEMORY_LINE: Final = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
_ONE_SECOND: Final = timedelta(seconds=1)
_ONE_MILLISECOND: Final = timedelta(milliseconds=1)

InvocationStatus = Literal["success", "error", "timeout"]
"""As Lambda spells it."""


class EnvironmentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The process to start and its limits."""

    command: tuple[str, ...]
    environment_variables: Mapping[str, str]
    """All environment variables except AWS_LAMBDA_RUNTIME_API."""
    code_folder: Path
    """The working directory of the process: the function's code."""
    log_file: Path
    """The new file to which the process writes."""
    memory_mb: int
    timeout: timedelta


class ExecutionResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one invocation."""

    status: InvocationStatus
    error_type: str = ""
    """Lambda's error type, if the error is not the handler's."""
    payload: bytes
    log_lines: tuple[str, ...]
    """The output of the process since its start or the end of the previous invocation."""
    init_duration: timedelta | None
    """Duration of the initialization; None: the environment was initialized by an earlier invocation."""
    duration: timedelta
    peak_memory_mb: int
    """Peak memory of the process; 0 if it is unknown."""


class _Broken(Exception):
    """The process failed and has ended."""

    def __init__(self, error_type: str, document: bytes, status: InvocationStatus = "error") -> None:
        super().__init__(error_type)
        self.error_type, self.document, self.status = error_type, document, status


class ExecutionEnvironment:
    """A process that runs invocations. Only one thread at a time may use it."""

    def __init__(self, spec: EnvironmentSpec, clock: Callable[[], datetime]) -> None:
        """Start the process; the first invocation waits until it is ready."""
        self._spec, self._clock = spec, clock
        self._init_started_at: datetime | None = clock()
        """When the process was started; None once it has reported that it is ready."""
        self._log_offset = self._peak_memory_mb = 0
        self._is_killed = False
        self._runtime_api = RuntimeApi()
        with spec.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                spec.command,
                cwd=spec.code_folder,
                env={**spec.environment_variables, "AWS_LAMBDA_RUNTIME_API": self._runtime_api.address},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id; 0 if the process has ended."""
        return self._process.pid if self._process.poll() is None else 0

    def invoke(self, request_id: str, payload: bytes, arn: str, trace_id: str) -> ExecutionResult:
        """Run the handler with *payload* and return the result; as long as `pid` is not 0, it can be called again."""
        init_duration, started_at = None, self._clock()
        try:
            if self._init_started_at is not None:
                self._await_message({"next"}, self._init_started_at + INIT_TIMEOUT + self._spec.timeout, request_id)
                started_at = self._clock()
                init_duration, self._init_started_at = started_at - self._init_started_at, None
            deadline = started_at + self._spec.timeout
            request = InvocationRequest(
                request_id=request_id,
                payload=payload,
                arn=arn,
                deadline_ms=round(deadline.timestamp() * 1000),
                trace_id=trace_id,
            )
            self._runtime_api.requests.put(request)
            message = self._await_message({"response", "error"}, deadline, request_id)
        except _Broken as error:
            self.kill()
            return self._build_result(error.status, error.document, init_duration, started_at, error.error_type)
        return self._build_result(
            "success" if message.kind == "response" else "error", message.body, init_duration, started_at
        )

    def kill(self) -> None:
        """Kill the process and its children; further calls have no effect."""
        if self._is_killed:
            return
        self._is_killed = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._runtime_api.close()

    def _await_message(self, message_kinds: set[str], deadline: datetime, request_id: str) -> RuntimeMessage:
        """Return the first message of one of *message_kinds*.

        Raises:
            _Broken: the process ended, failed to start, exceeded its memory, or did not respond until *deadline*.
        """
        while True:
            exit_code = self._process.poll()
            message = self._poll_message()
            self._check_memory(request_id)
            if message is not None and message.kind == "init-error":
                raise _Broken("Runtime.InitError", message.body)
            if message is not None and message.kind in message_kinds:
                return message
            if message is None and exit_code is not None:
                raise _build_error("Runtime.ExitError", request_id, _describe_exit(exit_code))
            if message is None and self._clock() >= deadline:
                seconds = self._spec.timeout / _ONE_SECOND
                raise _build_error(
                    "Sandbox.Timedout", request_id, f"Task timed out after {seconds:.2f} seconds", "timeout"
                )

    def _poll_message(self) -> RuntimeMessage | None:
        try:
            return self._runtime_api.messages.get(timeout=_POLL_INTERVAL_SECONDS)
        except Empty:
            return None

    def _check_memory(self, request_id: str) -> None:
        """Read the peak memory of the process.

        Raises:
            _Broken: it exceeds the memory size.
        """
        with contextlib.suppress(OSError):
            match = _PEAK_MEMORY_LINE.search(Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii"))
            self._peak_memory_mb = int(match[1]) // 1024 if match else self._peak_memory_mb
        if self._peak_memory_mb > self._spec.memory_mb:
            raise _build_error("Runtime.OutOfMemory", request_id, _describe_exit(-signal.SIGKILL))

    def _build_result(
        self,
        status: InvocationStatus,
        payload: bytes,
        init_duration: timedelta | None,
        started_at: datetime,
        error_type: str = "",
    ) -> ExecutionResult:
        return ExecutionResult(
            status=status,
            error_type=error_type,
            payload=payload,
            log_lines=self._read_new_log_lines(),
            init_duration=init_duration,
            duration=max(self._clock() - started_at, _ONE_MILLISECOND),
            peak_memory_mb=self._peak_memory_mb,
        )

    def _read_new_log_lines(self) -> tuple[str, ...]:
        with self._spec.log_file.open("rb") as log:
            log.seek(self._log_offset)
            body = log.read()
        self._log_offset += len(body)
        return tuple(body.decode(errors="replace").splitlines())


def _describe_exit(exit_code: int) -> str:
    if not exit_code:
        return "Runtime exited without providing a reason"
    if exit_code < 0:
        return f"Runtime exited with error: signal: {signal.strsignal(-exit_code)}".lower().replace(
            "runtime", "Runtime"
        )
    return f"Runtime exited with error: exit status {exit_code}"


def _build_error(error_type: str, request_id: str, message: str, status: InvocationStatus = "error") -> _Broken:
    """Return the error that Lambda reports in place of the handler; for memory, only that the process was killed."""
    reported_type = "Runtime.ExitError" if error_type == "Runtime.OutOfMemory" else error_type
    body = {"errorType": reported_type, "errorMessage": f"RequestId: {request_id} Error: {message}"}
    return _Broken(error_type, json.dumps(body).encode(), status)
