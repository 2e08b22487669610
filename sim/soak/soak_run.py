"""Run a simulated week and sample it."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from shared.model.core.labels import ON_DEMAND
from shared.model.ec2.commitments import Commitments
from sim.soak.commitment_bill import BilledHour, RunningInstance, compute_bill
from sim.soak.consolidation_outcome import ConsolidationOutcome, evaluate_consolidations
from sim.soak.monitor import PodEviction, SoakMonitor
from sim.soak.node_replacements import ShortLivedNode
from sim.soak.policies import POLICIES, SoakPolicy, apply_payback
from sim.soak.soak_world import SoakWorld
from sim.soak.worlds.churn import ONE_DAY, ChurnEvent
from sim.soak.worlds.mixed import MIXED_WORLD
from sim.soak.worlds.soak_workloads import NAMESPACE
from sim.soak.worlds.world_definition import WorldDefinition, with_policy
from sim.world.measurements import get_vcpus, is_joiner_node, is_running

WARM_UP_DURATION: Final = timedelta(minutes=10)
SAMPLE_INTERVAL: Final = timedelta(minutes=5)


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
    on_demand: tuple[RunningInstance, ...] = ()
    """The on-demand instances of them."""


class SoakResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a simulated week."""

    world: str
    policy: str
    days: float
    seed: int
    size: float
    samples: tuple[SoakSample, ...]
    events: tuple[tuple[datetime, str, str], ...]
    """Instant, kind and name of each event, in order."""
    evictions: tuple[PodEviction, ...]
    violations: tuple[str, ...]
    consolidations: tuple[ConsolidationOutcome, ...]
    """Those that were carried out, in order."""
    short_lived_nodes: tuple[ShortLivedNode, ...]
    """Nodes that consolidation created and removed within an hour."""
    short_lived_without_changes: tuple[ShortLivedNode, ...]
    """Those of them between whose creation and removal no workload was changed from outside."""
    launches: int
    interruptions: int
    invocations: tuple[tuple[str, int], ...]
    """Number of invocations by function, sorted."""
    failed_invocations: tuple[str, ...]
    bill: tuple[BilledHour, ...] = ()
    """Hour by hour; empty if the account has no commitments."""


def run_week(
    days: float,
    seed: int,
    *,
    size: float = 1.0,
    definition: WorldDefinition = MIXED_WORLD,
    policy: SoakPolicy = POLICIES["default"],
    churn: Sequence[ChurnEvent] | None = None,
    on_sample: Callable[[SoakSample], None] = lambda _: None,
) -> SoakResult:
    """Run *days* days of *definition* with *policy*; *on_sample* receives every sample.

    *size*: scales the usual number of pods; *churn*: events instead of the generated ones.
    """
    with apply_payback(policy):
        return _run_week(days, seed, size, definition, policy, churn, on_sample)


def _run_week(
    days: float,
    seed: int,
    size: float,
    definition: WorldDefinition,
    policy: SoakPolicy,
    churn: Sequence[ChurnEvent] | None,
    on_sample: Callable[[SoakSample], None],
) -> SoakResult:
    configured_world = with_policy(
        definition, policy.consolidation_policy, policy.annotations, policy.excluded_capacity_type
    )
    world = SoakWorld(seed, policy.build_settings())
    commitments = _add_commitments(world, configured_world, size)
    world.apply(configured_world.build_manifests(size, seed))
    monitor = SoakMonitor(world, configured_world.node_pools)
    world.run(WARM_UP_DURATION)
    started_at, applied_events = world.clock.get_time(), list[tuple[datetime, str, str]]()

    def apply_event(event: ChurnEvent) -> None:
        if world.apply_event(event):
            applied_events.append((world.clock.get_time(), event.kind, event.name))

    for churn_event in definition.build_churn(days, seed, size) if churn is None else churn:
        title = f"churn {churn_event.kind} {churn_event.name}"
        world.clock.call_at(started_at + churn_event.after, partial(apply_event, churn_event), title)
    samples: list[SoakSample] = []
    end = started_at + ONE_DAY * days
    while world.clock.get_time() < end:
        samples.append(take_sample(world))
        on_sample(samples[-1])
        world.clock.run_until(min(end, world.clock.get_time() + SAMPLE_INTERVAL))
    replacement_log = monitor.replacement_log
    short_lived_nodes = tuple(replacement_log.find_short_lived())
    calls = Counter(record.function for record in world.runtime.invocations)
    return SoakResult(
        world=definition.name,
        policy=policy.name,
        days=days,
        seed=seed,
        size=size,
        samples=tuple(samples),
        events=tuple(applied_events),
        evictions=tuple(monitor.evictions),
        violations=tuple(monitor.violations),
        consolidations=evaluate_consolidations(
            replacement_log.list_replacements(), replacement_log.life_by_claim, monitor.evictions, end
        ),
        short_lived_nodes=short_lived_nodes,
        short_lived_without_changes=tuple(
            short_lived_node
            for short_lived_node in short_lived_nodes
            if monitor.has_no_changes_between(short_lived_node.requested_at, short_lived_node.removed_by.at)
        ),
        launches=monitor.launch_count,
        interruptions=monitor.interruption_count,
        invocations=tuple(sorted(calls.items())),
        failed_invocations=tuple(
            f"{record.function}: {record.error}" for record in world.runtime.invocations if record.outcome != "ok"
        ),
        bill=compute_bill(((sample.usd_per_hour, sample.on_demand) for sample in samples), commitments)
        if commitments is not None
        else (),
    )


def _add_commitments(world: SoakWorld, definition: WorldDefinition, size: float) -> Commitments | None:
    """Add the commitments of *definition*, and return them; None if it has none."""
    if definition.add_commitments is None:
        return None
    account, now = world.cloud.commitments, world.clock.get_time()
    definition.add_commitments(account, size, now)
    return Commitments(reserved=account.list_reserved(now), plans=account.list_plans(now, world.cloud.region))


def take_sample(world: SoakWorld) -> SoakSample:
    """Return the counts of the current instant."""
    pods = world.cluster.list_pods(NAMESPACE)
    summary = world.cloud.build_summary()
    joiner_nodes = [node for node in world.cluster.api.list("nodes") if is_joiner_node(node)]
    return SoakSample(
        at=world.clock.get_time(),
        nodes=len(joiner_nodes),
        vcpus=sum(get_vcpus(node) for node in joiner_nodes),
        running=sum(is_running(pod) for pod in pods),
        waiting=sum("nodeName" not in pod["spec"] and "deletionTimestamp" not in pod["metadata"] for pod in pods),
        usd_per_hour=round(summary.usd_per_hour, 4),
        on_demand=tuple(
            RunningInstance(
                instance_type=cost.instance.instance_type, zone=cost.instance.zone, usd_per_hour=cost.usd_per_hour
            )
            for cost in summary.costs
            if cost.instance.capacity_type == ON_DEMAND and cost.usd_per_hour
        ),
    )
