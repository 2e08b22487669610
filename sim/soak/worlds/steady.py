"""Steady services: replicas vary by a few per cent around a constant, and services are deployed again every other day.

There is no daily cycle: what consolidation can save is what deployments, interruptions and noise leave behind.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from sim.cloud.seeded_random import draw_duration, draw_fraction
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
from sim.soak.worlds.soak_workloads import DO_NOT_DISRUPT, SERVICES_POOL, SPOT_POOL, ServiceWorkload, scale_services
from sim.soak.worlds.world_definition import WorldDefinition

INTERRUPTIONS_PER_DAY: Final = 2
NOISE_INTERVAL: Final = 2 * ONE_HOUR
"""How often the noise of a service can change its replicas."""
CHANGE_RATIO: Final = 0.4
"""Probability of a change in an interval."""
NOISE_RATIO: Final = 0.1
SHAPES: Final = ((250, 512), (500, 1024), (500, 2048), (1000, 2048), (1000, 4096), (1500, 3072), (2000, 8192))
"""Millicores and MiB of the services, in turn."""
SERVICE_COUNT: Final = 22
POD_BUDGETS: Final[tuple[dict[str, int | str], ...]] = (
    {"maxUnavailable": 1},
    {"minAvailable": "75%"},
    {"maxUnavailable": "25%"},
    {},
)


def build_churn(days: float, seed: int, size: float = 1.0) -> tuple[ChurnEvent, ...]:
    """Return all events of *days* days in order."""
    end = ONE_DAY * days
    events = [*build_image_release(end)]
    for service in list_services(size, seed):
        events += [*_build_noise(service, end, seed), *build_service_deployments(service.name, end, seed)]
    for day in range(count_days(days)):
        events += build_interruptions(day, seed, INTERRUPTIONS_PER_DAY)
    return sort_events(events, end)


def list_services(size: float, seed: int) -> tuple[ServiceWorkload, ...]:
    """Return the services: a quarter runs on spot, one of eleven must not be disrupted, one of six is spread."""
    return scale_services((_build_service(number, seed) for number in range(SERVICE_COUNT)), size)


def _build_service(number: int, seed: int) -> ServiceWorkload:
    replicas = 2 + int(draw_fraction(seed, "steady", number) * 8)
    cpu_milli, memory_mib = SHAPES[number % len(SHAPES)]
    is_guarded = number % 11 == 10  # noqa: PLR2004 - the last of eleven
    return ServiceWorkload(
        name=f"service-{number:02}",
        pool=SPOT_POOL if number % 4 == 1 else SERVICES_POOL,
        cpu_milli=cpu_milli,
        memory_mib=memory_mib,
        replicas=(replicas, replicas),
        pod_budget=POD_BUDGETS[number % len(POD_BUDGETS)],
        annotations=DO_NOT_DISRUPT if is_guarded else (),
        is_spread=number % 6 == 2,  # noqa: PLR2004 - one of six
    )


def _build_noise(service: ServiceWorkload, end: timedelta, seed: int) -> Iterator[ChurnEvent]:
    usual_replicas = service.replicas[0]
    replicas = usual_replicas
    after = draw_duration(timedelta(), NOISE_INTERVAL, seed, "noise", service.name)
    while after < end:
        seed_words = (seed, "noise", service.name, after)
        if draw_fraction(*seed_words) < CHANGE_RATIO:
            largest_change = max(1, round(NOISE_RATIO * usual_replicas))
            change = round((2 * draw_fraction(*seed_words, "change") - 1) * largest_change)
            target = max(1, usual_replicas + change)
            if target != replicas:
                replicas = target
                yield ChurnEvent(after=after, kind="scale", name=service.name, replicas=replicas)
        after += NOISE_INTERVAL


STEADY_WORLD: Final = WorldDefinition(
    name="steady",
    description="services with constant load, noise of a few per cent, deployments, spot interruptions",
    node_pools=NODE_POOLS,
    list_services=list_services,
    build_churn=build_churn,
)
