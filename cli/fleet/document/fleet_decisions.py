"""The decisions, markers and explanations of a fleet document."""

from typing import Literal, TypeAlias

import msgspec

DecisionKind: TypeAlias = Literal[
    "launch",
    "terminate",
    "consolidate",
    "drift",
    "empty",
    "expire",
    "interrupt",
    "repair",
    "evict",
    "refuse",
    "fault",
    "deploy",
    "other",
]
MarkerKind: TypeAlias = Literal["launch", "terminate", "interruption", "failure", "deployment", "act"]


class FleetDecision(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A decision of one cycle of a function."""

    t: int
    """When the cycle began."""
    id: str
    """The key of the cycle in the journal; several decisions can have the same."""
    function: str
    """provision, lifecycle, disrupt, interrupt, catalog, or the source of an event of a simulation."""
    kind: DecisionKind
    """launch, terminate, consolidate, drift, empty, expire, interrupt, repair, evict, refuse, fault, deploy or
    other."""
    title: str
    """One line."""
    lines: tuple[str, ...] = ()
    """The reason and the details, as `joiner explain` prints them."""
    nodes: tuple[int, ...] = ()
    """Indexes into `nodes`."""
    pods: tuple[int, ...] = ()
    """Indexes into `pods`."""
    saves_usd_per_hour: float | None = None
    """What a disruption command saves; null: unknown, or no disruption command."""
    replay: str | None = None
    """The command that decides again; null: the inputs of the decision were not recorded."""


class FleetMarker(msgspec.Struct, frozen=True, kw_only=True):
    """An instant of the timeline with a title."""

    t: int
    """Its time."""
    kind: MarkerKind
    """launch, terminate, interruption, failure, deployment or act (of a scenario)."""
    title: str
    """A few words."""
    text: str = ""
    """One sentence that explains the marker to a newcomer."""
    end: int | None = None
    """Of an act: when it ends."""
    decision: int | None = None
    """Index into `decisions`."""


class OfferingAlternative(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An offering that the NodeClaim's requirements allow, at its current price."""

    instance_type: str
    """Such as m5.large."""
    capacity_type: str
    """spot, on-demand or reserved."""
    zone: str
    """The zone with the lowest price."""
    price: float
    """USD per hour."""


class NodeWhy(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Why a node exists with its instance type, and what prevents its removal."""

    lines: tuple[str, ...] = ()
    """The answers of `joiner explain node`, without names and history."""
    alternatives: tuple[OfferingAlternative, ...] = ()
    """The cheapest offerings that the NodeClaim allows, one for each instance type, cheapest first."""
    blocked_by: tuple[str, ...] = ()
    """Why disruption keeps the node, as the last disruption run decided; empty: no reason is known."""
