"""Plans for EC2NodeClasses with paused launches: one node at a time, as a test.

See docs/adr/0030.
"""

from collections import Counter

from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.placement import NewNodeClaim, Placement, Unschedulable
from shared.state.pauses import count_allowed_claims


def limit_to_tests(placement: Placement, cluster: ClusterSnapshot) -> Placement:
    """Return *placement* without the new nodes that may not be launched now; their pods wait."""
    class_by_pool = {pool.name: pool.node_class.name for pool in cluster.node_pools}
    class_names = sorted({class_by_pool.get(node.node_pool, "") for node in placement.new_nodes})
    allowed_by_class = {
        name: count for name in class_names if (count := count_allowed_claims(name, cluster)) is not None
    }
    if not allowed_by_class:
        return placement
    kept_nodes, waiting_pods = list[NewNodeClaim](), list[Unschedulable]()
    planned_by_class = Counter[str]()
    for node in placement.new_nodes:
        name = class_by_pool.get(node.node_pool, "")
        planned_by_class[name] += 1
        if planned_by_class[name] <= allowed_by_class.get(name, planned_by_class[name]):
            kept_nodes.append(node)
            continue
        message = f"NodePool {node.node_pool}: launches are paused: another node of EC2NodeClass {name} is tested first"
        waiting_pods += (Unschedulable(pod=pod, reason="NoNodePool", message=message) for pod in node.pods)
    unschedulable = tuple(sorted((*placement.unschedulable, *waiting_pods), key=lambda item: item.pod))
    return replace(placement, new_nodes=tuple(kept_nodes), unschedulable=unschedulable)
