"""What a node costs per hour besides the instance: its volumes, and whatever else the operator says."""

from typing import Final

from shared.model.nodeclasses import EC2NodeClass
from shared.scheduling.pack import Packing
from shared.scheduling.placement import Placement

HOURS_PER_MONTH: Final = 730


def node_costs(packing: Packing) -> tuple[float, ...]:
    """Answer it by template, in USD."""
    options = packing.options
    sizes = {one.name: _gib(one) for one in packing.topology.cluster.node_classes}
    per_gib = options.volume_usd_per_gib_month / HOURS_PER_MONTH
    return tuple(
        options.node_cost_usd_per_hour + per_gib * sizes.get(one.pool.node_class.name, 0) for one in packing.templates
    )


def cost_of(placement: Placement, packing: Packing) -> float:
    """Answer what the new nodes of *placement* cost, all told."""
    extras = {one.pool.name: cost for one, cost in zip(packing.templates, node_costs(packing), strict=True)}
    return placement.price_usd_per_hour + sum(extras.get(node.node_pool, 0.0) for node in placement.new_nodes)


def _gib(node_class: EC2NodeClass) -> int:
    """Answer the size of all volumes that come with each node, as far as the node class says."""
    return sum(one.volume_size_gib or 0 for one in node_class.block_devices)
