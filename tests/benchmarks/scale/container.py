"""A Lambda container: a process that runs one function, with its ports in the process that started it.

Its memory and processor time are those of the function: cluster and cloud are simulated in the other process. The
clients of AWS and Kubernetes are not part: a call passes its arguments and its result through a pipe, which costs about
as much as decoding a response.
"""

import importlib
import resource
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock, current_thread, main_thread
from types import MappingProxyType
from typing import Any, Final, cast

import msgspec

from shared.kubernetes.client import MAX_CONNECTIONS
from shared.ports.kubernetes import WatchEvents
from shared.ports.world import World
from shared.settings import Settings
from tests.benchmarks.scale.call_chain import CallChain

Call = tuple[str, str, tuple[Any, ...], dict[str, Any]]
"""Port, method, arguments and keyword arguments."""
PORTS: Final = ("ec2", "parameters", "prices", "eks", "mailbox", "table", "bucket")


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One invocation."""

    handler: str
    event: dict[str, Any]
    environment: dict[str, str]
    request_id: str
    now: datetime
    timeout: timedelta
    vcpus: float
    """The share of a processor that Lambda provides for the function's memory."""
    latency: timedelta
    """The time until a response."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What an invocation used."""

    response: dict[str, Any]
    error: str = ""
    wall_seconds: float
    """Elapsed time on this computer, simulation of the responses included."""
    cpu_seconds: float
    """Processor time of all threads of the function's process."""
    lambda_seconds: float
    """`cpu_seconds` on Lambda's share of a processor, plus `Task.latency` for each call of the longest chain."""
    base_mib: float
    """Memory of the process before the invocation."""
    peak_mib: float
    """Peak memory of the process during the invocation."""


class Container:
    """A process that runs one function until it is stopped."""

    def __init__(self) -> None:
        """Start the process."""
        context = get_context("spawn")
        self._connection, remote_end = context.Pipe()
        self._process = context.Process(target=run_container, args=(remote_end,), daemon=True)
        self._process.start()
        remote_end.close()

    def invoke(self, task: Task, perform: Callable[[Call, float], object]) -> Usage:
        """Run one invocation; *perform* makes each call, and gets the time since the start of the invocation."""
        self._connection.send(task)
        while True:
            message = self._connection.recv()
            if isinstance(message, Usage):
                return message
            self._connection.send(_try_call(perform, *message))

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()


def _try_call(perform: Callable[[Call, float], object], call: Call, elapsed_seconds: float) -> tuple[bool, object]:
    try:
        result = perform(call, elapsed_seconds)
        return True, dict(result) if isinstance(result, MappingProxyType) else result
    except Exception as error:  # noqa: BLE001 - raised again in the function's process
        return False, (type(error), error.args, vars(error))


class _Invocation:
    """The calls of one invocation, on the side of the function."""

    def __init__(self, connection: Connection, task: Task) -> None:
        self._connection, self._task, self._lock, self._chain = connection, task, Lock(), CallChain()
        self.cpu_began, self.wall_began = time.process_time(), time.perf_counter()

    def get_lambda_seconds(self) -> float:
        cpu_seconds = time.process_time() - self.cpu_began
        return cpu_seconds / self._task.vcpus + self._chain.get_length() * self._task.latency.total_seconds()

    def get_time_left(self) -> timedelta:
        return self._task.timeout - timedelta(seconds=self.get_lambda_seconds())

    def call(self, port: str, method: str, *arguments: object, **keyword_arguments: object) -> object:
        """Make a call; other threads wait for the simulation, but not for the latency.

        Raises:
            Exception: what the call raised.
        """
        if current_thread() is not main_thread():
            time.sleep(self._task.latency.total_seconds())
        values = tuple(tuple(value) if isinstance(value, Iterator) else value for value in arguments)
        self._chain.add_call()
        with self._lock:
            self._connection.send(((port, method, values, keyword_arguments), self.get_lambda_seconds()))
            is_done, result = self._connection.recv()
        if is_done:
            return result
        error_type, error_arguments, fields = result
        error = error_type(*error_arguments)
        vars(error).update(fields)
        raise error


class _RemotePort:
    def __init__(self, invocation: _Invocation, name: str) -> None:
        self._invocation, self._name = invocation, name

    def __getattr__(self, method: str) -> Any:
        return lambda *arguments, **keyword_arguments: self._invocation.call(
            self._name, method, *arguments, **keyword_arguments
        )

    def watch(self, path: str, *, since: str, field_selector: str = "") -> Callable[[], WatchEvents]:
        events = self._invocation.call("kube", "watch", path, since=since, field_selector=field_selector)
        return lambda: cast("WatchEvents", events)


def run_container(connection: Connection) -> None:
    """Run the invocations that arrive on *connection*."""
    importlib.import_module("shared.production_world")
    memory: dict[str, object] = {}
    while True:
        task: Task = connection.recv()
        handle = importlib.import_module(task.handler.rpartition(".")[0]).handle
        connection.send(_run_invocation(connection, task, handle, memory))


def _run_invocation(
    connection: Connection, task: Task, handle: Callable[..., dict[str, Any]], memory: dict[str, object]
) -> Usage:
    base_mib = _reset_peak_mib()
    invocation = _Invocation(connection, task)
    response: dict[str, Any] = {}
    error = ""
    try:
        response = handle(task.event, _build_world(invocation, task, memory))
    except Exception as raised:  # noqa: BLE001 - an invocation that fails is a result
        error = f"{type(raised).__name__}: {raised}"
    return Usage(
        response=response,
        error=error,
        wall_seconds=time.perf_counter() - invocation.wall_began,
        cpu_seconds=time.process_time() - invocation.cpu_began,
        lambda_seconds=invocation.get_lambda_seconds(),
        base_mib=base_mib,
        peak_mib=_read_status_mib("VmHWM"),
    )


def _build_world(invocation: _Invocation, task: Task, memory: dict[str, object]) -> World:
    ports = {name: cast("Any", _RemotePort(invocation, name)) for name in PORTS}
    return World(
        settings=Settings.from_environment(task.environment),
        kube=cast("Any", _RemotePort(invocation, "kube")),
        clock=lambda: task.now,
        emit=lambda _: None,
        name=task.request_id,
        is_cold_start=not memory,
        memory=memory,
        time_left=invocation.get_time_left,
        max_parallel_calls=MAX_CONNECTIONS,
        **ports,
    )


def _reset_peak_mib() -> float:
    """Reset the peak memory of this process, where the kernel can; return its memory now."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return 0.0
    return _read_status_mib("VmRSS")


def _read_status_mib(field: str) -> float:
    """Return a field of the kernel's status of this process; without /proc, the peak since the process started."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines = status.read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))
