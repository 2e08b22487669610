"""The pods of a fleet document, and the nodes that they run on over time."""

from typing import Final

import msgspec

NO_NODE: Final = -1
"""The place of a pod without a node."""
NO_NODE_ENDED: Final = -2
"""The place of a pod that completed, or that was deleted."""


class FleetPodColumns(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Pods, as columns of equal length."""

    namespace: tuple[int, ...]
    """String index."""
    name: tuple[int, ...]
    """String index."""
    workload: tuple[int, ...]
    """String index of the owner, such as `Deployment/web`; "" if the pod has no owner."""
    cpu_milli: tuple[int, ...]
    """Requested CPU, in thousandths of a CPU."""
    memory_mib: tuple[int, ...] = msgspec.field(name="memoryMiB")
    """Requested memory in MiB, rounded up."""
    start: tuple[int, ...]
    """When it was created, which can be before the document's start."""
    end: tuple[int | None, ...]
    """When it ended; null: it exists at the end."""
    priority: tuple[int, ...]
    """The pod's priority."""


class PodPlaceColumns(msgspec.Struct, frozen=True, kw_only=True):
    """Changes of the places of pods, oldest first, as columns of equal length."""

    t: tuple[int, ...]
    """When the place changed, which can be before the document's start."""
    pod: tuple[int, ...]
    """Index into `pods`."""
    node: tuple[int, ...]
    """Index into `nodes`; -1: pending; -2: ended."""
    reason: tuple[int | None, ...]
    """String index of the reason, such as `Evicted: Underutilized`; null: not recorded."""
