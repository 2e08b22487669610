"""What the account answered -> the status of node classes, and the catalogue."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from shared.launch.nodeclass import Found, resolve
from shared.launch.types import Knobs, Market, instance_types
from shared.model.action import Action, FollowUp
from shared.model.catalogue import Catalogue
from shared.model.cluster import Cluster
from shared.model.ec2 import InstanceTypeInfo
from shared.model.nodeclasses import EC2NodeClass

REFRESHED_EVERY: Final = timedelta(hours=1)
REREAD: Final = timedelta(seconds=5)
"""Not at once: if the new catalogue cannot be read either, catalog and provision wake each other."""


def statuses(cluster: Cluster, found: Iterable[tuple[str, Found]], profile: str) -> tuple[Action, ...]:
    """Answer one PatchStatus per node class, in the order of *found*."""
    classes = {one.name: one for one in cluster.node_classes}
    return tuple(resolve(classes[name], one, profile, cluster.taken_at) for name, one in found if name in classes)


def knobs(memory_overhead: str, reserved_enis: str) -> Knobs:
    """Read the deployment's settings.

    Raises:
        ValueError: one is not a number.
    """
    return Knobs(vm_memory_overhead_percent=float(memory_overhead), reserved_enis=int(reserved_enis))


def is_due(before: Cluster, after: Cluster) -> bool:
    """Whether the catalogue must be made anew: none, an old one, or node classes that resolve to something else."""
    newest = before.catalogue.priced_at if before.catalogue is not None else None
    if newest is None or after.taken_at - newest >= REFRESHED_EVERY:
        return True
    return [_resolved(one) for one in before.node_classes] != [_resolved(one) for one in after.node_classes]


def catalogue(cluster: Cluster, infos: tuple[InstanceTypeInfo, ...], market: Market, settings: Knobs) -> Catalogue:
    """Answer what each node class that is resolved can start."""
    usable = [one for one in cluster.node_classes if one.resolved_subnets]
    return Catalogue(
        region=market.region,
        instance_types=(),
        by_node_class=tuple((one.name, instance_types(infos, market, one, settings)) for one in usable),
        priced_at=cluster.taken_at,
    )


def told(before: Cluster, after: Cluster) -> tuple[Action, ...]:
    """Answer whom to wake: pods may have waited for a catalogue, or for a node class to become ready."""
    if before.catalogue is None and any(one.is_ready() for one in after.node_classes):
        return (FollowUp(function="provision", after=REREAD, why="there is a catalogue again"),)
    was = {one.name for one in before.node_classes if one.is_ready()}
    if any(one.is_ready() and one.name not in was for one in after.node_classes):
        return (FollowUp(function="provision", after=timedelta(), why="a node class became ready"),)
    return ()


def _resolved(one: EC2NodeClass) -> tuple[object, ...]:
    return (one.name, one.meta.generation, one.resolved_subnets, one.resolved_images)
