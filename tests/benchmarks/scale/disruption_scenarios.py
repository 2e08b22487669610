"""Scenarios in which many nodes leave at the same time: spot interruptions, and the drain of all nodes."""

from collections.abc import Callable
from typing import Final

from shared.model.core.labels import DISRUPTED_TAINT
from tests.benchmarks.scale.container import Call
from tests.benchmarks.scale.results import Measure
from tests.benchmarks.scale.scale_world import ScaleWorld
from tests.benchmarks.scale.seeding import CLAIMS

NODES_PER_INTERRUPTION: Final = 5
"""With 5,000 nodes, 1,000 interruptions."""
MAX_INVOCATIONS: Final = 20
NODES_PATH: Final = "/api/v1/nodes/"
EVICTION_SUFFIX: Final = "/eviction"


def measure_interruptions(world: ScaleWorld) -> tuple[Measure, ...]:
    """Interrupt a fifth of the nodes at the same time, and run lifecycle until all of them are tainted."""
    world.invoke("lifecycle")
    world.invocations.clear()
    spot_ids = [instance.instance_id for instance in world.list_active_instances() if instance.capacity_type == "spot"]
    count = max(len(world.cluster.api.list("nodes")) // NODES_PER_INTERRUPTION, 1)
    taint_seconds: list[float] = []
    world.on_call = _record_calls(world, taint_seconds, _is_disruption_taint)
    for instance_id in spot_ids[:count]:
        world.cloud.instances.interrupt(instance_id)
    for _ in range(MAX_INVOCATIONS):
        world.invoke("lifecycle")
        if len(taint_seconds) >= count:
            break
    return (
        Measure(name="interruptions", value=count),
        Measure(name="tainted nodes", value=len(taint_seconds)),
        Measure(
            name="last taint after", value=max(taint_seconds, default=float("inf")), unit="s", goal=3, kind="seconds"
        ),
    )


def measure_drain(world: ScaleWorld) -> tuple[Measure, ...]:
    """Delete all NodeClaims, and run lifecycle until it has nothing left to write before pods terminate."""
    world.invoke("lifecycle")
    world.invocations.clear()
    eviction_seconds: list[float] = []
    world.on_call = _record_calls(world, eviction_seconds, _is_eviction)
    claims = world.cluster.api.list(CLAIMS)
    for claim in claims:
        world.cluster.api.delete(CLAIMS, claim["metadata"]["name"])
    for _ in range(MAX_INVOCATIONS):
        if world.invoke("lifecycle").kube_writes == 0:
            break
    return (
        Measure(name="terminating nodes", value=len(claims)),
        Measure(name="evictions", value=len(eviction_seconds)),
        Measure(name="last eviction after", value=max(eviction_seconds, default=0.0), unit="s", kind="seconds"),
    )


def _record_calls(
    world: ScaleWorld, seconds: list[float], is_recorded: Callable[[Call], bool]
) -> Callable[[str, Call, float], None]:
    """Return a listener that records when lifecycle made each call of a kind, counted over all its invocations."""

    def record(function: str, call: Call, elapsed_seconds: float) -> None:
        if function == "lifecycle" and is_recorded(call):
            usages = (invocation.usage for invocation in world.invocations)
            seconds.append(sum(usage.lambda_seconds for usage in usages if usage is not None) + elapsed_seconds)

    return record


def _is_disruption_taint(call: Call) -> bool:
    _, method, arguments, keyword_arguments = call
    return (
        method == "patch"
        and str(arguments[0]).startswith(NODES_PATH)
        and DISRUPTED_TAINT in str((*arguments, *keyword_arguments.values()))
    )


def _is_eviction(call: Call) -> bool:
    return call[1] == "create" and str(call[2][0]).endswith(EVICTION_SUFFIX)
