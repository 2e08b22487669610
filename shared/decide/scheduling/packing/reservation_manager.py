"""Capacity reservations (ODCRs, Capacity Blocks) in scheduling: how many instances of each are left for new nodes."""

import msgspec

from shared.decide.scheduling.instance_types.instance_type_index import WITHOUT_RESERVED
from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.decide.scheduling.packing.first_fit import FirstFitPacking
from shared.decide.scheduling.templates.min_values import has_min_values
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, RESERVATION_ID, RESERVED
from shared.model.core.requirements import Requirement, Requirements, build_requirements


class ReservationManager(msgspec.Struct, kw_only=True, eq=False):
    """Remaining instances of capacity reservations, by reservation id."""

    remaining: dict[str, int]

    def reserve(self, node: OpenNodeClaim, node_requirements: Requirements) -> tuple[Requirements, Mask]:
        """Return the requirements and instance types of *node* after reserving capacity for it.

        One instance of each capacity reservation that the node can use is reserved.

        If none is available, reserved capacity is excluded from *node_requirements*. The mask is empty if the node can
        use only reserved capacity and none is left.
        """
        type_index, template = node.template.type_index, node.template
        usable_ids = type_index.list_reservation_ids(node_requirements, node.mask)
        available_ids = frozenset(key for key in usable_ids if self.remaining.get(key, 0) > 0)
        reserved_requirements = node_requirements & build_requirements(
            (
                Requirement(key=CAPACITY_TYPE, values=frozenset((RESERVED,))),
                Requirement(key=RESERVATION_ID, values=available_ids),
            )
        )
        mask = node.mask & type_index.find_offered(reserved_requirements) if available_ids else 0
        if mask and has_min_values(template, node.state, mask):
            for reservation_id in type_index.list_reservation_ids(reserved_requirements, mask):
                self.remaining[reservation_id] -= 1
            return reserved_requirements, mask
        if usable_ids:
            node_requirements &= WITHOUT_RESERVED
        return node_requirements, node.mask & type_index.find_offered(node_requirements)


def build_reservation_manager(packing: FirstFitPacking, cluster: ClusterSnapshot) -> ReservationManager:
    """Return the remaining capacity of the reservations.

    One instance is subtracted for each NodeClaim that is not launched yet.
    """
    remaining: dict[str, int] = {}
    for template in packing.templates:
        for reservation_id, count in template.type_index.count_reserved_instances().items():
            remaining[reservation_id] = min(remaining.get(reservation_id, count), count)
    for node_claim in cluster.node_claims:
        for reservation_id in (
            sorted(node_claim.requirements[RESERVATION_ID].values) if not node_claim.is_launched() else ()
        ):
            remaining[reservation_id] = remaining.get(reservation_id, 0) - 1
    return ReservationManager(remaining=remaining)
