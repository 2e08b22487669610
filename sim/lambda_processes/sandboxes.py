"""All execution environments of an account: one per concurrent invocation, reused while idle."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec

from sim.aws_account.function_runtime import Credentials, DeployedFunction, Throttled
from sim.lambda_processes import platform_logs
from sim.lambda_processes.environment_variables import build_environment_variables
from sim.lambda_processes.execution_environment import EnvironmentSpec, ExecutionEnvironment, ExecutionResult
from sim.lambda_processes.function_code import CodeCache

MAX_LOG_TAIL_BYTES: Final = 4096
"""The size of the log tail that `LogType=Tail` returns."""


class SandboxHost(msgspec.Struct, frozen=True, kw_only=True):
    """Interpreter, libraries and folders of this computer that replace those of Lambda."""

    python: str
    """The Python interpreter that runs all functions."""
    libraries: Path
    """Replaces the layers, which have wheels for another processor: the same libraries and `awslambdaric` for this
    one.
    """
    folder: Path
    """For code and logs; its creator removes it."""
    region: str
    extra_variables: Mapping[str, str] = {}
    """Environment variables that point to the account: AWS_ENDPOINT_URL."""
    timeout_factor: float = 1.0
    """Factor of the functions' timeouts, because several functions may share a processor."""


class SandboxInvocation(msgspec.Struct, frozen=True, kw_only=True):
    """A finished invocation."""

    request_id: str
    function: str
    version: str
    source: str
    """What invoked the function, for display."""
    started_at: datetime
    result: ExecutionResult
    log_lines: tuple[str, ...]
    """All log lines of the invocation."""

    @property
    def is_cold(self) -> bool:
        """Whether a process was started for the invocation."""
        return self.result.init_duration is not None

    @property
    def ended_at(self) -> datetime:
        """The time of the end."""
        return self.started_at + (self.result.init_duration or timedelta()) + self.result.duration

    def get_log_tail(self) -> str:
        """Return the end of the log."""
        return "".join(f"{line}\n" for line in self.log_lines).encode()[-MAX_LOG_TAIL_BYTES:].decode(errors="ignore")


