"""CloudWatch metrics as embedded metric format lines, made by Powertools; nothing is called, the log carries them.

A metric costs by the hour in which it is sent, by name and by set of dimensions, whoever looks at it. So the few that
an alarm or the dashboard needs are published, by cluster, and what rarely happens only when it does; all counts, by
function, are in the journal and its log lines.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from shared.ports import World

NAMESPACE: Final = "Joiner"
STEADY: Final = frozenset({"FleetUsdPerHour", "ManagedNodes", "OpenCommands", "PendingPods", "PriceAgeSeconds"})
"""Published every time."""
RARE: Final = frozenset(
    {
        "DisruptionPauses",
        "FailedActions",
        "Faults",
        "HeldRepairs",
        "LaunchBreakerTrips",
        "LaunchFailures",
        "LeaksEnded",
        "RepairedNodes",
        "RolledBackCommands",
        "SavedUsdPerHour",
        "Throttles",
        "UnschedulablePods",
    }
)
"""Published when it is not zero: no alarm takes silence for a fault."""


def emit(counts: Mapping[str, float], world: World, by_zone: Iterable[tuple[str, int]] = ()) -> None:
    """Write one EMF line of those *counts* that are published; a name that ends in Seconds or PerHour says its unit.

    *by_zone*: the pods that can be in one zone only, by it; a line for each.
    """
    published = {name: amount for name, amount in counts.items() if name in STEADY or (amount and name in RARE)}
    if published:
        _write({}, published, world)
    for zone, pods in by_zone:
        _write({"zone": zone}, {"PendingPodsByEffectiveZone": float(pods)}, world)


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
        unit = MetricUnit.Seconds if name.endswith("Seconds") else MetricUnit.Count
        metrics.add_metric(name=name, unit=MetricUnit.NoUnit if name.endswith("PerHour") else unit, value=amount)
    world.emit(json.dumps(metrics.serialize_metric_set(), sort_keys=True))
