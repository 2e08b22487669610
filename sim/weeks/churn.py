"""What happens in a simulated week, and when: nothing but a function of its length and a seed.

A service's replicas follow the hour, less so at the weekend, with some noise; like an autoscaler of pods, nobody
touches them for a change below a tenth. Each service is deployed anew every other day. Jobs come by night and, fewer,
by day; a campaign is a Deployment of some hours. Spot machines are taken away by chance, and half-way there are new
images.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from math import cos, pi
from typing import Final, Literal

import msgspec

from sim.clock import START
from sim.cloud.chance import between, share
from sim.weeks.workloads import SATURDAY, SERVICES, Json, Service, deployment, fleet, job

Kind = Literal["scale", "deploy", "apply", "delete", "interrupt", "release"]
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
SCALED_EVERY: Final = timedelta(minutes=10)
WEEKEND: Final = 0.6
NOISE: Final = 0.12
TOLERANCE: Final = 0.1
"""A change below this part of the replicas is none."""
JOBS: Final = (1, 2, 3, 4, 5, 9, 12, 16, 21, 23)
"""Hours at which one begins."""
INTERRUPTIONS: Final = 3
"""A day."""
CAMPAIGN: Final = Service(name="campaign", pool=SERVICES, cpu_milli=750, memory_mib=1536, low=4, high=14)


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happens."""

    after: timedelta
    """From the beginning."""
    kind: Kind
    name: str = ""
    replicas: int = 0
    chance: float = 0.0
    """Which spot machine is struck, as a part of all there are."""
    manifest: Json | None = None


def happenings(days: float, seed: int, size: float = 1.0) -> tuple[Happening, ...]:
    """Answer all that happens within *days*, in order, where services and jobs have such a part of their pods."""
    end = DAY * days
    found = [*_images(end), *(one for service in fleet(size) for one in _life(service, end, seed))]
    for day in range(int(-(-end // DAY))):
        found += [*_jobs(day, seed, size), *_interruptions(day, seed), *_campaign(day, seed, size)]
    return tuple(sorted((one for one in found if one.after < end), key=lambda one: (one.after, one.kind, one.name)))


def wanted(service: Service, now: datetime, seed: int) -> int:
    """Answer how many replicas the load of *now* asks for."""
    hour = now.hour + now.minute / 60
    level = (1 + cos((hour - service.peak) / 12 * pi)) / 2
    level *= WEEKEND if now.weekday() >= SATURDAY else 1.0
    level += NOISE * (share(seed, "load", service.name, now) - 0.5)
    return round(service.low + (service.high - service.low) * min(1.0, max(0.0, level)))


def _life(service: Service, end: timedelta, seed: int) -> Iterator[Happening]:
    """Iterate over its scalings and deploys."""
    replicas = service.low
    after = between(timedelta(), SCALED_EVERY, seed, "phase", service.name)
    while after < end:
        target = wanted(service, START + after, seed)
        if abs(target - replicas) > TOLERANCE * replicas:
            replicas = target
            yield Happening(after=after, kind="scale", name=service.name, replicas=replicas)
        after += SCALED_EVERY
    first = share(seed, "deploy", service.name)
    for number in range(int(end / DAY) + 1):
        if (number + round(first)) % 2 == 0:
            at = number * DAY + between(timedelta(), 9 * HOUR, seed, "deploy", service.name, number)
            yield Happening(after=at, kind="deploy", name=service.name)


def _jobs(day: int, seed: int, size: float) -> Iterator[Happening]:
    for hour in JOBS:
        words = (seed, "job", day, hour)
        at = day * DAY + _until(hour) + between(timedelta(), HOUR, *words)
        runs = between(timedelta(minutes=4), timedelta(minutes=50), *words, "runs")
        pods = 1 + round(size * (1 + share(*words, "pods") * 12))
        made = job(f"job-{day}-{hour}", pods, runs, is_guarded=share(*words, "guarded") < 1 / 3)
        yield Happening(after=at, kind="apply", name=made["metadata"]["name"], manifest=made)


def _interruptions(day: int, seed: int) -> Iterator[Happening]:
    for number in range(INTERRUPTIONS):
        words = (seed, "interruption", day, number)
        yield Happening(
            after=day * DAY + between(timedelta(), DAY, *words), kind="interrupt", chance=share(*words, "which")
        )


def _campaign(day: int, seed: int, size: float) -> Iterator[Happening]:
    words = (seed, "campaign", day)
    if share(*words) < 1 / 2:
        return
    service = msgspec.structs.replace(CAMPAIGN, name=f"campaign-{day}")
    replicas = max(1, round(size * (service.low + share(*words, "size") * (service.high - service.low))))
    begins = day * DAY + between(2 * HOUR, 16 * HOUR, *words, "begins")
    lasts = between(HOUR, 6 * HOUR, *words, "lasts")
    yield Happening(after=begins, kind="apply", name=service.name, manifest=deployment(service, replicas))
    yield Happening(after=begins + lasts, kind="delete", name=service.name)


def _images(end: timedelta) -> Iterator[Happening]:
    yield Happening(after=end / 2, kind="release")


def _until(hour: int) -> timedelta:
    """Answer how long after the beginning of a simulated day it is *hour* o'clock."""
    return timedelta(hours=(hour - START.hour) % 24)
