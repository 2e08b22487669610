"""EC2 interrupts all instances within a minute: are they drained within two minutes, and what does that cost?

``python -m tests.benchmarks.bench_storm 1000``; one pod on each instance. Virtual time passes in functions as well: the
processor time that this process spends for a function, and `CALL_DELAY` for each of its calls. From the first write of
an invocation on, calls to Kubernetes in a row are parallel (`count_delays`); a second argument sets how many, 1 for one
after the other. A function's effects happen at its beginning all the same, so drains appear shorter than they are by
the duration of their last functions.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from math import ceil
from time import process_time
from typing import Any, Final

import msgspec

from shared.kubernetes.client import MAX_CONNECTIONS
from shared.ports.world import World
from sim.fault_tap import PortCall
from sim.lambda_runtime.invocation import Event
from sim.lambda_runtime.runtime import LambdaRuntime
from sim.lambda_runtime.stack_template.synthesis import (
    ACTIVE_SETTINGS,
    UNLIMITED_LAUNCHES_SETTINGS,
    synthesize_template,
)
from sim.time.virtual_clock import Clock
from sim.world.embedded_world import EmbeddedWorld
from sim.world.measurements import is_running
from tests.scenario.worlds import make_deployment, make_node_class, make_node_pool

SECONDS_PER_MINUTE: Final = 60
GRACE_PERIOD_SECONDS: Final = 30
CALL_DELAY: Final = timedelta(milliseconds=10)
"""Duration of one call to Kubernetes or AWS."""
MAX_CALLS_PER_CLAIM: Final = 12
"""About the most calls in a row about one NodeClaim, its Node and its pod, which are never at the same time."""
NODES_PATH: Final = "/api/v1/nodes/"
DISRUPTED_TAINT: Final = "karpenter.sh/disrupted"


class FunctionWork(msgspec.Struct):
    """The total work of one function."""

    invocations: int = 0
    call_count: int = 0
    processor_seconds: float = 0.0
    max_processor_seconds: float = 0.0
    """Processor seconds of the most expensive invocation."""
    max_duration_seconds: float = 0.0
    """Duration of the longest invocation, calls included."""


class StormResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a storm; lists of seconds are sorted."""

    late_pods: tuple[str, ...]
    """Pods that still ran on an instance when EC2 terminated it."""
    min_running_pods: int
    taint_seconds: tuple[float, ...]
    taint_work_seconds: tuple[float, ...]
    """The part of `taint_seconds` that passed after the function was called."""
    drain_seconds: tuple[float, ...]
    work: Mapping[str, FunctionWork]


class InvocationMeter:
    """The calls of one invocation, and how long they took."""

    def __init__(self, max_parallel_calls: int) -> None:
        """Begin now."""
        self.began, self.call_count = process_time(), 0
        self._max_parallel_calls, self._has_written = max_parallel_calls, False
        self._delay_count = self._calls_in_row = self._tags_in_row = 0

    def add_call(self, call: PortCall) -> None:
        """Count *call*."""
        self.call_count += 1
        self._has_written |= call.port == "kube" and call.method in ("create", "patch", "delete")
        if call.method == "create_tags":
            self._tags_in_row += 1
        elif call.port == "kube" and self._has_written:
            self._calls_in_row += 1
        else:
            self._delay_count = self._count_all_delays() + 1
            self._calls_in_row = self._tags_in_row = 0

    def get_call_time(self) -> timedelta:
        """Return how long the calls took so far."""
        return self._count_all_delays() * CALL_DELAY

    def _count_all_delays(self) -> int:
        return self._delay_count + count_delays(self._calls_in_row, self._tags_in_row, self._max_parallel_calls)


class MeasuredWorld(EmbeddedWorld):
    """A world in which functions take time."""

    max_parallel_calls = MAX_CONNECTIONS

    def start_functions(self, clock: Clock, seed: int) -> None:
        """Start schedules and queue deliveries."""
        self.work: dict[str, FunctionWork] = defaultdict(FunctionWork)
        self.tainted: dict[str, tuple[datetime, float]] = {}
        """By node name: when the function that tainted the node was called, and how long it took until then."""
        self._meter = InvocationMeter(self.max_parallel_calls)
        self.tap = self._on_port_call
        self.runtime = LambdaRuntime(clock, self.wiring, self._build_world, seed, get_duration=self._measure_duration)
        self.cloud.events.subscribe(self.runtime.put_event)

    def _build_world(self, function: str, environment: dict[str, str]) -> World:
        self._meter = InvocationMeter(self.max_parallel_calls)
        return super()._build_world(function, environment)

    def _measure_duration(self, function: str, event: Event) -> timedelta:
        del event
        processor_seconds, work = process_time() - self._meter.began, self.work[function]
        work.invocations, work.call_count, work.processor_seconds = (
            work.invocations + 1,
            work.call_count + self._meter.call_count,
            work.processor_seconds + processor_seconds,
        )
        duration = timedelta(seconds=processor_seconds) + self._meter.get_call_time()
        work.max_processor_seconds, work.max_duration_seconds = (
            max(work.max_processor_seconds, processor_seconds),
            max(work.max_duration_seconds, duration.total_seconds()),
        )
        return duration

    def _on_port_call(self, call: PortCall) -> None:
        if call.phase == "before":
            self._meter.add_call(call)
        elif call.method == "patch" and call.detail.startswith(NODES_PATH):
            name = call.detail.removeprefix(NODES_PATH)
            taints = self.cluster.api.get("nodes", name)["spec"].get("taints", ())
            if name not in self.tainted and any(taint["key"] == DISRUPTED_TAINT for taint in taints):
                taint_seconds = process_time() - self._meter.began + self._meter.get_call_time().total_seconds()
                self.tainted[name] = (self.clock.get_time(), taint_seconds)


