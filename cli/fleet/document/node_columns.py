"""The nodes of a fleet document, and the changes of their states."""

from typing import Final

import msgspec

NODE_STATES: Final = (
    *("requested", "launched", "registered", "ready", "cordoned"),
    *("draining", "interrupted", "blocked", "gone", "lost"),
)
"""The states of a node; the document has their positions in this list."""
NO_NODE_POOL: Final = -1
"""The NodePool index of a node without a NodePool."""


class FleetNodePool(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A NodePool."""

    name: str
    """Its name."""
    weight: int = 0
    """`spec.weight`."""
    limits: dict[str, str] | None = None
    """Quantities by resource name; null: no limits, or unknown."""
    summary: str = ""
    """Its consolidation policy, expiration and budgets, in one line."""


class FleetNodeColumns(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Nodes and in-flight nodes, as columns of equal length; a relaunched NodeClaim is a new node."""

    name: tuple[int, ...]
    """String index: the Node's name, or the NodeClaim's name while there is no Node."""
    claim: tuple[int | None, ...]
    """String index of the NodeClaim's name; null: no NodeClaim."""
    pool: tuple[int, ...]
    """Index into `nodePools`; -1: no NodePool, which is a node that Joiner does not manage."""
    instance_type: tuple[int, ...]
    """String index; "" is unknown."""
    family: tuple[int, ...]
    """String index of the instance family, such as m5; "" is unknown."""
    zone: tuple[int, ...]
    """String index; "" is unknown."""
    capacity_type: tuple[int, ...]
    """String index: spot, on-demand, reserved; "" is unknown."""
    arch: tuple[int, ...]
    """String index; "" is unknown."""
    cpu_milli: tuple[int, ...]
    """Allocatable CPU, in thousandths of a CPU; 0 is unknown."""
    memory_mib: tuple[int, ...] = msgspec.field(name="memoryMiB")
    """Allocatable memory in MiB; 0 is unknown."""
    pod_capacity: tuple[int, ...]
    """Allocatable number of pods; 0 is unknown."""
    price: tuple[float | None, ...]
    """USD per hour; null: unknown, or a node that Joiner does not manage."""
    start: tuple[int, ...]
    """When the NodeClaim or Node was created, which can be before the document's start."""
    end: tuple[int | None, ...]
    """When it was gone; null: it exists at the end."""
    explanation: tuple[int | None, ...] = msgspec.field(name="why")
    """Index into `why`; null: no explanation."""


class NodeStateColumns(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of node states, oldest first, as columns of equal length."""

    t: tuple[int, ...]
    """When the state began, which can be before the document's start."""
    node: tuple[int, ...]
    """Index into `nodes`."""
    state: tuple[int, ...]
    """0 requested, 1 launched, 2 registered, 3 ready, 4 cordoned, 5 draining, 6 interrupted, 7 blocked from disruption,
    8 gone, 9 lost: its kubelet does not report any more.
    """
