"""Run a simulated week and sample it."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from sim.soak.churn import ONE_DAY, ChurnEvent, build_churn
from sim.soak.monitor import PodEviction, SoakMonitor
from sim.soak.node_replacements import ShortLivedNode
from sim.soak.soak_workloads import NAMESPACE, build_manifests
from sim.soak.soak_world import IdealCost, SoakWorld
from sim.world.measurements import get_vcpus, is_joiner_node, is_running

WARM_UP_DURATION: Final = timedelta(minutes=10)
SAMPLE_INTERVAL: Final = timedelta(minutes=5)
IDEAL_COST_INTERVAL: Final = timedelta(hours=1)
IDEAL_COSTS_PER_BOUND: Final = 24
"""One of this many ideal costs has a lower bound too: it takes half a minute for about fifty pods."""


class SoakSample(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster at one instant."""

    at: datetime
    nodes: int
    vcpus: int
    running: int
    """Pods of workloads."""
    waiting: int
    """Pods without a node."""
    usd_per_hour: float
    """Of all instances that are not terminating, at synthetic prices."""
    ideal: IdealCost | None = None


class SoakResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a simulated week."""

    consolidates: bool
    days: float
    seed: int
    samples: tuple[SoakSample, ...]
    events: tuple[tuple[datetime, str, str], ...]
    """Instant, kind and name of each event, in order."""
    evictions: tuple[PodEviction, ...]
    violations: tuple[str, ...]
    replacements: int
    """Consolidations that were carried out."""
    short_lived_nodes: tuple[ShortLivedNode, ...]
    """Nodes that consolidation created and removed within an hour."""
    short_lived_without_changes: tuple[ShortLivedNode, ...]
    """Those of them between whose creation and removal no workload was changed from outside."""
    launches: int
    interruptions: int
    invocations: tuple[tuple[str, int], ...]
    """Number of invocations by function, sorted; followed by the failed invocations."""
    failed_invocations: tuple[str, ...]


def run_week(
    days: float,
    seed: int,
    *,
    size: float = 1.0,
    churn: Sequence[ChurnEvent] | None = None,
    consolidates: bool = True,
    has_ideal: bool = True,
    on_sample: Callable[[SoakSample], None] = lambda _: None,
) -> SoakResult:
    """Run *days* days of the churn of *seed*; *on_sample* receives every sample.

    *size*: scales the usual number of pods; *churn*: events instead of the generated ones; *consolidates*: whether the
    deployment has consolidation enabled; *has_ideal*: whether the ideal cost is computed hourly.
    """
    world = SoakWorld(seed, consolidates=consolidates)
    world.apply(build_manifests(size))
    monitor = SoakMonitor(world)
    world.run(WARM_UP_DURATION)
    started_at, applied_events = world.clock.get_time(), list[tuple[datetime, str, str]]()

    def apply_event(event: ChurnEvent) -> None:
        if world.apply_event(event):
            applied_events.append((world.clock.get_time(), event.kind, event.name))

    for churn_event in build_churn(days, seed, size) if churn is None else churn:
        title = f"churn {churn_event.kind} {churn_event.name}"
        world.clock.call_at(started_at + churn_event.after, partial(apply_event, churn_event), title)
    samples: list[SoakSample] = []
    end = started_at + ONE_DAY * days
    while world.clock.get_time() < end:
        hour, elapsed_in_hour = divmod(world.clock.get_time() - started_at, IDEAL_COST_INTERVAL)
        is_due = has_ideal and not elapsed_in_hour
        samples.append(
            take_sample(world, world.compute_ideal_cost(bounded=hour % IDEAL_COSTS_PER_BOUND == 0) if is_due else None)
        )
        on_sample(samples[-1])
        world.clock.run_until(min(end, world.clock.get_time() + SAMPLE_INTERVAL))
    returns = tuple(monitor.replacement_log.find_short_lived())
    calls = Counter(record.function for record in world.runtime.invocations)
    return SoakResult(
        consolidates=consolidates,
        days=days,
        seed=seed,
        samples=tuple(samples),
        events=tuple(applied_events),
        evictions=tuple(monitor.evictions),
        violations=tuple(monitor.violations),
        replacements=len(monitor.replacement_log.list_replacements()),
        short_lived_nodes=returns,
        short_lived_without_changes=tuple(
            short_lived_node
            for short_lived_node in returns
            if monitor.has_no_changes_between(short_lived_node.requested_at, short_lived_node.removed_by.at)
        ),
        launches=monitor.launch_count,
        interruptions=monitor.interruption_count,
        invocations=tuple(sorted(calls.items())),
        failed_invocations=tuple(
            f"{record.function}: {record.error}" for record in world.runtime.invocations if record.outcome != "ok"
        ),
    )


def take_sample(world: SoakWorld, ideal: IdealCost | None = None) -> SoakSample:
    """Return the counts of the current instant."""
    pods = world.cluster.list_pods(NAMESPACE)
    joiner_nodes = [node for node in world.cluster.api.list("nodes") if is_joiner_node(node)]
    return SoakSample(
        at=world.clock.get_time(),
        nodes=len(joiner_nodes),
        vcpus=sum(get_vcpus(node) for node in joiner_nodes),
        running=sum(is_running(pod) for pod in pods),
        waiting=sum("nodeName" not in pod["spec"] and "deletionTimestamp" not in pod["metadata"] for pod in pods),
        usd_per_hour=round(world.cloud.compute_hourly_cost(), 4),
        ideal=ideal,
    )
