"""One line about the fleet of a simulation: its nodes, pods, CPUs and cost."""

from typing import TYPE_CHECKING, Final

from cli.terminal.text import Palette, format_usd_cell
from shared.model.core.formatting import format_count

if TYPE_CHECKING:
    from sim.world.measurements import ClusterSample

_POD_BAR_COLUMNS: Final = 20
MAX_NODE_TILES: Final = 20
"""More nodes are written as a number only."""


def format_fleet_line(sample: "ClusterSample", palette: Palette) -> str:
    """Return the line, for a terminal or a pipe.

    >>> from datetime import UTC, datetime
    >>> from sim.world.measurements import ClusterSample
    >>> sample = ClusterSample(sampled_at=datetime(2026, 1, 1, tzinfo=UTC), running_pods=3, pending_pods=1,
    ...     joiner_nodes=2, managed_nodes=1, vcpus=6, cost_usd_per_hour=0.1)
    >>> format_fleet_line(sample, Palette(enabled=False))
    'fleet  ■■□ 2 nodes of Joiner (6 vCPUs), 1 managed  |  ███████████████░░░░░ 3 of 4 pods running  |  $0.100/h'
    """
    nodes = sample.joiner_nodes + sample.managed_nodes
    tiles = ""
    if nodes <= MAX_NODE_TILES:
        tiles = palette.colorize("green", "■" * sample.joiner_nodes) + palette.colorize(
            "dim", "□" * sample.managed_nodes
        )
    pods = sample.running_pods + sample.pending_pods + sample.unreplaced_pods
    running_columns = round(_POD_BAR_COLUMNS * sample.running_pods / pods) if pods else 0
    bar = palette.colorize("green", "█" * running_columns) + palette.colorize(
        "yellow", "░" * (_POD_BAR_COLUMNS - running_columns)
    )
    pods_text = f"{sample.running_pods} of {format_count(pods, 'pod')} running" if pods else "no pods"
    return (
        f"fleet  {tiles}{' ' if tiles else ''}{format_count(sample.joiner_nodes, 'node')} of Joiner "
        f"({format_count(sample.vcpus, 'vCPU')}), {sample.managed_nodes} managed  |  "
        f"{bar} {pods_text}  |  ${format_usd_cell(sample.cost_usd_per_hour)}/h"
    )
