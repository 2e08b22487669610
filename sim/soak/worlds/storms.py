"""Storms of spot interruptions: for some hours, EC2 interrupts instances of one family in one zone again and again.

Most services run on spot. A storm hits an offering whether there are instances of it or not, so a policy that leaves
the offering for as long as the storm lasts has fewer interruptions.
"""

from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from typing import Final

from msgspec.structs import replace

from sim.cloud.seeded_random import draw_duration, draw_fraction
from sim.soak.worlds import steady
from sim.soak.worlds.churn import (
    ONE_DAY,
    ONE_HOUR,
    ChurnEvent,
    build_image_release,
    build_interruptions,
    build_service_deployments,
    count_days,
    sort_events,
)
from sim.soak.worlds.mixed import NODE_POOLS
from sim.soak.worlds.soak_workloads import SERVICES_POOL, SPOT_POOL, ServiceWorkload
from sim.soak.worlds.world_definition import WorldDefinition

FAMILIES: Final = ("c6i", "m6i", "r6i")
ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")
STORMS_PER_DAY: Final = 6
STORM_DURATION: Final = 8 * ONE_HOUR
INTERRUPTION_INTERVAL: Final = timedelta(minutes=20)
"""Within a storm: the mean time between two interruptions."""
INTERRUPTIONS_PER_DAY: Final = 2
"""Outside of storms, of any instance."""


def build_churn(days: float, seed: int, size: float = 1.0) -> tuple[ChurnEvent, ...]:
    """Return all events of *days* days in order."""
    end = ONE_DAY * days
    events = [*build_image_release(end)]
    for service in list_services(size, seed):
        events += build_service_deployments(service.name, end, seed)
    for day in range(count_days(days)):
        events += [*build_interruptions(day, seed, INTERRUPTIONS_PER_DAY), *_build_storms(day, seed)]
    return sort_events(events, end)


def list_services(size: float, seed: int) -> tuple[ServiceWorkload, ...]:
    """Return the services of the world `steady`; all but those that must not be disrupted run on spot."""
    return tuple(
        replace(service, pool=SERVICES_POOL if service.annotations else SPOT_POOL)
        for service in steady.list_services(size, seed)
    )


def _build_storms(day: int, seed: int) -> Iterator[ChurnEvent]:
    """Yield the interruptions of the storms that begin on *day*."""
    offerings = [*product(FAMILIES, ZONES)]
    for number in range(STORMS_PER_DAY):
        seed_words = (seed, "storm", day, number)
        family, zone = offerings[int(draw_fraction(*seed_words, "offering") * len(offerings))]
        begins_after = day * ONE_DAY + draw_duration(timedelta(), ONE_DAY, *seed_words)
        for position in range(int(STORM_DURATION / INTERRUPTION_INTERVAL)):
            event_words = (*seed_words, position)
            delay = draw_duration(timedelta(), INTERRUPTION_INTERVAL, *event_words)
            yield ChurnEvent(
                after=begins_after + position * INTERRUPTION_INTERVAL + delay,
                kind="interrupt",
                name=f"{family} {zone}",
                position=draw_fraction(*event_words, "which"),
            )


STORMS_WORLD: Final = WorldDefinition(
    name="storms",
    description="services with constant load on spot, storms of spot interruptions in some offerings",
    node_pools=NODE_POOLS,
    list_services=list_services,
    build_churn=build_churn,
)
