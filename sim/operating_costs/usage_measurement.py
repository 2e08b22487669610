"""Measure the usage of a deployed stack with a cluster of a given size, in real processor time."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import timedelta
from time import process_time
from typing import Any, Final

from shared.model.core.labels import CANARY
from shared.model.core.units import format_duration
from shared.ports.world import World
from sim.fault_tap import PortCall
from sim.lambda_runtime.invocation import Event, HandleFunction, HandlerResponse
from sim.lambda_runtime.runtime import LambdaRuntime, import_handle
from sim.operating_costs.usage import FunctionUsage, StackUsage
from sim.time.virtual_clock import Clock
from sim.world import manifests
from sim.world.embedded_world import EmbeddedWorld
from sim.world.measurements import is_running

INSTANCE_TYPE: Final = "m5.2xlarge"
"""Instance type of every node: eight vCPUs, which ten pods fill."""
PODS_PER_NODE: Final = 10
CHURN_INTERVAL: Final = timedelta(minutes=10)
STARTUP_TIMEOUT: Final = timedelta(minutes=30)
STARTUP_CHECK_INTERVAL: Final = timedelta(seconds=10)
"""Interval between checks whether all pods run: a check of ten thousand pods is slow."""
CANARY_SOAK_DURATION: Final = timedelta(hours=12)
"""Longer than a measurement: the canary runs all the time."""
CHURN_RATIO: Final = 0.05
"""Part of the pods that is alternately removed and added."""


class MeteredWorld(EmbeddedWorld):
    """An embedded world that counts what its functions use."""

    def __init__(self, template: dict[str, Any]) -> None:
        """Deploy *template*."""
        self.usage_by_function: dict[str, FunctionUsage] = defaultdict(FunctionUsage)
        self._initial_bytes: Counter[str] = Counter()
        self._call_started_at = self._port_seconds = 0.0
        self._messages = self._initial_samples = 0
        super().__init__(0, template=template, tap=self._record_call)

    def start_functions(self, clock: Clock, seed: int) -> None:
        """Start schedules and queues; every invocation of a handler is timed."""
        self.runtime = LambdaRuntime(clock, self.wiring, self._build_world, seed, load_handle=self._load_timed_handler)
        self.runtime.count_copies = self._count_message
        self.cloud.events.subscribe(self.runtime.put_event)

    def reset_counters(self) -> None:
        """Start counting from zero."""
        self.usage_by_function.clear()
        self._messages = 0
        self.log_lines.clear()
        self._initial_bytes = self._sum_bucket_bytes()
        self._initial_samples = self._count_samples()

    def get_usage(self, duration: timedelta) -> StackUsage:
        """Return the usage since `reset_counters`."""
        names = {name for line in self.log_lines for name in _list_metrics(line)}
        return StackUsage(
            duration=duration,
            functions=dict(self.usage_by_function),
            metrics=len(names),
            log_bytes=sum(map(len, self.log_lines)),
            messages=self._messages,
            written_samples=self._count_samples() - self._initial_samples,
            stored_bytes=self._sum_bucket_bytes() - self._initial_bytes,
        )

    def _count_message(self, queue: str, body: str) -> int:
        del queue, body
        self._messages += 1
        return 1

    def _count_samples(self) -> int:
        return sum(map(len, self.workspace.samples_by_labels.values()))

    def _sum_bucket_bytes(self) -> Counter[str]:
        bytes_by_prefix: Counter[str] = Counter()
        for key in self.bucket.list_keys(""):
            bytes_by_prefix[f"{key.partition('/')[0]}/"] += len(self.bucket.get(key))
        return bytes_by_prefix

    def _load_timed_handler(self, handler: str) -> HandleFunction:
        handle, name = import_handle(handler), handler.split(".")[1]

        def run(event: Event, world: World) -> HandlerResponse:
            started_at, self._port_seconds = process_time(), 0.0
            try:
                return handle(event, world)
            finally:
                function_usage = self.usage_by_function[name]
                function_usage.invocations += 1
                function_usage.processor_seconds += process_time() - started_at - self._port_seconds

        return run

    def _record_call(self, call: PortCall) -> None:
        if call.phase == "before":
            self.usage_by_function[call.world_name.rpartition("-")[0]].calls[call.port, call.method] += 1
            self._call_started_at = process_time()
        else:
            self._port_seconds += process_time() - self._call_started_at


def measure_usage(
    template: dict[str, Any],
    nodes: int,
    duration: timedelta,
    report_progress: Callable[[str], None],
    *,
    has_canary: bool = False,
) -> StackUsage:
    """Return what the stack of *template* uses in *duration* with *nodes* nodes of ten pods each.

    A twentieth of the pods is removed and added again every ten minutes; *report_progress* receives progress lines.
    *has_canary*: AWS releases an image when the measurement starts, and a canary tests it.
    """
    world = MeteredWorld(template)
    world.cloud.types = {INSTANCE_TYPE: world.cloud.types[INSTANCE_TYPE]}
    world.cloud.offerings = tuple(offering for offering in world.cloud.offerings if offering[0] == INSTANCE_TYPE)
    pods = nodes * PODS_PER_NODE
    world.apply(_build_manifests(pods, has_canary=has_canary))
    report_progress(f"{nodes} nodes: {pods} pods are started")
    end = world.clock.get_time() + STARTUP_TIMEOUT
    while _count_running(world) < pods:
        if world.clock.get_time() >= end:
            raise RuntimeError(f"{_count_running(world)} of {pods} pods run after half an hour")
        world.run(STARTUP_CHECK_INTERVAL)
    world.run(timedelta(minutes=10))
    world.reset_counters()
    if has_canary:
        world.cloud.release_amis()
    reduced_pods = round(pods * (1 - CHURN_RATIO))
    for number in range(round(duration / CHURN_INTERVAL)):
        report_progress(f"{nodes} nodes: {number * CHURN_INTERVAL} of {duration}")
        world.cluster.scale("Deployment", "default", "web", reduced_pods if number % 2 == 0 else pods)
        world.run(CHURN_INTERVAL)
    return world.get_usage(duration)


def _count_running(world: EmbeddedWorld) -> int:
    return sum(is_running(pod) for pod in world.cluster.list_pods("default"))


def _list_metrics(line: str) -> list[tuple[str, ...]]:
    document = json.loads(line)
    metrics: list[tuple[str, ...]] = []
    for directive in document.get("_aws", {}).get("CloudWatchMetrics", []):
        for keys in directive["Dimensions"]:
            values = tuple(f"{key}={document[key]}" for key in keys)
            metrics.extend((metric["Name"], *values) for metric in directive["Metrics"])
    return metrics


def _build_manifests(pods: int, *, has_canary: bool) -> list[dict[str, Any]]:
    template = manifests.build_node_template({"karpenter.sh/capacity-type": ["spot"]})
    disruption = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1m"}
    pod_spec = {"containers": [manifests.build_container("750m", "1Gi")]}
    node_class = manifests.build_node_class(discovery="demo")
    if has_canary:
        node_class["metadata"]["annotations"] = {CANARY: f"nodes=1 soak={format_duration(CANARY_SOAK_DURATION)}"}
    return [
        node_class,
        manifests.build_node_pool("default", template, disruption=disruption),
        manifests.build_workload("Deployment", "web", pod_spec, replicas=pods),
    ]
