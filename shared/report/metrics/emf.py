"""CloudWatch metrics as embedded metric format (EMF) log lines, built with Powertools; no API is called.

A metric costs $0.30 for a month in which it is sent every hour, by name and by set of dimensions, whether it is read or
not. So metrics that an alarm needs are published when they are not zero, unless `metrics` asks for all; every
count of every cycle is in its log line and in the journal, where Logs Insights and the dashboard read them for free.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from shared.ports.world import World

NAMESPACE: Final = "Joiner"
PENDING_PODS_BY_ZONE: Final = "PendingPodsByEffectiveZone"
"""Has one dimension more than the others."""
PRICE_AGE: Final = "PriceAgeSeconds"
MONEY_USED: Final = "MoneyUsedPercent"
"""Used part of the limit in USD per hour that is closest to its end, or of the monthly budget."""
REJECTED_CANARIES: Final = "RejectedCanaries"
"""Images and launch configurations that a canary has rejected, as long as no newer one replaces them."""
REMOTE_WRITE_FAILURES: Final = "RemoteWriteFailures"
"""Cycles whose metrics for Prometheus were not all written."""
ALARM_METRICS: Final = frozenset(
    {
        "AutomaticDisruptionPauses",
        "CycleFailures",
        "LaunchBreakerTrips",
        "LaunchFailures",
        MONEY_USED,
        "OrphanedInstancesTerminated",
        PRICE_AGE,
        REJECTED_CANARIES,
        "ThrottledCalls",
    }
)
"""Metrics that alarms read; published if not zero: alarms treat missing data as healthy."""
GAUGE_METRICS: Final = frozenset(
    {"CatalogAgeSeconds", "FleetUsdPerHour", "ManagedNodes", MONEY_USED, "OpenCommands", "PendingPods", PRICE_AGE}
)
"""If all metrics are enabled, these are published every time: zero is information too."""
NONZERO_METRICS: Final = ALARM_METRICS | {
    "FailedActions",
    "BlockedRepairs",
    "InterruptedNodes",
    "PodLaunchSecondsP50",
    "PodLaunchSecondsP95",
    "RepairedNodes",
    "RolledBackCommands",
    "SavingsUsdPerHour",
    "PodStartupSecondsP50",
    "PodStartupSecondsP95",
    REMOTE_WRITE_FAILURES,
    "StartedPods",
    "UnschedulablePods",
}
ALL_METRICS: Final = GAUGE_METRICS | NONZERO_METRICS | {PENDING_PODS_BY_ZONE}
MAX_PRICE_AGE: Final = timedelta(hours=13)
"""Prices are read twice a day: until this age, no alarm needs the metric."""
MONEY_ALARM_PERCENT: Final = 80
"""Used part of a limit or budget at which the alarm starts."""
_MIN_ALARM_AMOUNTS: Final = {PRICE_AGE: MAX_PRICE_AGE.total_seconds(), MONEY_USED: MONEY_ALARM_PERCENT - 1.0}
"""Metrics that alarms need only above an amount."""


def emit_metrics(counts: Mapping[str, float], world: World, by_zone: Iterable[tuple[str, int]] = ()) -> None:
    """Write one EMF line with the *counts* that are published; the unit follows from Seconds or PerHour in a name.

    *by_zone* are the pending pods that can run in one zone only, by zone; one line for each, if all metrics are
    enabled.
    """
    wants_all = world.settings.metrics == "all"
    published = {name: amount for name, amount in counts.items() if _is_published(name, amount, wants_all=wants_all)}
    if published:
        _write_metrics({}, published, world)
    for zone, pods in by_zone if wants_all else ():
        _write_metrics({"zone": zone}, {PENDING_PODS_BY_ZONE: float(pods)}, world)


def _is_published(name: str, amount: float, *, wants_all: bool) -> bool:
    if wants_all:
        return name in GAUGE_METRICS or (bool(amount) and name in NONZERO_METRICS)
    return name in ALARM_METRICS and amount > _MIN_ALARM_AMOUNTS.get(name, 0.0)


def _write_metrics(dimensions: Mapping[str, str], counts: Mapping[str, float], world: World) -> None:
    from aws_lambda_powertools.metrics import (  # noqa: PLC0415 - a cycle begins sooner without
        EphemeralMetrics,
        MetricUnit,
    )

    metrics = EphemeralMetrics(namespace=NAMESPACE, service="joiner")
    metrics.add_dimension(name="cluster", value=world.settings.cluster_name)
    for name, value in dimensions.items():
        metrics.add_dimension(name=name, value=value)
    metrics.timestamp = round(world.clock().timestamp() * 1000)  # the property's setter compares with the system clock
    for name, amount in sorted(counts.items()):
        unit = MetricUnit.Seconds if "Seconds" in name else MetricUnit.Count
        unit = MetricUnit.Percent if name.endswith("Percent") else unit
        metrics.add_metric(name=name, unit=MetricUnit.NoUnit if name.endswith("PerHour") else unit, value=amount)
    world.emit(json.dumps(metrics.serialize_metric_set(), sort_keys=True))
