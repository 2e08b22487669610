"""What metrics say of a cycle."""

from shared.model.cluster import Cluster
from shared.scheduling.placement import Placement


def of_prices(cluster: Cluster) -> dict[str, float]:
    """Answer how old the prices are that decisions are made with; nothing where there are none."""
    priced_at = cluster.catalogue.priced_at if cluster.catalogue is not None else None
    return {} if priced_at is None else {"PriceAgeSeconds": (cluster.taken_at - priced_at).total_seconds()}


def of_placement(placement: Placement, headroom: frozenset[str] = frozenset()) -> dict[str, float]:
    """Answer how many pods wait, how many nodes come for them, and how many of them can have none."""
    placed = [node.pods for node in placement.new_nodes] + [fit.pods for fit in placement.existing]
    planned = sum(name not in headroom for pods in placed for name in pods)
    return {
        "PendingPods": float(planned + len(placement.unschedulable)),
        "PlannedNodes": float(len(placement.new_nodes)),
        "UnschedulablePods": float(sum(one.reason != "NotReached" for one in placement.unschedulable)),
    }
