"""Widening of instance types: at the end of a plan, each node may be any type that costs little more."""

from typing import Final

from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.nodes.node_pool_limits import filter_affordable_types, widen_types
from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.decide.scheduling.nodes.spot_share_quota import filter_types_of_same_size
from shared.decide.scheduling.packing.first_fit import FirstFitPacking

PRICE_TOLERANCE_RATIO: Final = 1.15
"""Instance types that cost up to this multiple of the lowest price are considered equally good."""
MIN_INSTANCE_TYPES: Final = 10
"""At least this number of instance types are listed, if they exist, regardless of their price."""


def widen_instance_types(packing: FirstFitPacking) -> None:
    """Let each node be any instance type that holds its pods and costs little more than the cheapest.

    The limits and Spot shares of the NodePools are kept.
    """
    for node in packing.open_nodes:
        if node.pods and node.template.pool.name in packing.remaining_limits:
            affordable_types = filter_affordable_types(packing.remaining_limits, node)
            affordable_types = filter_types_of_same_size(node, affordable_types)
            widen_types(packing.remaining_limits, node, _find_alternative_types(node, affordable_types))
        elif node.pods:
            key = (node.used, tuple(node.ports))
            alternatives = node.state.launch_masks.get(key)
            if alternatives is None:
                alternatives = node.state.launch_masks[key] = _find_alternative_types(node, node.state.mask)
            node.mask |= filter_types_of_same_size(node, alternatives)


def _find_alternative_types(node: OpenNodeClaim, allowed_types: Mask) -> Mask:
    mask = node.template.filter_fitting_types(node.state.mask & allowed_types, node.used, tuple(node.ports))
    price_list = node.template.type_index.get_price_list(node.state.requirements)
    return price_list.select_cheap_types(mask, PRICE_TOLERANCE_RATIO, MIN_INSTANCE_TYPES)
