"""CloudWatch metrics as embedded metric format lines, made by Powertools; nothing is called, the log carries them."""

import json
from collections.abc import Mapping
from typing import Final

from shared.ports import World

NAMESPACE: Final = "Joiner"


def emit(function: str, counts: Mapping[str, float], world: World) -> None:
    """Write one EMF line of *counts*; a name that ends in Seconds or UsdPerHour says its unit."""
    if not counts:
        return
    from aws_lambda_powertools.metrics import (  # noqa: PLC0415 - a cycle begins sooner without
        EphemeralMetrics,
        MetricUnit,
    )

    metrics = EphemeralMetrics(namespace=NAMESPACE, service="joiner")
    metrics.add_dimension(name="cluster", value=world.settings.cluster_name)
    metrics.add_dimension(name="function", value=function)
    metrics.timestamp = round(world.clock().timestamp() * 1000)  # its setter compares with the machine's own clock
    for name, value in sorted(counts.items()):
        unit = MetricUnit.Seconds if name.endswith("Seconds") else MetricUnit.Count
        metrics.add_metric(name=name, unit=MetricUnit.NoUnit if name.endswith("PerHour") else unit, value=value)
    world.emit(json.dumps(metrics.serialize_metric_set(), sort_keys=True))
