"""Churn of a simulated week: events as a function of the length and a seed, and parts that several worlds have."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final, Literal

import msgspec

from sim.cloud.seeded_random import draw_duration, draw_fraction
from sim.time.virtual_clock import DEFAULT_START_TIME
from sim.world.manifests import Json

ChurnKind = Literal["scale", "deploy", "apply", "delete", "interrupt", "release"]
ONE_HOUR: Final = timedelta(hours=1)
ONE_DAY: Final = timedelta(days=1)


class ChurnEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of the churn."""

    after: timedelta
    """From the start of the simulation."""
    kind: ChurnKind
    name: str = ""
    """Of the Deployment; of an interruption: instance family and zone, "" for any."""
    replicas: int = 0
    position: float = 0.0
    """In [0, 1): selects the interrupted spot instance among all."""
    manifest: Json | None = None


def sort_events(events: Iterable[ChurnEvent], end: timedelta) -> tuple[ChurnEvent, ...]:
    """Return the *events* before *end* in order."""
    return tuple(
        sorted(
            (event for event in events if event.after < end), key=lambda event: (event.after, event.kind, event.name)
        )
    )


def count_days(days: float) -> int:
    """Return the number of days that begin within *days* days."""
    return int(-(-(ONE_DAY * days) // ONE_DAY))


def build_service_deployments(name: str, end: timedelta, seed: int) -> Iterator[ChurnEvent]:
    """Yield the deployments of a service: every other day, in the first nine hours of the simulated day."""
    deployment_phase = draw_fraction(seed, "deploy", name)
    for number in range(int(end / ONE_DAY) + 1):
        if (number + round(deployment_phase)) % 2 == 0:
            at = number * ONE_DAY + draw_duration(timedelta(), 9 * ONE_HOUR, seed, "deploy", name, number)
            yield ChurnEvent(after=at, kind="deploy", name=name)


def build_interruptions(day: int, seed: int, per_day: int) -> Iterator[ChurnEvent]:
    """Yield *per_day* spot interruptions at random times of *day*."""
    for number in range(per_day):
        seed_words = (seed, "interruption", day, number)
        yield ChurnEvent(
            after=day * ONE_DAY + draw_duration(timedelta(), ONE_DAY, *seed_words),
            kind="interrupt",
            position=draw_fraction(*seed_words, "which"),
        )


def build_image_release(end: timedelta) -> Iterator[ChurnEvent]:
    """Yield the release of new images in the middle of the simulation."""
    yield ChurnEvent(after=end / 2, kind="release")


def compute_delay_until(hour: int) -> timedelta:
    """Return the time from the start of a simulated day to the hour *hour*."""
    return timedelta(hours=(hour - DEFAULT_START_TIME.hour) % 24)
