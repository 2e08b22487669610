"""Bursty batch: bursts of finite Jobs that run for minutes to hours, and a few services.

A burst is a number of Jobs that start within some minutes. Most of them run on spot; a third must not be disrupted.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from sim.cloud.seeded_random import draw_duration, draw_fraction
from sim.soak.worlds.churn import (
    ONE_DAY,
    ChurnEvent,
    build_image_release,
    build_interruptions,
    build_service_deployments,
    count_days,
    sort_events,
)
from sim.soak.worlds.mixed import NODE_POOLS
from sim.soak.worlds.soak_workloads import SERVICES_POOL, SPOT_POOL, ServiceWorkload, build_job, scale_services
from sim.soak.worlds.world_definition import WorldDefinition

INTERRUPTIONS_PER_DAY: Final = 4
BURSTS_PER_DAY: Final = 16
BURST_DURATION: Final = timedelta(minutes=20)
"""Within this time, the Jobs of a burst start."""
MAX_JOBS_PER_BURST: Final = 6
MAX_PODS_PER_JOB: Final = 40
MIN_RUN_DURATION: Final = timedelta(minutes=3)
MAX_RUN_DURATION: Final = timedelta(hours=5)
GUARDED_RATIO: Final = 1 / 3
ON_DEMAND_RATIO: Final = 1 / 4
SHAPES: Final = ((500, 1024), (1000, 1536), (1000, 4096), (1500, 2048), (2000, 12288), (3500, 6144))
"""Millicores and MiB of the pods of a Job."""
SERVICE_WORKLOADS: Final = (
    ServiceWorkload(name="queue", cpu_milli=500, memory_mib=2048, replicas=(3, 3), pod_budget={"maxUnavailable": 1}),
    ServiceWorkload(name="gateway", cpu_milli=250, memory_mib=512, replicas=(4, 4), pod_budget={"minAvailable": "50%"}),
    ServiceWorkload(name="results", cpu_milli=1000, memory_mib=3072, replicas=(2, 2)),
)


def build_churn(days: float, seed: int, size: float = 1.0) -> tuple[ChurnEvent, ...]:
    """Return all events of *days* days in order; *size* scales the number of pods of each Job."""
    end = ONE_DAY * days
    events = [*build_image_release(end)]
    for service in SERVICE_WORKLOADS:
        events += build_service_deployments(service.name, end, seed)
    for day in range(count_days(days)):
        events += build_interruptions(day, seed, INTERRUPTIONS_PER_DAY)
        for burst in range(BURSTS_PER_DAY):
            events += _build_burst(day, burst, seed, size)
    return sort_events(events, end)


def _list_services(size: float, seed: int) -> tuple[ServiceWorkload, ...]:
    del seed
    return scale_services(SERVICE_WORKLOADS, size)


def _build_burst(day: int, burst: int, seed: int, size: float) -> Iterator[ChurnEvent]:
    burst_words = (seed, "burst", day, burst)
    started_after = day * ONE_DAY + draw_duration(timedelta(), ONE_DAY, *burst_words)
    for number in range(1 + int(draw_fraction(*burst_words, "jobs") * MAX_JOBS_PER_BURST)):
        seed_words = (*burst_words, number)
        name = f"batch-{day}-{burst}-{number}"
        pods = max(1, round(size * (1 + draw_fraction(*seed_words, "pods") * (MAX_PODS_PER_JOB - 1))))
        shape = SHAPES[int(draw_fraction(*seed_words, "shape") * len(SHAPES))]
        manifest = build_job(
            name,
            pods,
            _draw_run_duration(*seed_words),
            is_guarded=draw_fraction(*seed_words, "guarded") < GUARDED_RATIO,
            pool=SERVICES_POOL if draw_fraction(*seed_words, "pool") < ON_DEMAND_RATIO else SPOT_POOL,
            requests=shape,
        )
        after = started_after + draw_duration(timedelta(), BURST_DURATION, *seed_words)
        yield ChurnEvent(after=after, kind="apply", name=name, manifest=manifest)


def _draw_run_duration(*seed_words: object) -> timedelta:
    """Return a duration whose logarithm is uniformly distributed: many short Jobs, few long ones."""
    factor: float = (MAX_RUN_DURATION / MIN_RUN_DURATION) ** draw_fraction(*seed_words, "runs")
    return MIN_RUN_DURATION * factor


BATCH_WORLD: Final = WorldDefinition(
    name="batch",
    description="bursts of Jobs that run for 3m to 5h, few services, spot interruptions",
    node_pools=NODE_POOLS,
    list_services=_list_services,
    build_churn=build_churn,
)