class SandboxPool:
    """Invokes functions in execution environments; safe to share between threads."""

    def __init__(
        self,
        host: SandboxHost,
        *,
        clock: Callable[[], datetime],
        credentials_of: Callable[[DeployedFunction], Credentials],
        on_invocation: Callable[[DeployedFunction, str, SandboxInvocation], None] = lambda _function, _stream, _call: (
            None
        ),
        on_throttle: Callable[[DeployedFunction], None] = lambda _function: None,
    ) -> None:
        """Run on *host*, each function with the credentials from *credentials_of*.

        *on_invocation* is called with the function, its log stream and each finished invocation, in the thread that
        made it; *on_throttle* with the function of each throttled invocation.
        """
        self._host, self._clock, self._credentials_of, self._on_invocation = host, clock, credentials_of, on_invocation
        self._on_throttle = on_throttle
        self._code_cache = CodeCache(host.folder)
        self._idle_environments: dict[str, list[tuple[str, ExecutionEnvironment]]] = {}
        self._all_environments: set[ExecutionEnvironment] = set()
        self._running_count: Counter[str] = Counter()
        self._environment_numbers, self._lock = count(1), Lock()
        self._is_shut_down = False

    def invoke(self, function: DeployedFunction, payload: bytes, *, request_id: str, source: str) -> SandboxInvocation:
        """Invoke *function* with *payload* on behalf of *source*, and return the finished invocation.

        Raises:
            Throttled: the reserved concurrency is reached, or the pool is shut down.
        """
        environment_key = _build_environment_key(function)
        try:
            self._acquire_slot(function)
        except Throttled:
            self._on_throttle(function)
            raise
        try:
            log_stream, environment = self._acquire_environment(function, environment_key)
            invocation = self._invoke_environment(environment, function, payload, request_id, source)
            self._release_environment(environment_key, log_stream, environment)
        finally:
            self._release_slot(function)
        self._on_invocation(function, log_stream, invocation)
        return invocation

    def count_running(self) -> dict[str, int]:
        """Return the number of running invocations by function; functions without one are omitted."""
        with self._lock:
            return {name: running_count for name, running_count in sorted(self._running_count.items()) if running_count}

    def list_pids(self) -> tuple[int, ...]:
        """Return the ids of all processes, sorted."""
        with self._lock:
            return tuple(sorted(pid for environment in self._all_environments if (pid := environment.pid)))

    def discard_idle(self, functions: frozenset[str]) -> None:
        """Kill the idle environments of *functions* (names) that were deleted or changed."""
        with self._lock:
            idle_by_key = {
                key: environments
                for key, environments in self._idle_environments.items()
                if key.partition(" ")[0] in functions
            }
            for key in idle_by_key:
                del self._idle_environments[key]
            ended_environments = [
                environment for environments in idle_by_key.values() for _, environment in environments
            ]
            self._all_environments.difference_update(ended_environments)
        for environment in ended_environments:
            environment.kill()

    def shut_down(self) -> None:
        """Kill all processes; running invocations fail, and further ones are throttled."""
        with self._lock:
            self._is_shut_down = True
            ended_environments, self._all_environments = self._all_environments, set()
            self._idle_environments.clear()
        for environment in sorted(ended_environments, key=lambda environment: environment.pid):
            environment.kill()

    def _acquire_slot(self, function: DeployedFunction) -> None:
        with self._lock:
            max_concurrency = function.reserved_concurrency
            if self._is_shut_down or (
                max_concurrency is not None and self._running_count[function.name] >= max_concurrency
            ):
                raise Throttled(
                    f"{function.name}: {self._running_count[function.name]} run, {max_concurrency} are reserved"
                )
            self._running_count[function.name] += 1

    def _release_slot(self, function: DeployedFunction) -> None:
        with self._lock:
            self._running_count[function.name] -= 1

    def _acquire_environment(
        self, function: DeployedFunction, environment_key: str
    ) -> tuple[str, ExecutionEnvironment]:
        with self._lock:
            idle_environments = self._idle_environments.get(environment_key, [])
            while idle_environments:
                log_stream, environment = idle_environments.pop()
                if environment.pid:
                    return log_stream, environment
                self._all_environments.discard(environment)
            number = next(self._environment_numbers)
        log_stream = f"{self._clock():%Y/%m/%d}/[{function.version}]{number:032x}"
        environment = ExecutionEnvironment(self._build_environment_spec(function, log_stream, number), self._clock)
        with self._lock:
            self._all_environments.add(environment)
            is_too_late = self._is_shut_down
        if is_too_late:
            environment.kill()
        return log_stream, environment

    def _build_environment_spec(self, function: DeployedFunction, log_stream: str, number: int) -> EnvironmentSpec:
        code_folder, host = self._code_cache.unpack_archive(function.code), self._host
        return EnvironmentSpec(
            command=(host.python, "-m", "awslambdaric", function.handler),
            environment_variables=build_environment_variables(
                function,
                log_stream=log_stream,
                task_root=code_folder,
                libraries=host.libraries,
                credentials=self._credentials_of(function),
                region=host.region,
                extra_variables=host.extra_variables,
            ),
            code_folder=code_folder,
            log_file=host.folder / f"{function.name}-{number}.log",
            memory_mb=function.memory_mb,
            timeout=timedelta(seconds=function.timeout_seconds) * host.timeout_factor,
        )

    def _invoke_environment(
        self,
        environment: ExecutionEnvironment,
        function: DeployedFunction,
        payload: bytes,
        request_id: str,
        source: str,
    ) -> SandboxInvocation:
        started_at = self._clock()
        result = environment.invoke(request_id, payload, function.arn, _build_trace_header(request_id))
        log_lines = (
            platform_logs.format_start_line(function, request_id, started_at),
            *result.log_lines,
            *platform_logs.format_end_lines(function, request_id, self._clock(), result),
        )
        return SandboxInvocation(
            request_id=request_id,
            function=function.name,
            version=function.version,
            source=source,
            started_at=started_at,
            result=result,
            log_lines=log_lines,
        )

    def _release_environment(self, environment_key: str, log_stream: str, environment: ExecutionEnvironment) -> None:
        with self._lock:
            if environment.pid and not self._is_shut_down:
                self._idle_environments.setdefault(environment_key, []).append((log_stream, environment))
                return
            self._all_environments.discard(environment)
        environment.kill()


def _build_environment_key(function: DeployedFunction) -> str:
    """Return the key of the environments that can run *function*; it begins with the function's name."""
    key_parts = (
        function.version,
        function.code_sha256,
        function.handler,
        function.environment,
        function.memory_mb,
        function.timeout_seconds,
        function.role_arn,
        function.log_format,
    )
    return f"{function.name} {sha256(json.dumps(key_parts, sort_keys=True).encode()).hexdigest()}"


def _build_trace_header(request_id: str) -> str:
    """Return the trace header of a request that is not sampled."""
    digest = sha256(request_id.encode()).hexdigest()
    return f"Root=1-{digest[:8]}-{digest[8:32]};Sampled=0"
