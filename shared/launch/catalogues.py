"""What the account answered -> the status of node classes, and the catalogue."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final, TypeAlias

import msgspec

from shared.launch.nodeclass import Found, resolve
from shared.launch.stated import is_said
from shared.launch.type_room import Knobs
from shared.launch.types import Market, instance_types
from shared.model.action import Action, FollowUp
from shared.model.catalogue import Catalogue, SeenMemory
from shared.model.cluster import Cluster
from shared.model.ec2 import InstanceTypeInfo
from shared.model.labels import INSTANCE_TYPE, ON_DEMAND
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import Problem
from shared.model.resources import MEMORY

REFRESHED_EVERY: Final = timedelta(hours=1)
REMEMBERED: Final = timedelta(days=60)
REREAD: Final = timedelta(seconds=5)
"""Not at once: if the new catalogue cannot be read either, catalog and provision wake each other."""
SEEN_WITHIN: Final = timedelta(seconds=1)
"""The same of a status that was just written: with lists that lag they would wake each other without end."""
SeenOf: TypeAlias = tuple[SeenMemory, ...]


def statuses(cluster: Cluster, found: Iterable[tuple[str, Found]], profile: str) -> tuple[Action, ...]:
    """Answer one PatchStatus per node class whose status says something else by now, in the order of *found*."""
    classes = {one.name: one for one in cluster.node_classes}
    every = (resolve(classes[name], one, profile, cluster.taken_at) for name, one in found if name in classes)
    return tuple(patch for patch in every if not is_said(classes[patch.name], patch))


def with_counts(cluster: Cluster, found: Iterable[tuple[str, Found]]) -> Cluster:
    """Answer *cluster* with what no status has room for: how much reservations hold, and placement groups."""
    known = dict(found)
    classes = tuple(_counted(one, known[one.name]) if one.name in known else one for one in cluster.node_classes)
    return msgspec.structs.replace(cluster, node_classes=classes)


def _counted(one: EC2NodeClass, found: Found) -> EC2NodeClass:
    counts = {each.reservation_id: each for each in found.capacity_reservations or ()}
    return msgspec.structs.replace(
        one,
        resolved_capacity_reservations=tuple(
            counts.get(each.reservation_id, each) for each in one.resolved_capacity_reservations
        ),
        resolved_placement_group=next(iter(found.placement_groups or ()), None),
    )


def knobs(memory_overhead: str, reserved_enis: str, *, node_class_cel: bool = False) -> Knobs:
    """Read the deployment's settings.

    Raises:
        ValueError: one is not a number.
    """
    return Knobs(
        vm_memory_overhead_percent=float(memory_overhead),
        reserved_enis=int(reserved_enis),
        node_class_cel=node_class_cel,
    )


def is_due(before: Cluster, after: Cluster) -> bool:
    """Whether the catalogue must be made anew: none, an old one, or node classes that resolve to something else.

    One that sells nothing on demand was made while no price could be had: it is made anew until there is one.
    Where there is no node class that has a zone, or none can be seen, the last one stays: another would be empty.
    """
    if after.lacks("ec2nodeclasses.karpenter.k8s.aws") or not _usable(after):
        return False
    made = before.catalogue
    newest = None if made is None else made.made_at or made.priced_at
    if made is None or newest is None or after.taken_at - newest >= REFRESHED_EVERY or not _sells_on_demand(made):
        return True
    if any(_has_changed(made, one) for one in _usable(after)):
        return True
    return [_resolved(one) for one in before.node_classes] != [_resolved(one) for one in after.node_classes]


def catalogue(
    cluster: Cluster, infos: tuple[InstanceTypeInfo, ...], market: Market, settings: Knobs, seen: SeenOf = ()
) -> Catalogue:
    """Answer what each node class that is resolved can start."""
    now = cluster.taken_at
    return Catalogue(
        region=market.region,
        instance_types=(),
        by_node_class=tuple(
            (one.name, instance_types(infos, market, one, settings, seen, now)) for one in _usable(cluster)
        ),
        priced_at=market.priced_at or now,
        made_at=now,
        seen=tuple(sorted(seen)),
    )


def unsold(made: Catalogue) -> tuple[Problem, ...]:
    """Answer which node classes have nothing to start."""
    why = "no instance type with a price is sold in the zones of its subnets: check spec.subnetSelectorTerms"
    return tuple(
        Problem(kind="EC2NodeClass", name=name, message=why) for name, types in made.by_node_class if not types
    )


def seen_memory(cluster: Cluster) -> SeenOf:
    """Answer what nodes report of their memory, the least per type and image, and what was known of it before.

    What nobody has reported for sixty days is forgotten.
    """
    known = cluster.catalogue.seen if cluster.catalogue is not None else ()
    now = cluster.taken_at
    least = {(one.instance_type, one.image_id): one for one in known if now - one.at < REMEMBERED}
    nodes = {node.provider_id: node for node in cluster.nodes if node.provider_id}
    for claim in cluster.node_claims:
        node = nodes.get(claim.provider_id)
        if node is None or not claim.image_id or not claim.is_registered():
            continue
        kind, memory = node.meta.label(INSTANCE_TYPE), node.capacity[MEMORY]
        before = least.get((kind, claim.image_id))
        if kind and memory and (before is None or memory <= before.memory_bytes):
            least[kind, claim.image_id] = SeenMemory(
                instance_type=kind, image_id=claim.image_id, memory_bytes=memory, at=now
            )
    return tuple(sorted(least.values()))


def told(before: Cluster, after: Cluster) -> tuple[Action, ...]:
    """Answer whom to wake: pods may have waited for a catalogue, or for a node class to become ready."""
    if before.catalogue is None and any(one.is_ready() for one in after.node_classes):
        return (FollowUp(function="provision", after=REREAD, why="there is a catalogue again"),)
    was = {one.name for one in before.node_classes if one.is_ready()}
    if any(one.is_ready() and one.name not in was for one in after.node_classes):
        return (FollowUp(function="provision", after=SEEN_WITHIN, why="a node class became ready"),)
    return ()


def _resolved(one: EC2NodeClass) -> tuple[object, ...]:
    return (
        one.name,
        one.meta.generation,
        [(subnet.subnet_id, subnet.zone, subnet.zone_id) for subnet in one.resolved_subnets],
        one.resolved_images,
        [(held.reservation_id, held.instance_type, held.zone) for held in one.resolved_capacity_reservations],
    )


def _sells_on_demand(made: Catalogue) -> bool:
    views = (made.instance_types, *(types for _, types in made.by_node_class))
    return any(one.capacity_type == ON_DEMAND for types in views for kind in types for one in kind.offerings)


def _has_changed(made: Catalogue, one: EC2NodeClass) -> bool:
    """Whether what no status has room for is another now: the placement group, what is left of reservations."""
    types = next((types for name, types in made.by_node_class if name == one.name), ())
    group = one.resolved_placement_group
    if types and types[0].group_id != (group.group_id if group is not None else ""):
        return True
    now = {held.reservation_id: held.available_count for held in one.resolved_capacity_reservations}
    sold = (offering for kind in types for offering in kind.offerings) if now else ()
    return any(offering.reservation_capacity != now.get(offering.reservation_id, 0) for offering in sold)


def _usable(cluster: Cluster) -> list[EC2NodeClass]:
    return [one for one in cluster.node_classes if one.resolved_subnets]
