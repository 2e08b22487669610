"""Status patches of node classes, and the instance type catalog, from what the account contains."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final, TypeAlias

import msgspec

from shared.decide.launch.instance_types.capacity import CapacitySettings
from shared.decide.launch.instance_types.instance_types import build_instance_types
from shared.model.cloud_provider.instance_type import Catalog, ObservedMemory
from shared.model.cloud_provider.node_class_findings import NodeClassAnswers
from shared.model.cloud_provider.regional_offerings import RegionalOfferings
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import INSTANCE_TYPE, ON_DEMAND
from shared.model.core.metadata import Problem
from shared.model.core.resources import MEMORY
from shared.model.decisions.action import Action, FollowUp
from shared.model.ec2.account import CapacityReservation
from shared.model.ec2.instance_type_info import InstanceTypeInfo
from shared.model.karpenter.node_class import NODE_CLASS_CRD, EC2NodeClass

CATALOG_REFRESH_INTERVAL: Final = timedelta(hours=1)
REPORTED_MEMORY_TTL: Final = timedelta(days=60)
CATALOG_REQUEUE_DELAY: Final = timedelta(seconds=5)
"""Not zero: if the new catalog cannot be read either, catalog and provision would requeue each other in a loop."""
STATUS_REQUEUE_DELAY: Final = timedelta(seconds=1)
"""Not zero, for the same reason: while lists lag behind a written status, the functions would requeue each other."""
SeenMemories: TypeAlias = tuple[ObservedMemory, ...]


def with_counts(cluster: ClusterSnapshot, answers_by_class: Iterable[tuple[str, NodeClassAnswers]]) -> ClusterSnapshot:
    """Return *cluster* with what a status cannot store: free capacity of reservations, and placement groups."""
    answers_by_name = dict(answers_by_class)
    classes = tuple(
        _with_class_counts(node_class, answers_by_name[node_class.name])
        if node_class.name in answers_by_name
        else node_class
        for node_class in cluster.node_classes
    )
    return msgspec.structs.replace(cluster, node_classes=classes)


def _with_class_counts(node_class: EC2NodeClass, answers: NodeClassAnswers) -> EC2NodeClass:
    reservation_by_id = {reservation.reservation_id: reservation for reservation in answers.capacity_reservations or ()}
    return msgspec.structs.replace(
        node_class,
        resolved_capacity_reservations=tuple(
            reservation_by_id.get(reservation.reservation_id, reservation)
            for reservation in node_class.resolved_capacity_reservations
        ),
        scheduled_blocks=answers.scheduled_blocks,
        resolved_placement_group=next(iter(answers.placement_groups or ()), None),
    )


def is_catalog_due(before: ClusterSnapshot, after: ClusterSnapshot) -> bool:
    """Return whether the catalog must be rebuilt: it is missing, too old, or node classes resolve differently.

    A catalog without on-demand offerings was built while prices were unavailable: it is rebuilt until there are prices.
    If no node class has a zone, or node classes cannot be listed, the last catalog is kept: a new one would be empty.
    """
    if after.is_unserved(NODE_CLASS_CRD) or not _list_usable_node_classes(after):
        return False
    catalog = before.catalog
    newest = None if catalog is None else catalog.built_at or catalog.priced_at
    if (
        catalog is None
        or newest is None
        or after.taken_at - newest >= CATALOG_REFRESH_INTERVAL
        or not _has_on_demand_offerings(catalog)
    ):
        return True
    if any(_has_changed(catalog, node_class) for node_class in _list_usable_node_classes(after)):
        return True
    return [_build_resolution_key(node_class) for node_class in before.node_classes] != [
        _build_resolution_key(node_class) for node_class in after.node_classes
    ]


def build_catalog(
    cluster: ClusterSnapshot,
    infos: tuple[InstanceTypeInfo, ...],
    regional_offerings: RegionalOfferings,
    settings: CapacitySettings,
    seen_memory: SeenMemories = (),
) -> Catalog:
    """Build the catalog of what each resolved node class can launch."""
    now = cluster.taken_at
    return Catalog(
        region=regional_offerings.region,
        instance_types=(),
        by_node_class=tuple(
            (node_class.name, build_instance_types(infos, regional_offerings, node_class, settings, seen_memory, now))
            for node_class in _list_usable_node_classes(cluster)
        ),
        priced_at=regional_offerings.priced_at or now,
        built_at=now,
        observed_memory=tuple(sorted(seen_memory)),
        scheduled_blocks=tuple(
            (node_class.name, blocks)
            for node_class in _list_usable_node_classes(cluster)
            if (blocks := _get_scheduled_blocks(node_class, cluster.catalog))
        ),
    )


def _get_scheduled_blocks(node_class: EC2NodeClass, catalog: Catalog | None) -> tuple[CapacityReservation, ...]:
    """Return the Capacity Blocks of *node_class* that start later; if they were not read, those in *catalog*."""
    if node_class.scheduled_blocks is not None or catalog is None:
        return node_class.scheduled_blocks or ()
    return catalog.get_scheduled_blocks(node_class.name)


def find_unsold_node_classes(catalog: Catalog) -> tuple[Problem, ...]:
    """Return a problem for each node class without any instance type to launch."""
    message = "no instance type with a price is offered in the zones of its subnets: check spec.subnetSelectorTerms"
    return tuple(
        Problem(kind="EC2NodeClass", name=name, message=message) for name, types in catalog.by_node_class if not types
    )


def collect_seen_memory(cluster: ClusterSnapshot) -> SeenMemories:
    """Return the memory that nodes report, the minimum per type and image, merged with the earlier reports.

    Reports older than sixty days are dropped.
    """
    earlier_reports = cluster.catalog.observed_memory if cluster.catalog is not None else ()
    now = cluster.taken_at
    minimum_by_key = {
        (report.instance_type, report.image_id): report
        for report in earlier_reports
        if now - report.at < REPORTED_MEMORY_TTL
    }
    node_by_provider_id = {node.provider_id: node for node in cluster.nodes if node.provider_id}
    for claim in cluster.node_claims:
        node = node_by_provider_id.get(claim.provider_id)
        if node is None or not claim.image_id or not claim.is_registered():
            continue
        instance_type, memory_bytes = node.meta.get_label(INSTANCE_TYPE), node.capacity[MEMORY]
        previous_report = minimum_by_key.get((instance_type, claim.image_id))
        if instance_type and memory_bytes and (previous_report is None or memory_bytes <= previous_report.memory_bytes):
            minimum_by_key[instance_type, claim.image_id] = ObservedMemory(
                instance_type=instance_type, image_id=claim.image_id, memory_bytes=memory_bytes, at=now
            )
    return tuple(sorted(minimum_by_key.values()))


def plan_requeues(before: ClusterSnapshot, after: ClusterSnapshot) -> tuple[Action, ...]:
    """Return the requeue of provision if pods may have waited for a catalog or for a node class to become ready."""
    if before.catalog is None and any(node_class.is_ready() for node_class in after.node_classes):
        return (FollowUp(function="provision", after=CATALOG_REQUEUE_DELAY, message="the catalog is available again"),)
    previously_ready = {node_class.name for node_class in before.node_classes if node_class.is_ready()}
    if any(node_class.is_ready() and node_class.name not in previously_ready for node_class in after.node_classes):
        return (FollowUp(function="provision", after=STATUS_REQUEUE_DELAY, message="an EC2NodeClass became ready"),)
    return ()


def _build_resolution_key(node_class: EC2NodeClass) -> tuple[object, ...]:
    return (
        node_class.name,
        node_class.meta.generation,
        [(subnet.subnet_id, subnet.zone, subnet.zone_id) for subnet in node_class.resolved_subnets],
        node_class.resolved_images,
        [
            (reservation.reservation_id, reservation.instance_type, reservation.zone)
            for reservation in node_class.resolved_capacity_reservations
        ],
    )


def _has_on_demand_offerings(catalog: Catalog) -> bool:
    type_lists = (catalog.instance_types, *(types for _, types in catalog.by_node_class))
    return any(
        offering.capacity_type == ON_DEMAND
        for types in type_lists
        for instance_type in types
        for offering in instance_type.offerings
    )


def _has_changed(catalog: Catalog, node_class: EC2NodeClass) -> bool:
    """Return whether something changed that a status cannot store.

    It is the placement group, a scheduled Capacity Block, or the free capacity of reservations.
    """
    if _get_scheduled_blocks(node_class, catalog) != catalog.get_scheduled_blocks(node_class.name):
        return True
    types = next((types for name, types in catalog.by_node_class if name == node_class.name), ())
    group = node_class.resolved_placement_group
    if types and types[0].group_id != (group.group_id if group is not None else ""):
        return True
    available_counts = {
        reservation.reservation_id: reservation.available_count
        for reservation in node_class.resolved_capacity_reservations
    }
    offerings = (
        (offering for instance_type in types for offering in instance_type.offerings) if available_counts else ()
    )
    return any(
        offering.reservation_capacity != available_counts.get(offering.reservation_id, 0) for offering in offerings
    )


def _list_usable_node_classes(cluster: ClusterSnapshot) -> list[EC2NodeClass]:
    return [node_class for node_class in cluster.node_classes if node_class.resolved_subnets]
