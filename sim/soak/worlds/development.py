"""A development cluster: many small Deployments with one replica that scale to zero overnight and at weekends.

Each developer works at own hours. A Deployment is deployed again several times in a working day, and one of six runs
all the time.
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
    compute_delay_until,
    count_days,
    sort_events,
)
from sim.soak.worlds.soak_workloads import (
    DO_NOT_DISRUPT,
    SATURDAY_INDEX,
    SERVICES_POOL,
    PoolBudget,
    ServiceWorkload,
    SoakNodePool,
)
from sim.soak.worlds.world_definition import WorldDefinition
from sim.time.virtual_clock import DEFAULT_START_TIME

DEPLOYMENT_COUNT: Final = 140
"""At size 1."""
EARLIEST_HOUR: Final = 6
LATEST_HOUR: Final = 10
WORKING_HOURS: Final = (7 * ONE_HOUR, 11 * ONE_HOUR)
"""The shortest and the longest working day."""
MAX_DEPLOYMENTS_PER_DAY: Final = 3
SHAPES: Final = ((100, 256), (200, 512), (250, 1024), (500, 1024), (500, 2048), (1000, 2048), (1000, 4096))
NODE_POOLS: Final = (
    SoakNodePool(
        name=SERVICES_POOL,
        capacity_types=("on-demand",),
        policy="WhenEmptyOrUnderutilized",
        consolidate_after="1m",
        budgets=(PoolBudget(percent=30), PoolBudget(count=2, reasons=("Drifted",))),
    ),
)


def build_churn(days: float, seed: int, size: float = 1.0) -> tuple[ChurnEvent, ...]:
    """Return all events of *days* days in order."""
    end = ONE_DAY * days
    events = [*build_image_release(end)]
    for number, service in enumerate(list_services(size, seed)):
        if not _is_always_on(number):
            for day in range(count_days(days)):
                events += _build_working_day(service, day, seed)
    return sort_events(events, end)


def list_services(size: float, seed: int) -> tuple[ServiceWorkload, ...]:
    """Return the Deployments; at the start, a Saturday, most of them have no replica."""
    return tuple(_build_service(number, seed) for number in range(max(2, round(size * DEPLOYMENT_COUNT))))


def _is_always_on(number: int) -> bool:
    return number % 6 == 0


def _build_service(number: int, seed: int) -> ServiceWorkload:
    cpu_milli, memory_mib = SHAPES[int(draw_fraction(seed, "development", number) * len(SHAPES))]
    replicas = int(_is_always_on(number))
    return ServiceWorkload(
        name=f"dev-{number:03}",
        cpu_milli=cpu_milli,
        memory_mib=memory_mib,
        replicas=(replicas, replicas),
        pod_budget={"maxUnavailable": 1} if number % 5 == 1 else {},
        annotations=DO_NOT_DISRUPT if number % 17 == 3 else (),  # noqa: PLR2004 - one of seventeen
    )


def _build_working_day(service: ServiceWorkload, day: int, seed: int) -> Iterator[ChurnEvent]:
    """Yield a scale-up in the morning, deployments, and a scale-down in the evening of a working day."""
    seed_words = (seed, "workday", service.name, day)
    morning = day * ONE_DAY + compute_delay_until(EARLIEST_HOUR)
    if (DEFAULT_START_TIME + morning).weekday() >= SATURDAY_INDEX:
        return
    started_after = morning + draw_duration(
        timedelta(), (LATEST_HOUR - EARLIEST_HOUR) * ONE_HOUR, *seed_words, "starts"
    )
    working_time = draw_duration(*WORKING_HOURS, *seed_words, "works")
    yield ChurnEvent(after=started_after, kind="scale", name=service.name, replicas=1)
    for number in range(int(draw_fraction(*seed_words, "deployments") * (MAX_DEPLOYMENTS_PER_DAY + 1))):
        at = started_after + draw_duration(timedelta(), working_time, *seed_words, "deploys", number)
        yield ChurnEvent(after=at, kind="deploy", name=service.name)
    yield ChurnEvent(after=started_after + working_time, kind="scale", name=service.name, replicas=0)


DEVELOPMENT_WORLD: Final = WorldDefinition(
    name="development",
    description="Deployments with one replica that scale to zero overnight and at weekends",
    node_pools=NODE_POOLS,
    list_services=list_services,
    build_churn=build_churn,
)
