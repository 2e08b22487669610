"""An embedded world whose functions run in processes of their own and take time, and the meter of their calls."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import msgspec

from shared.ports.kubernetes import WatchEvents
from shared.ports.world import World
from sim.lambda_runtime.invocation import Event, HandleFunction
from sim.lambda_runtime.runtime import LambdaRuntime, import_handle
from sim.lambda_runtime.stack_template.synthesis import (
    ACTIVE_SETTINGS,
    UNLIMITED_LAUNCHES_SETTINGS,
    synthesize_template,
)
from sim.time.virtual_clock import Clock
from sim.world.embedded_world import EmbeddedWorld
from tests.benchmarks.scale.container import Call, Container, Task, Usage

MEMORY_MB_PER_VCPU: Final = 1769
"""The memory size for which Lambda provides one vCPU."""
MAX_WATCH_HISTORY: Final = 102_400
"""The largest number of events that the watch cache of kube-apiserver keeps for a resource."""
EVENT: Final = {"detail-type": "Scheduled Event", "source": "schedule"}


class MeteredInvocation(msgspec.Struct, kw_only=True):
    """One invocation: its usage, and its calls."""

    function: str
    usage: Usage | None = None
    calls: Counter[str] = msgspec.field(default_factory=Counter)
    """Calls by port and method, like ``kube.list``."""
    kube_bytes: int = 0
    """Bodies of requests and responses, uncompressed."""
    aws_bytes: int = 0
    """Arguments and results of calls to AWS as JSON."""

    @property
    def kube_requests(self) -> int:
        """Number of requests to the API server."""
        return sum(count for name, count in self.calls.items() if name.startswith("kube."))

    @property
    def kube_writes(self) -> int:
        """Number of requests that changed the cluster."""
        return sum(self.calls[f"kube.{method}"] for method in ("create", "patch", "delete"))

    @property
    def aws_requests(self) -> int:
        """Number of calls to AWS; each page of a Describe call would be one more."""
        return sum(self.calls.values()) - self.kube_requests


class ScaleWorld(EmbeddedWorld):
    """A world of which each function can be a process."""

    def __init__(self, latency: timedelta) -> None:
        """Deploy the stack; a response takes *latency* while the world is measured."""
        self.latency, self.takes_time = latency, True
        self.is_measured = False
        """Whether functions run in processes of their own, and are measured; else they run here, which is faster."""
        self.invocations: list[MeteredInvocation] = []
        """The measured invocations, oldest first; a scenario clears the list before it measures."""
        self.on_call: Callable[[str, Call, float], None] = lambda _function, _call, _elapsed: None
        """Called with function, call and seconds since the start of the invocation, after each call."""
        self._containers: dict[str, Container] = {}
        super().__init__(template=synthesize_template(settings=ACTIVE_SETTINGS | UNLIMITED_LAUNCHES_SETTINGS))
        self.cluster.api.set_history_size(MAX_WATCH_HISTORY)

    def start_functions(self, clock: Clock, seed: int) -> None:
        """Start schedules and queue deliveries."""
        self.runtime = LambdaRuntime(
            clock,
            self.wiring,
            self._build_unchecked_world,
            seed,
            load_handle=self._load_handle,
            get_duration=self._get_duration,
        )
        self.cloud.events.subscribe(self.runtime.put_event)

    def invoke(self, function: str) -> MeteredInvocation:
        """Invoke *function* as its schedule does, at once and without effect on the clock.

        Raises:
            RuntimeError: the invocation failed.
        """
        self.takes_time = False
        self.is_measured = True
        self.runtime.invoke(function, EVENT)
        self.takes_time = True
        finished = self.runtime.invocations[-1]
        if finished.outcome != "ok":
            raise RuntimeError(f"{function}: {finished.error}")
        return self.invocations[-1]

    def restart_containers(self) -> None:
        """Stop all containers: the next invocation of each function is a cold start."""
        for container in self._containers.values():
            container.stop()
        self._containers.clear()

    def _load_handle(self, handler: str) -> HandleFunction:
        if not self.is_measured:
            return import_handle(handler)
        function = next(function for function in self.wiring.functions if function.handler == handler)

        def handle(event: dict[str, Any], world: World) -> dict[str, object]:
            if function.name not in self._containers:
                self._containers[function.name] = Container()
            invocation = MeteredInvocation(function=function.name)
            self.invocations.append(invocation)
            task = Task(
                handler=handler,
                event=event,
                environment=dict(function.environment),
                request_id=world.name,
                now=self.clock.get_time(),
                timeout=function.timeout,
                vcpus=function.memory_mb / MEMORY_MB_PER_VCPU,
                latency=self.latency,
            )
            invocation.usage = self._containers[function.name].invoke(
                task, lambda call, elapsed: self._perform(world, invocation, call, elapsed)
            )
            if invocation.usage.error:
                raise RuntimeError(invocation.usage.error)
            return invocation.usage.response

        return handle

    def _perform(self, world: World, invocation: MeteredInvocation, call: Call, elapsed_seconds: float) -> object:
        port, method, arguments, keyword_arguments = call
        invocation.calls[f"{port}.{method}"] += 1
        try:
            result = getattr(getattr(world, port), method)(*arguments, **keyword_arguments)
        finally:
            if port != "kube":
                invocation.aws_bytes += _count_json_bytes([arguments, keyword_arguments])
        if port != "kube":
            invocation.aws_bytes += _count_json_bytes(result)
        else:
            result = result() if method == "watch" else result
            invocation.kube_bytes += _count_body_bytes((*arguments, result))
        self.on_call(invocation.function, call, elapsed_seconds)
        return result

    def _get_duration(self, function: str, event: Event) -> timedelta:
        del function, event
        usage = self.invocations[-1].usage if self.invocations else None
        return (
            timedelta(seconds=usage.lambda_seconds)
            if self.takes_time and self.is_measured and usage is not None
            else timedelta()
        )


def get_seconds(invocation: MeteredInvocation) -> float:
    """Return the estimated duration of *invocation* on Lambda, in seconds."""
    return 0.0 if invocation.usage is None else invocation.usage.lambda_seconds


def _count_body_bytes(values: tuple[object, ...]) -> int:
    bodies = sum(len(value) for value in values if isinstance(value, bytes))
    events = (event for value in values if isinstance(value, WatchEvents) for event in value.events)
    return bodies + sum(map(len, events))


def _count_json_bytes(value: object) -> int:
    return len(msgspec.json.encode(value, enc_hook=str))