def count_delays(call_count: int, tag_count: int, max_parallel_calls: int) -> int:
    """Return how many times a call's duration calls to Kubernetes in a row take, with tags of instances among them.

    Tags are written one after the other, while calls to Kubernetes run.

    >>> [count_delays(count, 0, 16) for count in (0, 1, 5, 20, 320, 321)]
    [0, 1, 5, 12, 20, 21]
    >>> count_delays(320, 30, 16), count_delays(320, 30, 1)
    (30, 350)
    """
    if max_parallel_calls == 1:
        return call_count + tag_count
    return max(ceil(call_count / max_parallel_calls), min(call_count, MAX_CALLS_PER_CLAIM), tag_count)


def run_storm(count: int, seed: int = 0) -> StormResult:
    """Interrupt *count* instances evenly over a minute, and run for two more minutes."""
    world = build_settled_world(count, seed)
    world.work.clear()
    noticed_at: dict[str, datetime] = {}
    emptied_at: dict[str, datetime] = {}
    late_pods: set[str] = set()
    min_running = count
    names = {_get_instance_id(node): node["metadata"]["name"] for node in world.cluster.api.list("nodes")}
    instance_ids = [instance.instance_id for instance in world.list_active_instances()]
    for second in range(3 * SECONDS_PER_MINUTE):
        for instance_id in instance_ids[
            count * second // SECONDS_PER_MINUTE : count * (second + 1) // SECONDS_PER_MINUTE
        ]:
            world.cloud.instances.interrupt(instance_id)
            noticed_at[names[instance_id]] = world.clock.get_time()
        world.run(timedelta(seconds=1))
        now, running_pods = world.clock.get_time(), list_running_pods(world)
        min_running = min(min_running, len(running_pods))
        pod_by_node = {pod["spec"]["nodeName"]: pod["metadata"]["name"] for pod in running_pods}
        late_pods |= {
            pod_by_node[name]
            for name, at in noticed_at.items()
            if name in pod_by_node and now - at >= timedelta(minutes=2)
        }
        emptied_at |= {name: now for name in noticed_at if name not in pod_by_node and name not in emptied_at}
    tainted = [
        (called - noticed_at[name], took) for name, (called, took) in world.tainted.items() if name in noticed_at
    ]
    return StormResult(
        late_pods=tuple(sorted(late_pods)),
        min_running_pods=min_running,
        taint_seconds=tuple(sorted(waited.total_seconds() + took for waited, took in tainted)),
        taint_work_seconds=tuple(sorted(took for _, took in tainted)),
        drain_seconds=tuple(sorted((at - noticed_at[name]).total_seconds() for name, at in emptied_at.items())),
        work=dict(world.work),
    )


def build_settled_world(count: int, seed: int) -> MeasuredWorld:
    """Return a world with one running pod on each of *count* spot instances."""
    world = MeasuredWorld(seed, template=synthesize_template(settings=ACTIVE_SETTINGS | UNLIMITED_LAUNCHES_SETTINGS))
    type_names = ("m5.large",)
    world.cloud.types = {name: world.cloud.types[name] for name in type_names}
    world.cloud.offerings = tuple((name, zone) for name, zone in world.cloud.offerings if name in type_names)
    spot = make_node_pool(capacity=("spot",), after="Never", types=type_names)
    world.apply(
        [
            make_node_class(),
            spot,
            make_deployment(count, cpu="1500m", terminationGracePeriodSeconds=GRACE_PERIOD_SECONDS),
        ]
    )
    assert world.run_until(lambda: len(list_running_pods(world)) == count, timedelta(minutes=20))
    world.run(timedelta(minutes=2))
    return world


def list_running_pods(world: EmbeddedWorld) -> list[dict[str, Any]]:
    """Return the running pods."""
    return [pod for pod in world.cluster.list_pods("default") if is_running(pod)]


def format_result(result: StormResult) -> Iterable[str]:
    """Yield the result as lines of text."""
    yield f"{len(result.late_pods)} pods late, {result.min_running_pods} ran at least"
    for label, seconds in (
        ("tainted after", result.taint_seconds),
        ("of it in the function", result.taint_work_seconds),
        ("empty after", result.drain_seconds),
    ):
        ranks = {f"p{part}": seconds[min(len(seconds) * part // 100, len(seconds) - 1)] for part in (50, 99)}
        yield f"{len(seconds)} {label}: " + ", ".join(f"{name} {value:.1f} s" for name, value in ranks.items())
    for function, work in sorted(result.work.items()):
        mean = work.processor_seconds / work.invocations
        yield (
            f"{function}: {work.invocations} invocations, {work.call_count} calls, "
            f"{work.processor_seconds:.1f} s of a processor, {mean:.2f} each, "
            f"{work.max_processor_seconds:.2f} at most; "
            f"with its calls one takes {work.max_duration_seconds:.1f} s at most"
        )


def _get_instance_id(node: Mapping[str, Any]) -> str:
    return str(node["spec"].get("providerID", "")).rpartition("/")[2]


if __name__ == "__main__":
    MeasuredWorld.max_parallel_calls = int(sys.argv[2]) if len(sys.argv) > 2 else MAX_CONNECTIONS
    sys.stdout.write("".join(f"{line}\n" for line in format_result(run_storm(int(sys.argv[1])))))
