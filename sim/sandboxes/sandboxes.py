"""All execution environments of an account: reused while they are idle, one per invocation that runs at a time."""

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

from sim.account.contract import Credentials, Function, Throttled
from sim.sandboxes import told
from sim.sandboxes.code import CodeFolders
from sim.sandboxes.environment import Ended, ExecutionEnvironment, Plan
from sim.sandboxes.variables import variables

TAIL_BYTES: Final = 4096
"""Of the log, as much as `LogType=Tail` answers."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What this machine has in the place of Lambda's."""

    python: str
    """The interpreter that runs all functions."""
    libraries: Path
    """In the place of the layers, whose wheels are for another processor: the same for this one, and `awslambdaric`."""
    folder: Path
    """For code and logs; whoever made it removes it."""
    region: str
    further: Mapping[str, str] = {}
    """Variables that lead to the account: AWS_ENDPOINT_URL."""
    slowness: float = 1.0
    """How many times as long as in Lambda a call may take: several functions may have to share a processor."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One invocation, over."""

    request_id: str
    function: str
    version: str
    by: str
    """What woke it, in words."""
    began: datetime
    how: Ended
    lines: tuple[str, ...]
    """All that went into the log for it."""

    @property
    def is_cold(self) -> bool:
        """Whether a process was started for it."""
        return self.how.init is not None

    @property
    def ended(self) -> datetime:
        """When it was over."""
        return self.began + (self.how.init or timedelta()) + self.how.duration

    def tail(self) -> str:
        """Answer the end of its log."""
        return "".join(f"{line}\n" for line in self.lines).encode()[-TAIL_BYTES:].decode(errors="ignore")


class Sandboxes:
    """Invokes functions; safe to share between threads."""

    def __init__(
        self,
        machine: Machine,
        *,
        clock: Callable[[], datetime],
        credentials_of: Callable[[Function], Credentials],
        on_call: Callable[[Function, str, Call], None] = lambda _function, _stream, _call: None,
        on_throttle: Callable[[Function], None] = lambda _function: None,
    ) -> None:
        """Run on *machine*, each function as its role, by *credentials_of*.

        *on_call* hears of each call that is over, with its function and log stream, in the thread that made it;
        *on_throttle* of each that was refused.
        """
        self._machine, self._clock, self._credentials_of, self._on_call = machine, clock, credentials_of, on_call
        self._on_throttle = on_throttle
        self._code = CodeFolders(machine.folder)
        self._idle: dict[str, list[tuple[str, ExecutionEnvironment]]] = {}
        self._all: set[ExecutionEnvironment] = set()
        self._running: Counter[str] = Counter()
        self._numbers, self._lock = count(1), Lock()
        self._is_over = False

    def invoke(self, function: Function, payload: bytes, *, request_id: str, by: str) -> Call:
        """Have *payload* handled by *function*, which *by* wakes, and answer how that ended.

        Raises:
            Throttled: as many run as are reserved for it, or all is over.
        """
        identity = _identity(function)
        try:
            self._enter(function)
        except Throttled:
            self._on_throttle(function)
            raise
        try:
            stream, environment = self._taken(function, identity)
            call = self._called(environment, function, payload, request_id, by)
            self._put_back(identity, stream, environment)
        finally:
            self._leave(function)
        self._on_call(function, stream, call)
        return call

    def running(self) -> dict[str, int]:
        """Answer how many invocations of each function run now; none with zero."""
        with self._lock:
            return {name: many for name, many in sorted(self._running.items()) if many}

    def pids(self) -> tuple[int, ...]:
        """Answer the ids of all processes."""
        with self._lock:
            return tuple(sorted(pid for one in self._all if (pid := one.pid)))

    def forget(self, functions: frozenset[str]) -> None:
        """End the idle environments of *functions*, by name: they were deleted or changed."""
        with self._lock:
            known = {key: some for key, some in self._idle.items() if key.partition(" ")[0] in functions}
            for key in known:
                del self._idle[key]
            ended = [one for some in known.values() for _, one in some]
            self._all.difference_update(ended)
        for one in ended:
            one.end()

    def end(self) -> None:
        """Kill all processes; what runs has failed, and nothing can be invoked any more."""
        with self._lock:
            self._is_over = True
            ended, self._all = self._all, set()
            self._idle.clear()
        for one in sorted(ended, key=lambda one: one.pid):
            one.end()

    def _enter(self, function: Function) -> None:
        with self._lock:
            most = function.reserved_concurrency
            if self._is_over or (most is not None and self._running[function.name] >= most):
                raise Throttled(f"{function.name}: {self._running[function.name]} run, {most} are reserved")
            self._running[function.name] += 1

    def _leave(self, function: Function) -> None:
        with self._lock:
            self._running[function.name] -= 1

    def _taken(self, function: Function, identity: str) -> tuple[str, ExecutionEnvironment]:
        with self._lock:
            idle = self._idle.get(identity, [])
            while idle:
                stream, environment = idle.pop()
                if environment.pid:
                    return stream, environment
                self._all.discard(environment)
            number = next(self._numbers)
        stream = f"{self._clock():%Y/%m/%d}/[{function.version}]{number:032x}"
        environment = ExecutionEnvironment(self._planned(function, stream, number), self._clock)
        with self._lock:
            self._all.add(environment)
            is_too_late = self._is_over
        if is_too_late:
            environment.end()
        return stream, environment

    def _planned(self, function: Function, stream: str, number: int) -> Plan:
        root, machine = self._code.unpacked(function.code), self._machine
        return Plan(
            command=(machine.python, "-m", "awslambdaric", function.handler),
            variables=variables(
                function,
                stream=stream,
                task_root=root,
                libraries=machine.libraries,
                credentials=self._credentials_of(function),
                region=machine.region,
                further=machine.further,
            ),
            folder=root,
            log=machine.folder / f"{function.name}-{number}.log",
            memory_mb=function.memory_mb,
            timeout=timedelta(seconds=function.timeout_seconds) * machine.slowness,
        )

    def _called(
        self, environment: ExecutionEnvironment, function: Function, payload: bytes, request_id: str, by: str
    ) -> Call:
        began = self._clock()
        how = environment.invoke(request_id, payload, function.arn, _trace(request_id))
        lines = (
            told.began(function, request_id, began),
            *how.lines,
            *told.ended(function, request_id, self._clock(), how),
        )
        return Call(
            request_id=request_id,
            function=function.name,
            version=function.version,
            by=by,
            began=began,
            how=how,
            lines=lines,
        )

    def _put_back(self, identity: str, stream: str, environment: ExecutionEnvironment) -> None:
        with self._lock:
            if environment.pid and not self._is_over:
                self._idle.setdefault(identity, []).append((stream, environment))
                return
            self._all.discard(environment)
        environment.end()


def _identity(function: Function) -> str:
    """Answer what an environment must have in common with *function* to be used for it; its name is the first word."""
    facts = (
        function.version,
        function.code_sha256,
        function.handler,
        function.environment,
        function.memory_mb,
        function.timeout_seconds,
        function.role_arn,
        function.log_format,
    )
    return f"{function.name} {sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()}"


def _trace(request_id: str) -> str:
    """Answer the trace of a request that nobody traces."""
    drawn = sha256(request_id.encode()).hexdigest()
    return f"Root=1-{drawn[:8]}-{drawn[8:32]};Sampled=0"
