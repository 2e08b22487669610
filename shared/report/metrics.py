"""CloudWatch metrics as embedded metric format lines, made by Powertools; nothing is called, the log carries them.

A metric costs $0.30 for a month in which it is sent every hour, by name and by set of dimensions, whoever looks at it.
So those that an alarm needs are published, when there is something in them, unless `joiner:metrics` asks for all; every
count of every cycle is in its log line and in the journal, where Logs Insights and the dashboard read them for nothing.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from shared.ports import World

NAMESPACE: Final = "Joiner"
BY_ZONE: Final = "PendingPodsByEffectiveZone"
"""Has a dimension more than the others."""
PRICE_AGE: Final = "PriceAgeSeconds"
ALARMED: Final = frozenset(
    {
        "DisruptionPauses",
        "Faults",
        "LaunchBreakerTrips",
        "LaunchFailures",
        "LeaksEnded",
        PRICE_AGE,
        "Throttles",
    }
)
"""What alarms read; published when it is not zero: no alarm takes silence for a fault."""
STEADY: Final = frozenset(
    {"CatalogueAgeSeconds", "FleetUsdPerHour", "ManagedNodes", "OpenCommands", "PendingPods", PRICE_AGE}
)
"""Where all are wanted, these are published every time: that they are zero says something too."""
RARE: Final = ALARMED | {
    "FailedActions",
    "HeldRepairs",
    "InterruptedNodes",
    "LaunchWaitSecondsP50",
    "LaunchWaitSecondsP95",
    "RepairedNodes",
    "RolledBackCommands",
    "SavedUsdPerHour",
    "StartSecondsP50",
    "StartSecondsP95",
    "StartedPods",
    "UnschedulablePods",
}
EVERY: Final = STEADY | RARE | {BY_ZONE}
PRICES_OLD: Final = timedelta(hours=13)
"""They are asked for twice a day: until then their age is nothing that an alarm needs to know."""


def emit(counts: Mapping[str, float], world: World, by_zone: Iterable[tuple[str, int]] = ()) -> None:
    """Write one EMF line of those *counts* that are published; a name that has Seconds or PerHour says its unit.

    *by_zone*: the pods that can be in one zone only, by it; a line for each, where all metrics are wanted.
    """
    wants_all = world.settings.metrics == "all"
    published = {name: amount for name, amount in counts.items() if _is_published(name, amount, wants_all=wants_all)}
    if published:
        _write({}, published, world)
    for zone, pods in by_zone if wants_all else ():
        _write({"zone": zone}, {BY_ZONE: float(pods)}, world)


def _is_published(name: str, amount: float, *, wants_all: bool) -> bool:
    if wants_all:
        return name in STEADY or (bool(amount) and name in RARE)
    least = PRICES_OLD.total_seconds() if name == PRICE_AGE else 0.0
    return name in ALARMED and amount > least


def _write(dimensions: Mapping[str, str], counts: Mapping[str, float], world: World) -> None:
    from aws_lambda_powertools.metrics import (  # noqa: PLC0415 - a cycle begins sooner without
        EphemeralMetrics,
        MetricUnit,
    )

    metrics = EphemeralMetrics(namespace=NAMESPACE, service="joiner")
    metrics.add_dimension(name="cluster", value=world.settings.cluster_name)
    for name, value in dimensions.items():
        metrics.add_dimension(name=name, value=value)
    metrics.timestamp = round(world.clock().timestamp() * 1000)  # its setter compares with the machine's own clock
    for name, amount in sorted(counts.items()):
        unit = MetricUnit.Seconds if "Seconds" in name else MetricUnit.Count
        metrics.add_metric(name=name, unit=MetricUnit.NoUnit if name.endswith("PerHour") else unit, value=amount)
    world.emit(json.dumps(metrics.serialize_metric_set(), sort_keys=True))
