"""Plays a simulated week and samples it."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from sim.measure import is_ours, is_running, vcpus_of
from sim.weeks.churn import DAY, Happening, happenings
from sim.weeks.exchanges import Return
from sim.weeks.witness import Eviction, Witness
from sim.weeks.workloads import NAMESPACE, set_up
from sim.weeks.world import Ideal, WeekWorld

WARM_UP: Final = timedelta(minutes=10)
SAMPLE_EVERY: Final = timedelta(minutes=5)
IDEAL_EVERY: Final = timedelta(hours=1)
BOUND_EVERY: Final = 24
"""Of so many of these one has a lower bound, too: it takes half a minute for some fifty pods."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster at one instant."""

    at: datetime
    nodes: int
    vcpus: int
    running: int
    """Pods of workloads."""
    waiting: int
    """Pods that no node has."""
    usd_per_hour: float
    """Of all instances that have not begun to end, at synthetic prices."""
    ideal: Ideal | None = None


class Week(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it."""

    consolidates: bool
    days: float
    seed: int
    samples: tuple[Sample, ...]
    happened: tuple[tuple[datetime, str, str], ...]
    """When, what kind, whom; in order."""
    evictions: tuple[Eviction, ...]
    violations: tuple[str, ...]
    exchanges: int
    """Consolidations that were carried out."""
    returns: tuple[Return, ...]
    """Nodes that consolidation made and took away within an hour."""
    restless: tuple[Return, ...]
    """Those of them between whose making and end nobody else changed what is to run."""
    launched: int
    interrupted: int
    calls: tuple[tuple[str, int], ...]
    """Invocations by function, sorted; then those that failed."""
    failed: tuple[str, ...]


def play(
    days: float,
    seed: int,
    *,
    size: float = 1.0,
    churn: Sequence[Happening] | None = None,
    consolidates: bool = True,
    has_ideal: bool = True,
    told: Callable[[Sample], None] = lambda _: None,
) -> Week:
    """Play *days* of the churn of *seed*; *told* hears every sample.

    *size*: the part of the usual pods that there are; *churn*: what happens instead of that; *consolidates*: else the
    deployment has it switched off; *has_ideal*: hourly, what an ideal fleet would cost.
    """
    world = WeekWorld(seed, consolidates=consolidates)
    world.apply(set_up(size))
    witness = Witness(world)
    world.run(WARM_UP)
    began, happened = world.clock.now(), list[tuple[datetime, str, str]]()

    def happen(one: Happening) -> None:
        if world.happen(one):
            happened.append((world.clock.now(), one.kind, one.name))

    for one in happenings(days, seed, size) if churn is None else churn:
        world.clock.call_at(began + one.after, partial(happen, one), f"churn {one.kind} {one.name}")
    samples: list[Sample] = []
    end = began + DAY * days
    while world.clock.now() < end:
        hour, into = divmod(world.clock.now() - began, IDEAL_EVERY)
        is_due = has_ideal and not into
        samples.append(sampled(world, world.ideal(bounded=hour % BOUND_EVERY == 0) if is_due else None))
        told(samples[-1])
        world.clock.run_until(min(end, world.clock.now() + SAMPLE_EVERY))
    returns = tuple(witness.exchanges.returns())
    calls = Counter(one.function for one in world.runtime.records)
    return Week(
        consolidates=consolidates,
        days=days,
        seed=seed,
        samples=tuple(samples),
        happened=tuple(happened),
        evictions=tuple(witness.evictions),
        violations=tuple(witness.violations),
        exchanges=len(witness.exchanges.all()),
        returns=returns,
        restless=tuple(one for one in returns if witness.quiet_between(one.began, one.unmade.at)),
        launched=witness.launched,
        interrupted=witness.interrupted,
        calls=tuple(sorted(calls.items())),
        failed=tuple(f"{one.function}: {one.error}" for one in world.runtime.records if one.outcome != "ok"),
    )


def sampled(world: WeekWorld, ideal: Ideal | None = None) -> Sample:
    """Answer the counts of now."""
    pods = world.live.pods(NAMESPACE)
    ours = [node for node in world.live.api.list("nodes") if is_ours(node)]
    return Sample(
        at=world.clock.now(),
        nodes=len(ours),
        vcpus=sum(vcpus_of(node) for node in ours),
        running=sum(is_running(pod) for pod in pods),
        waiting=sum("nodeName" not in pod["spec"] and "deletionTimestamp" not in pod["metadata"] for pod in pods),
        usd_per_hour=round(world.cloud.hourly_cost(), 4),
        ideal=ideal,
    )
