"""What the dashboard asks the functions' logs, by CloudWatch Logs Insights.

That costs when somebody looks, $0.005 per GB that is read, and a month of logs of 100 nodes is a tenth of one. Every
cycle writes one line (`shared.report.journal`), the fleet a few every five minutes (`shared.report.fleet`).
"""

from typing import Final

import msgspec
from aws_cdk import aws_cloudwatch as cloudwatch

LINE: Final = cloudwatch.LogQueryVisualizationType.LINE
TABLE: Final = cloudwatch.LogQueryVisualizationType.TABLE
WIDE: Final = 24
HALF: Final = 12
THIRD: Final = 8


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """One widget."""

    title: str
    lines: tuple[str, ...]
    view: cloudwatch.LogQueryVisualizationType = LINE
    width: int = THIRD


def _series(condition: str, minutes: int, **sums: str) -> tuple[str, ...]:
    """Answer a query whose answer is drawn over time: named by what is asked of each bin."""
    asked = ", ".join(f"{what} as {name}" for name, what in sums.items())
    return (f"filter {condition}", f"stats {asked} by bin({minutes}m)")


def _parts(fleet: str, *more: str) -> tuple[str, ...]:
    asked = ", ".join(f"latest({name}) as {title}" for name, title in (("nodes", "Nodes"), ("usdPerHour", "Usd")))
    return (
        f'filter fleet = "{fleet}"',
        ", ".join((f"stats {asked}", *more)) + " by name",
        "sort Usd desc, name",
        "limit 50",
    )


FIRST: Final = (
    Query(
        title="Pods that wait",
        lines=_series(
            'function = "provision"', 1, Waiting="max(counts.PendingPods)", Hopeless="max(counts.UnschedulablePods)"
        ),
    ),
    Query(title="Nodes", lines=_series('fleet = "all"', 5, Nodes="max(nodes)")),
    Query(title="Dollars per hour", lines=_series('fleet = "all"', 5, Usd="max(usdPerHour)")),
    Query(
        title="NodePools, and how many of their nodes may be disrupted",
        lines=_parts("pool", "latest(disrupting) as Disrupting", "latest(allowed) as Allowed"),
        view=TABLE,
    ),
    Query(title="Instance types", lines=_parts("instanceType"), view=TABLE),
    Query(title="Capacity types", lines=_parts("capacityType"), view=TABLE),
    Query(
        title="What was decided and done",
        lines=_series(
            "ispresent(function)",
            5,
            Claims="sum(done.CreateNodeClaim)",
            Launches="sum(done.LaunchInstances)",
            Commands="sum(counts.ProposedCommands)",
            Undone="sum(counts.RolledBackCommands)",
            Evictions="sum(done.EvictPod)",
            Terminations="sum(done.TerminateInstances)",
            Interruptions="sum(counts.InterruptedNodes)",
        ),
    ),
    Query(
        title="Seconds from a pod's creation to the launch of its node, and until it runs",
        lines=_series(
            "ispresent(function)",
            5,
            LaunchP50="max(counts.LaunchWaitSecondsP50)",
            LaunchP95="max(counts.LaunchWaitSecondsP95)",
            RunningP50="max(counts.StartSecondsP50)",
            RunningP95="max(counts.StartSecondsP95)",
        ),
    ),
    Query(
        title="Commands under way, what they save per hour, and what is paused: by people, and by itself",
        lines=_series(
            'function = "disrupt"',
            5,
            Open="max(counts.OpenCommands)",
            SavedUsd="sum(counts.SavedUsdPerHour)",
            Meant="max(counts.IntendedPauses)",
            ByItself="max(counts.DisruptionPauses)",
        ),
    ),
    Query(
        title="How old: the snapshot in seconds as its cycle ends, the catalogue in minutes, prices in hours",
        lines=_series(
            "ispresent(function)",
            5,
            Snapshot="max(seconds)",
            Catalogue="max(counts.CatalogueAgeSeconds) / 60",
            Prices="max(counts.PriceAgeSeconds) / 3600",
        ),
    ),
)
LAST: Final = (
    Query(
        title="What went wrong",
        lines=(
            'filter level = "ERROR" or level = "WARNING"',
            "fields @timestamp, function, error, problems.0, problems.1, failed.0",
            "sort @timestamp desc",
            "limit 50",
        ),
        view=TABLE,
        width=WIDE,
    ),
)
