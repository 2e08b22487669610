"""The sums over the clusters of a hub, and the values that are missing from them."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from cli.hub.session import HubRow
from cli.hub.summary.cluster_summary import ClusterSummary

_Reader: TypeAlias = Callable[[ClusterSummary], float | None]
_READERS: Final[tuple[tuple[str, _Reader], ...]] = (
    ("nodes", lambda summary: summary.nodes),
    ("price", lambda summary: summary.usd_per_hour),
    ("cost of the day", lambda summary: summary.costs.day_usd),
    ("cost of the month", lambda summary: summary.costs.month_usd),
    ("pending pods", lambda summary: summary.pending_pods),
    ("drifted nodes", lambda summary: summary.drifted_nodes),
)


class MissingValues(msgspec.Struct, frozen=True, kw_only=True):
    """The values of a cluster that no sum contains."""

    cluster: str
    values: tuple[str, ...]


class HubTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of known values; None: no cluster has a known value."""

    nodes: int | None
    usd_per_hour: float | None
    day_usd: float | None
    month_usd: float | None
    pending_pods: int | None
    drifted_nodes: int | None
    missing: tuple[MissingValues, ...]
    """Clusters with unknown values; of a cluster that could not be read, all values are unknown."""


def compute_totals(rows: Sequence[HubRow]) -> HubTotals:
    """Return the sums of *rows*."""
    summaries = [row.summary for row in rows if row.summary is not None]
    sums = {name: _add_known(summaries, read) for name, read in _READERS}
    return HubTotals(
        nodes=_convert_to_count(sums["nodes"]),
        usd_per_hour=sums["price"],
        day_usd=sums["cost of the day"],
        month_usd=sums["cost of the month"],
        pending_pods=_convert_to_count(sums["pending pods"]),
        drifted_nodes=_convert_to_count(sums["drifted nodes"]),
        missing=tuple(
            MissingValues(cluster=row.cluster.name, values=values) for row in rows if (values := list_unknown(row))
        ),
    )


def list_unknown(row: HubRow) -> tuple[str, ...]:
    """Return the names of the values that are unknown."""
    return tuple(name for name, read in _READERS if row.summary is None or read(row.summary) is None)


def _add_known(summaries: Sequence[ClusterSummary], read: _Reader) -> float | None:
    values = [value for summary in summaries if (value := read(summary)) is not None]
    return round(sum(values), 6) if values else None


def _convert_to_count(number: float | None) -> int | None:
    return None if number is None else int(number)
