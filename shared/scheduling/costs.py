"""What a node costs per hour besides the instance: its volumes, and whatever else the operator says."""

from typing import Final

from shared.model.cluster import Cluster
from shared.model.nodeclasses import EC2NodeClass
from shared.scheduling.pack import Packing
from shared.scheduling.placement import Options, Placement

HOURS_PER_MONTH: Final = 730


def costs_by_pool(cluster: Cluster, options: Options) -> dict[str, float]:
    """Answer it by NodePool, in USD."""
    sizes = {one.name: _gib(one) for one in cluster.node_classes}
    per_gib = options.volume_usd_per_gib_month / HOURS_PER_MONTH
    return {
        one.name: options.node_cost_usd_per_hour + per_gib * sizes.get(one.node_class.name, 0)
        for one in cluster.node_pools
    }


def node_costs(packing: Packing) -> tuple[float, ...]:
    """Answer it by template, in USD."""
    found = costs_by_pool(packing.topology.cluster, packing.options)
    return tuple(found[one.pool.name] for one in packing.templates)


def besides(placement: Placement, cluster: Cluster, options: Options) -> float:
    """Answer what the new nodes of *placement* cost besides their instances, in USD."""
    found = costs_by_pool(cluster, options)
    return sum(found.get(node.node_pool, 0.0) for node in placement.new_nodes)


def cost_of(placement: Placement, packing: Packing) -> float:
    """Answer what the new nodes of *placement* cost, all told."""
    return placement.price_usd_per_hour + besides(placement, packing.topology.cluster, packing.options)


def _gib(node_class: EC2NodeClass) -> int:
    """Answer the size of all volumes that come with each node, as far as the node class says."""
    return sum(one.volume_size_gib or 0 for one in node_class.block_devices)
