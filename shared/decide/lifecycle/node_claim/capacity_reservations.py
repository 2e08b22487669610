"""Capacity reservations: instances that EC2 now counts as on-demand, and ending capacity blocks.

EC2 sends no message before a capacity block ends, and reclaims the instances 30 minutes before the end. So NodeClaims
are deleted early enough to be drained.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from shared.decide.common.events import build_claim_events
from shared.decide.lifecycle.reconcile_context import LifecycleContext
from shared.model.core.labels import (
    CAPACITY_TYPE,
    ON_DEMAND,
    REGISTERED,
    RESERVATION_ID,
    RESERVATION_INTERRUPTIBLE,
    RESERVATION_TYPE,
    RESERVED,
)
from shared.model.decisions.action import Action, DeleteObject, Kind, PatchMetadata
from shared.model.karpenter.node_class import EC2NodeClass
from shared.state.node_claim_state import NodeClaimState

EXPIRING_REASON: Final = "CapacityReservationExpiring"


def reconcile_capacity_reservations(
    claim_states: Iterable[NodeClaimState], context: LifecycleContext
) -> Iterator[Action]:
    """Label NodeClaims and Nodes on-demand if EC2 does, and delete the NodeClaims of ending capacity blocks."""
    ending_block_ids = find_ending_capacity_blocks(context.cluster_state.snapshot.node_classes, context.now)
    for claim_state in claim_states:
        claim = claim_state.claim
        if claim.is_deleting() or claim.meta.get_label(CAPACITY_TYPE) != RESERVED:
            continue
        reservation_id = claim.meta.get_label(RESERVATION_ID)
        instance = (context.instances or {}).get(claim.instance_id)
        if reservation_id in ending_block_ids:
            yield from build_claim_events(
                claim,
                claim_state.nodes,
                EXPIRING_REASON,
                (f"{reservation_id} ends, its node is terminated before"),
                context.now,
            )
            yield DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, message="its capacity block ends")
        elif instance is not None and instance.capacity_type == ON_DEMAND:
            yield _build_on_demand_patch("NodeClaim", claim.name)
            registered_nodes = (node for node in claim_state.nodes if node.meta.get_label(REGISTERED) == "true")
            yield from (_build_on_demand_patch("Node", node.name) for node in registered_nodes)


def find_ending_capacity_blocks(node_classes: Iterable[EC2NodeClass], now: datetime) -> frozenset[str]:
    """Return the ids of the capacity blocks that end soon."""
    reservations = (
        reservation for node_class in node_classes for reservation in node_class.resolved_capacity_reservations
    )
    return frozenset(reservation.reservation_id for reservation in reservations if reservation.is_ending_block(now))


def _build_on_demand_patch(kind: Kind, name: str) -> PatchMetadata:
    return PatchMetadata(
        kind=kind,
        name=name,
        labels=((CAPACITY_TYPE, ON_DEMAND),),
        removed_labels=(RESERVATION_ID, RESERVATION_TYPE, RESERVATION_INTERRUPTIBLE),
        message="its capacity reservation is not used any more",
    )
