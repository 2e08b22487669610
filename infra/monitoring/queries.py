"""The CloudWatch Logs Insights queries of the dashboard.

A query costs $0.005 per GB read when the dashboard is open; a month of logs of 100 nodes is a tenth of a GB. Every run
writes one line (`shared.report.journal.journal`), and a fleet summary is written as a few lines every five minutes
(`shared.decide.disruption.fleet_summary`).
"""

from typing import Final

import msgspec
from aws_cdk import aws_cloudwatch as cloudwatch

LINE_VIEW: Final = cloudwatch.LogQueryVisualizationType.LINE
TABLE_VIEW: Final = cloudwatch.LogQueryVisualizationType.TABLE
FULL_WIDTH: Final = 24
THIRD_WIDTH: Final = 8


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """One query widget."""

    title: str
    lines: tuple[str, ...]
    view: cloudwatch.LogQueryVisualizationType = LINE_VIEW
    width: int = THIRD_WIDTH


def _build_series_query(condition: str, minutes: int, **sums: str) -> tuple[str, ...]:
    """Build a query that is drawn over time; each of *sums* is a named aggregate per time bin."""
    columns = ", ".join(f"{expression} as {name}" for name, expression in sums.items())
    return (f"filter {condition}", f"stats {columns} by bin({minutes}m)")


def _build_fleet_query(fleet: str, *more_columns: str) -> tuple[str, ...]:
    columns = ", ".join(
        f"latest({name}) as {title}" for name, title in (("nodes", "Nodes"), ("usdPerHour", "UsdPerHour"))
    )
    return (
        f'filter fleet = "{fleet}"',
        ", ".join((f"stats {columns}", *more_columns)) + " by group",
        "sort UsdPerHour desc, group",
        "limit 50",
    )


FIRST_QUERIES: Final = (
    Query(
        title="Pending pods",
        lines=_build_series_query(
            'function = "provision"',
            1,
            Pending="max(counts.PendingPods)",
            Unschedulable="max(counts.UnschedulablePods)",
        ),
    ),
    Query(title="Nodes", lines=_build_series_query('fleet = "all"', 5, Nodes="max(nodes)")),
    Query(
        title="Cost of nodes (USD per hour)",
        lines=_build_series_query('fleet = "all"', 5, UsdPerHour="max(usdPerHour)"),
    ),
    Query(
        title="NodePools: cost and allowed disruptions",
        lines=_build_fleet_query("nodePool", "latest(disrupting) as Disrupting", "latest(allowed) as Allowed"),
        view=TABLE_VIEW,
    ),
    Query(title="Instance types", lines=_build_fleet_query("instanceType"), view=TABLE_VIEW),
    Query(title="Capacity types", lines=_build_fleet_query("capacityType"), view=TABLE_VIEW),
    Query(
        title="Actions",
        lines=_build_series_query(
            "ispresent(function)",
            5,
            Claims="sum(actions.CreateNodeClaim)",
            Launches="sum(actions.LaunchInstances)",
            Commands="sum(counts.ProposedCommands)",
            RolledBack="sum(counts.RolledBackCommands)",
            Evictions="sum(actions.EvictPod)",
            Terminations="sum(actions.TerminateInstances)",
            Interruptions="sum(counts.InterruptedNodes)",
        ),
    ),
    Query(
        title="Pod latency (s): from creation to the launch of its node, and to running",
        lines=_build_series_query(
            "ispresent(function)",
            5,
            LaunchP50="max(counts.PodLaunchSecondsP50)",
            LaunchP95="max(counts.PodLaunchSecondsP95)",
            RunningP50="max(counts.PodStartupSecondsP50)",
            RunningP95="max(counts.PodStartupSecondsP95)",
        ),
    ),
    Query(
        title="Disruption: open commands, savings (USD per hour), pauses by operators and automatic pauses",
        lines=_build_series_query(
            'function = "disrupt"',
            5,
            Open="max(counts.OpenCommands)",
            SavingsUsdPerHour="sum(counts.SavingsUsdPerHour)",
            PausedByOperator="max(counts.OperatorDisruptionPauses)",
            PausedAutomatically="max(counts.AutomaticDisruptionPauses)",
        ),
    ),
    Query(
        title="Age of data: snapshot (s), catalog (min), prices (h)",
        lines=_build_series_query(
            "ispresent(function)",
            5,
            Snapshot="max(seconds)",
            Catalog="max(counts.CatalogAgeSeconds) / 60",
            Prices="max(counts.PriceAgeSeconds) / 3600",
        ),
    ),
)
LAST_QUERIES: Final = (
    Query(
        title="Errors and warnings",
        lines=(
            'filter level = "ERROR" or level = "WARNING"',
            "fields @timestamp, function, message, error, problems.0, problems.1, failed.0",
            "sort @timestamp desc",
            "limit 50",
        ),
        view=TABLE_VIEW,
        width=FULL_WIDTH,
    ),
)
