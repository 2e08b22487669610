"""Extra costs: what a node costs per hour in addition to its instance.

These are its volumes, and costs that the operator configures.
"""

from shared.decide.scheduling.packing.first_fit import FirstFitPacking
from shared.model.cluster import ClusterSnapshot
from shared.model.core.units import HOURS_PER_MONTH
from shared.model.decisions.placement import Placement, SchedulingOptions
from shared.model.karpenter.node_class import EC2NodeClass


def compute_extra_costs_by_node_pool(cluster: ClusterSnapshot, options: SchedulingOptions) -> dict[str, float]:
    """Return the extra costs of a node in USD per hour, by NodePool."""
    volume_sizes = {node_class.name: _sum_volume_sizes(node_class) for node_class in cluster.node_classes}
    usd_per_gib_hour = options.volume_usd_per_gib_month / HOURS_PER_MONTH
    return {
        node_pool.name: options.node_cost_usd_per_hour
        + usd_per_gib_hour * volume_sizes.get(node_pool.node_class.name, 0)
        for node_pool in cluster.node_pools
    }


def list_extra_costs(packing: FirstFitPacking) -> tuple[float, ...]:
    """Return the extra costs of a node in USD per hour, by template."""
    extra_costs = compute_extra_costs_by_node_pool(packing.topology.cluster, packing.options)
    return tuple(extra_costs[template.pool.name] for template in packing.templates)


def sum_extra_costs(placement: Placement, cluster: ClusterSnapshot, options: SchedulingOptions) -> float:
    """Return the extra costs of all new nodes of *placement*, in USD per hour."""
    extra_costs = compute_extra_costs_by_node_pool(cluster, options)
    return sum(extra_costs.get(node.node_pool, 0.0) for node in placement.new_nodes)


def compute_placement_cost(placement: Placement, packing: FirstFitPacking) -> float:
    """Return the cost of the new nodes of *placement*, in USD per hour, including their extra costs."""
    return placement.price_usd_per_hour + sum_extra_costs(placement, packing.topology.cluster, packing.options)


def _sum_volume_sizes(node_class: EC2NodeClass) -> int:
    """Return the total size in GiB of the volumes that the node class maps; volumes without a size count as 0."""
    return sum(block_device.volume_size_gib or 0 for block_device in node_class.block_devices)
