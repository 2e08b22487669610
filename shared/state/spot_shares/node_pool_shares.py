"""Usage of the Spot shares of NodePools: which part of their nodes is Spot."""

from collections.abc import Iterable, Mapping

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, SPOT
from shared.model.core.resources import CPU
from shared.model.decisions.placement import Placement
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.spot_share import ShareUsage, SpotShare, find_spot_share
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode


def find_spot_shares(cluster: ClusterSnapshot) -> dict[str, SpotShare]:
    """Return the shares that have an effect, by NodePool."""
    shares = {pool.name: find_spot_share(pool) for pool in cluster.node_pools}
    return {name: share for name, share in sorted(shares.items()) if share is not None}


def compute_share_usages(
    shares: Mapping[str, SpotShare], states: Iterable[StateNode], cluster: ClusterSnapshot
) -> dict[str, ShareUsage]:
    """Return the usage of *shares*, by NodePool; nodes that are terminating do not count."""
    usages = dict.fromkeys(shares, ShareUsage())
    for state in states if shares else ():
        if state.pool in shares and not state.is_marked_for_deletion():
            usages[state.pool] += measure_node(shares[state.pool], state, cluster)
    return usages


def measure_node(share: SpotShare, state: StateNode, cluster: ClusterSnapshot) -> ShareUsage:
    """Return the usage of one node.

    A NodeClaim without an instance counts as Spot if it may become Spot, with the most vCPU that it may have; else as
    on-demand, with the fewest.
    """
    claim = state.claim
    if claim is not None and state.node is None and not claim.is_launched():
        amounts = _list_cpu_milli(claim, cluster) if share.unit == "vcpu" else []
        return _count(share, amounts or [claim.requests[CPU]], is_spot=claim.requirements[CAPACITY_TYPE].has(SPOT))
    return _count(share, [state.compute_capacity()[CPU]], is_spot=state.meta.get_label(CAPACITY_TYPE) == SPOT)


def _list_cpu_milli(claim: NodeClaim, cluster: ClusterSnapshot) -> list[int]:
    if cluster.catalog is None:
        return []
    allowed_names = claim.requirements[INSTANCE_TYPE]
    types = cluster.catalog.get_instance_types(claim.node_class.name, claim.meta.get_label(NODEPOOL))
    return [instance_type.capacity[CPU] for instance_type in types if allowed_names.has(instance_type.name)]


def measure_planned_shares(
    cluster_state: ClusterState, placement: Placement
) -> dict[str, tuple[SpotShare, ShareUsage]]:
    """Return each share and its usage with the new nodes of *placement*, by NodePool."""
    cluster, shares = cluster_state.snapshot, find_spot_shares(cluster_state.snapshot)
    usages = compute_share_usages(shares, cluster_state.nodes, cluster)
    for new_node in placement.new_nodes if shares else ():
        share = shares.get(new_node.node_pool)
        pool = next((pool for pool in cluster.node_pools if pool.name == new_node.node_pool), None)
        if share is not None and pool is not None:
            types = cluster.catalog.get_instance_types(pool.node_class.name, pool.name) if cluster.catalog else ()
            names = frozenset(new_node.instance_types)
            amounts = [instance_type.capacity[CPU] for instance_type in types if instance_type.name in names]
            usages[pool.name] += _count(share, amounts, is_spot=new_node.requirements[CAPACITY_TYPE].has(SPOT))
    return {name: (share, usages[name]) for name, share in shares.items()}


def _count(share: SpotShare, cpu_milli: list[int], *, is_spot: bool) -> ShareUsage:
    """Return the usage of a node without an instance that may have each of *cpu_milli*."""
    amount = (max if is_spot else min)(cpu_milli, default=0) if share.unit == "vcpu" else 1
    return ShareUsage(spot=amount if is_spot else 0, total=amount)
