"""Provisioning triggers: whether a full snapshot and a scheduling run are needed; usually nothing is pending."""

from shared.decide.provisioning.static_capacity import explain_static_change
from shared.model.cluster import ClusterSnapshot
from shared.model.kubernetes.pod_classes import is_provisionable
from shared.state.cluster_state import ClusterState
from shared.state.nominations import find_nominated_node_names


def explain_provisioning_need(cluster_state: ClusterState) -> str:
    """Return why provisioning has work to do; "" if it has none.

    Its snapshot must contain the pods without a node, all nodes and NodeClaims, and the node classes; also capacity
    buffers and NodePools if these features are enabled. If the result is "", a run on the full snapshot would have no
    placement, no action and no launch.
    """
    cluster, nominated_node_names = cluster_state.snapshot, find_nominated_node_names(cluster_state)
    if (
        nominated_node_names.node_by_pod
        or nominated_node_names.stale_pods
        or any(is_provisionable(pod) for pod in cluster.pods)
    ):
        return "pods are pending"
    if any(state.is_marked_for_deletion() for state in cluster_state.nodes):
        return "pods of terminating nodes need nodes"
    if any(not claim.is_launched() and not claim.is_deleting() for claim in cluster.node_claims):
        return "NodeClaims wait for instances"
    if cluster.capacity_buffers:
        return "CapacityBuffers need headroom"
    if any(request.is_open() for request in cluster.provisioning_requests):
        return "ProvisioningRequests need capacity"
    return explain_static_change(cluster_state) or _explain_unresolved_classes(cluster)


def _explain_unresolved_classes(cluster: ClusterSnapshot) -> str:
    if any(not node_class.is_current() and node_class.meta.deleted_at is None for node_class in cluster.node_classes):
        return "EC2NodeClasses are not resolved yet"
    return ""
