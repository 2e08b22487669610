"""Gangs that wait for the start of a Capacity Block.

A gang waits if its pods can run only on reserved capacity, if no reservation that its NodePools use is active, and if
one of their EC2NodeClasses selects a Capacity Block that starts later.
"""

from collections.abc import Iterable, Iterator

from shared.decide.scheduling.constraints.preference_relaxation import combine_required_terms
from shared.decide.scheduling.templates.template_builder import build_template_requirements
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count
from shared.model.core.labels import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    RESERVATION_ID,
    RESERVATION_INTERRUPTIBLE,
    RESERVATION_TYPE,
    RESERVED,
    WELL_KNOWN,
    ZONE,
)
from shared.model.core.requirements import Requirements, build_label_requirements
from shared.model.core.units import format_instant
from shared.model.ec2.account import CapacityReservation
from shared.model.karpenter.node_pool import NodePool
from shared.state.gangs.gangs import Gang


def explain_block_wait(gang: Gang, cluster: ClusterSnapshot) -> str:
    """Return for which Capacity Block *gang* waits, and until when; "" if it waits for none."""
    if cluster.catalog is None or not cluster.catalog.scheduled_blocks:
        return ""
    usable_pools = list(_list_usable_pools(gang, cluster.node_pools))
    if not usable_pools or any(not _is_reserved_only(requirements) for _, requirements in usable_pools):
        return ""
    active_reservations = {
        node_class.name: node_class.resolved_capacity_reservations for node_class in cluster.node_classes
    }
    if any(
        _is_usable(reservation, requirements) and not reservation.is_ending_block(cluster.taken_at)
        for pool, requirements in usable_pools
        for reservation in active_reservations.get(pool.node_class.name, ())
    ):
        return ""
    blocks = [
        block
        for pool, requirements in usable_pools
        for block in cluster.catalog.get_scheduled_blocks(pool.node_class.name)
        if block.starts_at is not None and _is_usable(block, requirements)
    ]
    return _describe_wait(min(blocks, key=_get_start_rank)) if blocks else ""


def _list_usable_pools(gang: Gang, pools: Iterable[NodePool]) -> Iterator[tuple[NodePool, Requirements]]:
    """Yield each NodePool that pods of *gang* can use, with the requirements of both."""
    terms = {term for spec in {pod.spec for pod in gang.pods} for term in combine_required_terms(spec)}
    for pool in pools:
        pool_requirements = build_template_requirements(pool)
        for term in sorted(terms, key=repr):
            if pool_requirements.is_compatible(term, WELL_KNOWN):
                yield pool, pool_requirements & term


def _is_reserved_only(requirements: Requirements) -> bool:
    capacity_types = requirements[CAPACITY_TYPE]
    return not capacity_types.complement and capacity_types.values <= {RESERVED}


def _is_usable(reservation: CapacityReservation, requirements: Requirements) -> bool:
    """Return whether a node with *requirements* can be launched into *reservation* as soon as it is active."""
    offering = build_label_requirements(
        {
            CAPACITY_TYPE: RESERVED,
            INSTANCE_TYPE: reservation.instance_type,
            ZONE: reservation.zone,
            RESERVATION_ID: reservation.reservation_id,
            RESERVATION_TYPE: reservation.reservation_type,
            RESERVATION_INTERRUPTIBLE: str(reservation.is_interruptible).lower(),
        }
    )
    return requirements.is_compatible(offering, WELL_KNOWN)


def _get_start_rank(block: CapacityReservation) -> tuple[str, str]:
    return format_instant(block.starts_at) if block.starts_at is not None else "", block.reservation_id


def _describe_wait(block: CapacityReservation) -> str:
    instances = format_count(block.total_count, f"{block.instance_type} instance")
    start = format_instant(block.starts_at) if block.starts_at is not None else ""
    return f"waits for Capacity Block {block.reservation_id} ({instances} in {block.zone}), which starts at {start}"
