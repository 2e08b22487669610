"""A mixed cluster: services with a daily cycle, jobs, campaigns, spot interruptions, new images.

The replicas of a service follow the time of day, less at weekends, with some noise; like a pod autoscaler, they are not
changed for a difference below 10 %. Each service is deployed again every other day. Jobs run mainly at night; a
campaign is a Deployment that exists for some hours.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from math import cos, pi
from typing import Final

import msgspec

from sim.cloud.seeded_random import draw_duration, draw_fraction
from sim.soak.worlds.churn import (
    ONE_DAY,
    ONE_HOUR,
    ChurnEvent,
    build_image_release,
    build_interruptions,
    build_service_deployments,
    compute_delay_until,
    count_days,
    sort_events,
)
from sim.soak.worlds.soak_workloads import (
    DO_NOT_DISRUPT,
    SATURDAY_INDEX,
    SERVICES_POOL,
    SPOT_POOL,
    PoolBudget,
    ServiceWorkload,
    SoakNodePool,
    build_deployment,
    build_job,
    scale_services,
)
from sim.soak.worlds.world_definition import WorldDefinition
from sim.time.virtual_clock import DEFAULT_START_TIME

SCALING_INTERVAL: Final = timedelta(minutes=10)
WEEKEND_LOAD_RATIO: Final = 0.6
NOISE_RATIO: Final = 0.12
SCALING_TOLERANCE_RATIO: Final = 0.1
"""Replicas are not changed for a smaller relative difference."""
JOB_HOURS: Final = (1, 2, 3, 4, 5, 9, 12, 16, 21, 23)
"""Hours of the day in which a job starts."""
INTERRUPTIONS_PER_DAY: Final = 3
CAMPAIGN: Final = ServiceWorkload(name="campaign", cpu_milli=750, memory_mib=1536, replicas=(4, 14))
NODE_POOLS: Final = (
    SoakNodePool(
        name=SERVICES_POOL,
        capacity_types=("on-demand",),
        policy="WhenEmptyOrUnderutilized",
        consolidate_after="2m",
        budgets=(
            PoolBudget(percent=20),
            PoolBudget(count=2, reasons=("Drifted",)),
            PoolBudget(count=1, reasons=("Underutilized", "Drifted"), in_office_hours=True),
        ),
    ),
    SoakNodePool(
        name=SPOT_POOL,
        capacity_types=("spot",),
        policy="Balanced",
        consolidate_after="30s",
        budgets=(PoolBudget(count=3),),
    ),
)
SERVICE_WORKLOADS: Final = (
    ServiceWorkload(name="web", cpu_milli=500, memory_mib=768, replicas=(16, 60), pod_budget={"maxUnavailable": "10%"}),
    ServiceWorkload(
        name="api", cpu_milli=1000, memory_mib=2048, replicas=(8, 28), peak_hour=14, pod_budget={"minAvailable": "75%"}
    ),
    ServiceWorkload(
        name="search",
        cpu_milli=1500,
        memory_mib=6144,
        replicas=(4, 10),
        peak_hour=20,
        pod_budget={"maxUnavailable": 1},
        is_spread=True,
    ),
    ServiceWorkload(name="cache", cpu_milli=500, memory_mib=3072, replicas=(4, 4), pod_budget={"maxUnavailable": 1}),
    ServiceWorkload(name="ledger", cpu_milli=1000, memory_mib=4096, replicas=(3, 3), annotations=DO_NOT_DISRUPT),
    ServiceWorkload(name="mail", cpu_milli=250, memory_mib=512, replicas=(4, 14), peak_hour=9),
    ServiceWorkload(
        name="worker",
        pool=SPOT_POOL,
        cpu_milli=900,
        memory_mib=1800,
        replicas=(10, 36),
        peak_hour=2,
        pod_budget={"maxUnavailable": "20%"},
    ),
    ServiceWorkload(name="thumbnails", pool=SPOT_POOL, cpu_milli=500, memory_mib=1024, replicas=(4, 20), peak_hour=19),
)


def build_churn(days: float, seed: int, size: float = 1.0) -> tuple[ChurnEvent, ...]:
    """Return all events of *days* days in order; *size* scales the number of pods of services and jobs."""
    end = ONE_DAY * days
    events = [
        *build_image_release(end),
        *(
            event
            for service in scale_services(SERVICE_WORKLOADS, size)
            for event in _build_service_events(service, end, seed)
        ),
    ]
    for day in range(count_days(days)):
        events += [
            *_build_jobs(day, seed, size),
            *build_interruptions(day, seed, INTERRUPTIONS_PER_DAY),
            *_build_campaign(day, seed, size),
        ]
    return sort_events(events, end)


def compute_target_replicas(service: ServiceWorkload, now: datetime, seed: int) -> int:
    """Return how many replicas the load at *now* requires."""
    hour = now.hour + now.minute / 60
    level = (1 + cos((hour - service.peak_hour) / 12 * pi)) / 2
    level *= WEEKEND_LOAD_RATIO if now.weekday() >= SATURDAY_INDEX else 1.0
    level += NOISE_RATIO * (draw_fraction(seed, "load", service.name, now) - 0.5)
    fewest_replicas, most_replicas = service.replicas
    return round(fewest_replicas + (most_replicas - fewest_replicas) * min(1.0, max(0.0, level)))


def list_services(size: float, seed: int) -> tuple[ServiceWorkload, ...]:
    """Return the services; they do not depend on the seed."""
    del seed
    return scale_services(SERVICE_WORKLOADS, size)


def _build_service_events(service: ServiceWorkload, end: timedelta, seed: int) -> Iterator[ChurnEvent]:
    """Yield the scalings and deployments of a service."""
    replicas = service.replicas[0]
    after = draw_duration(timedelta(), SCALING_INTERVAL, seed, "phase", service.name)
    while after < end:
        target = compute_target_replicas(service, DEFAULT_START_TIME + after, seed)
        if abs(target - replicas) > SCALING_TOLERANCE_RATIO * replicas:
            replicas = target
            yield ChurnEvent(after=after, kind="scale", name=service.name, replicas=replicas)
        after += SCALING_INTERVAL
    yield from build_service_deployments(service.name, end, seed)


def _build_jobs(day: int, seed: int, size: float) -> Iterator[ChurnEvent]:
    for hour in JOB_HOURS:
        seed_words = (seed, "job", day, hour)
        at = day * ONE_DAY + compute_delay_until(hour) + draw_duration(timedelta(), ONE_HOUR, *seed_words)
        run_duration = draw_duration(timedelta(minutes=4), timedelta(minutes=50), *seed_words, "runs")
        pods = 1 + round(size * (1 + draw_fraction(*seed_words, "pods") * 12))
        manifest = build_job(
            f"job-{day}-{hour}", pods, run_duration, is_guarded=draw_fraction(*seed_words, "guarded") < 1 / 3
        )
        yield ChurnEvent(after=at, kind="apply", name=manifest["metadata"]["name"], manifest=manifest)


def _build_campaign(day: int, seed: int, size: float) -> Iterator[ChurnEvent]:
    seed_words = (seed, "campaign", day)
    if draw_fraction(*seed_words) < 1 / 2:
        return
    service = msgspec.structs.replace(CAMPAIGN, name=f"campaign-{day}")
    fewest_replicas, most_replicas = service.replicas
    surplus_replicas = draw_fraction(*seed_words, "size") * (most_replicas - fewest_replicas)
    replicas = max(1, round(size * (fewest_replicas + surplus_replicas)))
    started_after = day * ONE_DAY + draw_duration(2 * ONE_HOUR, 16 * ONE_HOUR, *seed_words, "begins")
    duration = draw_duration(ONE_HOUR, 6 * ONE_HOUR, *seed_words, "lasts")
    yield ChurnEvent(after=started_after, kind="apply", name=service.name, manifest=build_deployment(service, replicas))
    yield ChurnEvent(after=started_after + duration, kind="delete", name=service.name)


MIXED_WORLD: Final = WorldDefinition(
    name="mixed",
    description="services with a daily cycle, jobs, campaigns, spot interruptions",
    node_pools=NODE_POOLS,
    list_services=list_services,
    build_churn=build_churn,
)
