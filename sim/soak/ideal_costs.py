"""Cost of an ideal repacking in each hour of a simulated week: all pods on new nodes.

It depends on the churn only, so it is computed once and compared with all policies: no node is launched, and the pods
of each instant are planned from nothing. The pods of a Job exist for as long as they run, from `START_DELAY` after the
Job is created.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Final

import msgspec

from sim.cluster.kubelet.pod_stages import RUN_SECONDS_ANNOTATION
from sim.soak.soak_world import IdealCost, SoakWorld
from sim.soak.worlds.churn import ONE_DAY, ONE_HOUR, ChurnEvent
from sim.soak.worlds.soak_workloads import DEPLOYMENT_RESOURCE, JOB_RESOURCE, NAMESPACE
from sim.soak.worlds.world_definition import WorldDefinition

PREPARATION_DELAY: Final = timedelta(minutes=10)
"""Until NodePools and catalog are ready."""
START_DELAY: Final = timedelta(minutes=1)
SETTLING_DELAY: Final = timedelta(seconds=5)
"""Until the controllers have created the pods of an event."""
HOURS_PER_BOUND: Final = 24
"""One of this many ideal costs has a lower bound too: it takes half a minute for about fifty pods."""


def compute_ideal_costs(
    definition: WorldDefinition,
    days: float,
    seed: int,
    size: float,
    *,
    has_bounds: bool = False,
    on_hour: Callable[[timedelta], None] = lambda _: None,
) -> tuple[IdealCost, ...]:
    """Return the ideal cost of every hour of the week, the first one at its start."""
    world = SoakWorld(seed)
    world.apply(definition.build_manifests(size, seed))
    _remove_workloads(world)
    world.run(PREPARATION_DELAY - SETTLING_DELAY)
    world.runtime.stop()
    world.apply(manifest for manifest in definition.build_manifests(size, seed) if manifest["kind"] == "Deployment")
    world.run(SETTLING_DELAY)
    started_at, costs = world.clock.get_time(), list[IdealCost]()
    events = list(_add_job_ends(definition.build_churn(days, seed, size)))
    for hour in range(int(-(-(ONE_DAY * days) // ONE_HOUR))):
        while events and events[0].after <= hour * ONE_HOUR:
            _apply_event(world, events.pop(0))
        world.clock.run_until(started_at + hour * ONE_HOUR + SETTLING_DELAY)
        world.runtime.invoke("catalog", {})
        costs.append(world.compute_ideal_cost(bounded=has_bounds and hour % HOURS_PER_BOUND == 0))
        on_hour(hour * ONE_HOUR)
    return tuple(costs)


def _remove_workloads(world: SoakWorld) -> None:
    for deployment in world.cluster.api.list(DEPLOYMENT_RESOURCE, NAMESPACE):
        world.cluster.api.delete(DEPLOYMENT_RESOURCE, deployment["metadata"]["name"], NAMESPACE)


def _add_job_ends(events: Iterable[ChurnEvent]) -> Iterator[ChurnEvent]:
    """Yield *events* in order, with a deletion where a Job completes."""
    job_ends = []
    ordered_events = list(events)
    for event in ordered_events:
        if event.manifest is not None and event.manifest["kind"] == "Job":
            annotations = event.manifest["spec"]["template"]["metadata"]["annotations"]
            run_duration = timedelta(seconds=int(annotations[RUN_SECONDS_ANNOTATION]))
            job_ends.append(ChurnEvent(after=event.after + START_DELAY + run_duration, kind="delete", name=event.name))
    yield from sorted((*ordered_events, *job_ends), key=lambda event: (event.after, event.kind, event.name))


def _apply_event(world: SoakWorld, event: ChurnEvent) -> None:
    """Apply *event* if it changes which pods there are."""
    job_names = {job["metadata"]["name"] for job in world.cluster.api.list(JOB_RESOURCE, NAMESPACE)}
    if event.kind == "delete" and event.name in job_names:
        world.cluster.api.delete(JOB_RESOURCE, event.name, NAMESPACE)
    elif event.kind in ("scale", "apply", "delete"):
        world.apply_event(event)


def compute_mean_cost(costs: Iterable[float]) -> float:
    """Return the mean of *costs*, 0 if there are none."""
    values = list(costs)
    return sum(values) / len(values) if values else 0.0


class IdealFigures(msgspec.Struct, frozen=True, kw_only=True, tag="ideal"):
    """The ideal costs of a week, as stored in a file of results."""

    world: str
    days: float
    seed: int
    size: float
    usd_per_hour: float
    """Mean of all hours."""
    disruptable_usd_per_hour: float = 0.0
    """The same without the pods that have `do-not-disrupt`; 0 if unknown."""
    bound_usd_per_hour: float | None = None
    """Mean lower bound, computed daily; None: not computed."""
    over_bound_percent: float | None = None
    """How far the ideal costs of the same instants are above the lower bounds."""
    hourly: tuple[float, ...]
    cpu_seconds: float = 0.0

    @property
    def key(self) -> tuple[str, str, float, int, float]:
        """Identifies the computation."""
        return self.world, "", self.days, self.seed, self.size


def build_ideal_figures(
    world: str, days: float, seed: int, size: float, costs: Iterable[IdealCost], cpu_seconds: float
) -> IdealFigures:
    """Return the figures of *costs*."""
    hourly_costs = list(costs)
    bounded_costs = [(cost.repacked, cost.bound) for cost in hourly_costs if cost.bound is not None]
    bound = compute_mean_cost(bound for _, bound in bounded_costs)
    ratio = compute_mean_cost(repacked for repacked, _ in bounded_costs) / bound if bound else None
    return IdealFigures(
        world=world,
        days=days,
        seed=seed,
        size=size,
        usd_per_hour=round(compute_mean_cost(cost.repacked for cost in hourly_costs), 4),
        disruptable_usd_per_hour=round(compute_mean_cost(cost.disruptable for cost in hourly_costs), 4),
        bound_usd_per_hour=round(bound, 4) if bounded_costs else None,
        over_bound_percent=round(100 * (ratio - 1), 2) if ratio is not None else None,
        hourly=tuple(cost.repacked for cost in hourly_costs),
        cpu_seconds=round(cpu_seconds, 1),
    )
