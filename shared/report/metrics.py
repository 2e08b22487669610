"""CloudWatch metrics as embedded metric format lines, made by Powertools; nothing is called, the log carries them."""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from shared.ports import World

NAMESPACE: Final = "Joiner"


def emit(function: str, counts: Mapping[str, float], world: World, by_zone: Iterable[tuple[str, int]] = ()) -> None:
    """Write one EMF line of *counts*; a name that ends in Seconds or UsdPerHour says its unit.

    *by_zone*: the pods that can be in one zone only, by it; a line for each.
    """
    if counts:
        _write({"function": function}, counts, world)
    for zone, pods in by_zone:
        _write({"function": function, "zone": zone}, {"PendingPodsByEffectiveZone": float(pods)}, world)


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
