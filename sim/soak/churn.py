"""Churn of a simulated week: which events happen when, as a function of the length and a seed only.

The replicas of a service follow the time of day, less at weekends, with some noise; like a pod autoscaler, they are not
changed for a difference below 10 %. Each service is deployed again every other day. Jobs run mainly at night; a
campaign is a Deployment that exists for some hours. Spot instances are interrupted at random times, and new images are
released in the middle of the simulation.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from math import cos, pi
from typing import Final, Literal

import msgspec

from sim.cloud.seeded_random import draw_duration, draw_fraction
from sim.soak.soak_workloads import SATURDAY_INDEX, ServiceWorkload, build_deployment, build_job, scale_services
from sim.time.virtual_clock import DEFAULT_START_TIME
from sim.world.manifests import Json

ChurnKind = Literal["scale", "deploy", "apply", "delete", "interrupt", "release"]
ONE_HOUR: Final = timedelta(hours=1)
ONE_DAY: Final = timedelta(days=1)
SCALING_INTERVAL: Final = timedelta(minutes=10)
WEEKEND_LOAD_RATIO: Final = 0.6
NOISE_RATIO: Final = 0.12
SCALING_TOLERANCE_RATIO: Final = 0.1
"""Replicas are not changed for a smaller relative difference."""
JOB_HOURS: Final = (1, 2, 3, 4, 5, 9, 12, 16, 21, 23)
"""Hours of the day in which a job starts."""
INTERRUPTIONS_PER_DAY: Final = 3
"""Number of spot interruptions per day."""
CAMPAIGN: Final = ServiceWorkload(name="campaign", cpu_milli=750, memory_mib=1536, replicas=(4, 14))


class ChurnEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of the churn."""

    after: timedelta
    """From the start of the simulation."""
    kind: ChurnKind
    name: str = ""
    replicas: int = 0
    position: float = 0.0
    """In [0, 1): selects the interrupted spot instance among all."""
    manifest: Json | None = None


def build_churn(days: float, seed: int, size: float = 1.0) -> tuple[ChurnEvent, ...]:
    """Return all events of *days* days in order; *size* scales the number of pods of services and jobs."""
    end = ONE_DAY * days
    events = [
        *_build_image_release(end),
        *(event for service in scale_services(size) for event in _build_service_events(service, end, seed)),
    ]
    for day in range(int(-(-end // ONE_DAY))):
        events += [*_build_jobs(day, seed, size), *_build_interruptions(day, seed), *_build_campaign(day, seed, size)]
    return tuple(
        sorted(
            (event for event in events if event.after < end), key=lambda event: (event.after, event.kind, event.name)
        )
    )


def compute_target_replicas(service: ServiceWorkload, now: datetime, seed: int) -> int:
    """Return how many replicas the load at *now* requires."""
    hour = now.hour + now.minute / 60
    level = (1 + cos((hour - service.peak_hour) / 12 * pi)) / 2
    level *= WEEKEND_LOAD_RATIO if now.weekday() >= SATURDAY_INDEX else 1.0
    level += NOISE_RATIO * (draw_fraction(seed, "load", service.name, now) - 0.5)
    fewest_replicas, most_replicas = service.replicas
    return round(fewest_replicas + (most_replicas - fewest_replicas) * min(1.0, max(0.0, level)))


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
    deployment_phase = draw_fraction(seed, "deploy", service.name)
    for number in range(int(end / ONE_DAY) + 1):
        if (number + round(deployment_phase)) % 2 == 0:
            at = number * ONE_DAY + draw_duration(timedelta(), 9 * ONE_HOUR, seed, "deploy", service.name, number)
            yield ChurnEvent(after=at, kind="deploy", name=service.name)


def _build_jobs(day: int, seed: int, size: float) -> Iterator[ChurnEvent]:
    for hour in JOB_HOURS:
        seed_words = (seed, "job", day, hour)
        at = day * ONE_DAY + _compute_delay_until(hour) + draw_duration(timedelta(), ONE_HOUR, *seed_words)
        run_duration = draw_duration(timedelta(minutes=4), timedelta(minutes=50), *seed_words, "runs")
        pods = 1 + round(size * (1 + draw_fraction(*seed_words, "pods") * 12))
        manifest = build_job(
            f"job-{day}-{hour}", pods, run_duration, is_guarded=draw_fraction(*seed_words, "guarded") < 1 / 3
        )
        yield ChurnEvent(after=at, kind="apply", name=manifest["metadata"]["name"], manifest=manifest)


def _build_interruptions(day: int, seed: int) -> Iterator[ChurnEvent]:
    for number in range(INTERRUPTIONS_PER_DAY):
        seed_words = (seed, "interruption", day, number)
        yield ChurnEvent(
            after=day * ONE_DAY + draw_duration(timedelta(), ONE_DAY, *seed_words),
            kind="interrupt",
            position=draw_fraction(*seed_words, "which"),
        )


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


def _build_image_release(end: timedelta) -> Iterator[ChurnEvent]:
    yield ChurnEvent(after=end / 2, kind="release")


def _compute_delay_until(hour: int) -> timedelta:
    """Return the time from the start of a simulated day to the hour *hour*."""
    return timedelta(hours=(hour - DEFAULT_START_TIME.hour) % 24)
