"""Whether it is worth while to look at everything: most of the time nothing waits."""

from shared.model.cluster import Cluster
from shared.model.state import state_nodes
from shared.scheduling.homes import hints_of
from shared.scheduling.static import wants_change


def needs_planning(cluster: Cluster) -> str:
    """Answer why provisioning has something to do, "" if it has not.

    *cluster* needs to show the pods that have no node, all machines, and the node classes; buffers and
    NodePools where these features are on. Where the answer is "", the
    whole would give no placement, no action and no launch.
    """
    hints = hints_of(cluster)
    if hints.ours or hints.stale or any(pod.is_provisionable() for pod in cluster.pods):
        return "pods wait for a node"
    if any(state.is_marked() for state in state_nodes(cluster)):
        return "nodes are going, and their pods with them"
    if any(not claim.is_launched() and not claim.is_deleting() for claim in cluster.node_claims):
        return "claims wait for their instances"
    if cluster.capacity_buffers:
        return "room is kept free"
    return wants_change(cluster) or _unresolved(cluster)


def _unresolved(cluster: Cluster) -> str:
    if any(not one.is_current() and one.meta.deleted_at is None for one in cluster.node_classes):
        return "node classes are not resolved yet"
    return ""
