"""The fleet document: a cluster's nodes, pods, prices and decisions over time, for the interactive page.

Times are integers: milliseconds since the Unix epoch, in UTC. Prices are in USD per hour. Columns keep the document
small, and strings that repeat are indexes into `strings`. null is unknown: what could not be read is not gone.
"""

from typing import Final, Literal, TypeAlias

import msgspec

from cli.fleet.document.fleet_decisions import FleetDecision, FleetMarker, NodeWhy
from cli.fleet.document.node_columns import FleetNodeColumns, FleetNodePool, NodeStateColumns
from cli.fleet.document.pod_columns import FleetPodColumns, PodPlaceColumns

FLEET_FORMAT: Final = "joiner.fleet"
FLEET_VERSION: Final = 1
SourceKind: TypeAlias = Literal["demo", "journal", "cluster", "folder"]


class FleetSource(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where the data comes from."""

    kind: SourceKind
    """demo, journal, cluster (live), or folder (files)."""
    cluster: str = ""
    """The name of the cluster; "" is unknown."""
    title: str
    """The scenario, the journal, the context or the files."""
    generated_at: int
    """When the document was built."""
    live: bool = False
    """Whether the document grows while the page is open."""
    time_zone: str = "UTC"
    """The zone in which instants are shown at first."""
    notes: tuple[str, ...] = ()
    """What could not be read, and other remarks about the data."""


class FleetSeries(msgspec.Struct, frozen=True, kw_only=True):
    """Values over time that the page cannot derive from the other parts."""

    id: str
    """`usdPerHour.withoutCommands`, `pendingToRunning.p50` or `pendingToRunning.p95`."""
    title: str
    """The name in the legend."""
    unit: Literal["USD/h", "pods", "nodes", "vCPU", "GiB", "s", "evictions"]
    """The unit of the values."""
    stack: str | None = None
    """The group of series that are stacked; null: not stacked."""
    t: tuple[int, ...]
    """Times, oldest first."""
    v: tuple[float | None, ...]
    """One value for each time; null: unknown."""
    step: bool = True
    """Whether a value is valid until the next time."""


class FleetTotals(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Totals from the start to the end."""

    cost_usd: float
    """Cost of the nodes with a known price, in USD."""
    saved_usd: float | None = None
    """What disruption commands saved, in USD; null: unknown."""
    compared_with: str | None = None
    """What `savedUsd` is compared with."""
    evictions_by_reason: dict[str, int] = {}
    """Numbers of evictions that the journal records."""


class FleetDocument(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The whole document. Readers ignore unknown fields and refuse unknown versions."""

    format: str = FLEET_FORMAT
    """Always `joiner.fleet`."""
    version: int = FLEET_VERSION
    """Grows with each incompatible change."""
    source: FleetSource
    """Where the data comes from."""
    start: int
    """The first instant that is shown."""
    end: int
    """The last instant that is known; equal to `start` for a single observation."""
    strings: tuple[str, ...]
    """Strings that repeat."""
    node_pools: tuple[FleetNodePool, ...]
    """Sorted by name."""
    nodes: FleetNodeColumns
    """All nodes that existed between start and end."""
    node_states: NodeStateColumns
    """When nodes changed their state."""
    pods: FleetPodColumns
    """All pods that existed between start and end, as far as known."""
    pod_places: PodPlaceColumns
    """When pods were created, bound and ended."""
    decisions: tuple[FleetDecision, ...] = ()
    """Oldest first."""
    markers: tuple[FleetMarker, ...] = ()
    """Oldest first."""
    explanations: tuple[NodeWhy, ...] = msgspec.field(name="why", default=())
    """Explanations of nodes."""
    series: tuple[FleetSeries, ...] = ()
    """Values that cannot be derived from the other parts."""
    totals: FleetTotals
    """Totals from start to end."""
