"""Spot shares of NodePools while empty nodes are removed: no removal makes a share be exceeded by more than before."""

from collections.abc import Collection, Iterable

from shared.decide.disruption.candidates import Candidate
from shared.model.core.labels import SPOT
from shared.model.decisions.disruption_verdict import KeptVerdict
from shared.model.karpenter.spot_share import ShareUsage, SpotShare
from shared.state.cluster_state import ClusterState
from shared.state.spot_shares.node_pool_shares import compute_share_usages, find_spot_shares, measure_node

SHARE_REASON = "SpotShare"


class SpotShareTracker:
    """The Spot and on-demand nodes that are left."""

    def __init__(self, cluster_state: ClusterState, command_nodes: Collection[str]) -> None:
        """Count the nodes of *cluster_state* without *command_nodes*, those of running commands."""
        self._cluster = cluster_state.snapshot
        self._shares = find_spot_shares(self._cluster)
        staying_nodes = (
            [state for state in cluster_state.nodes if state.name not in command_nodes] if self._shares else []
        )
        self._usages = compute_share_usages(self._shares, staying_nodes, self._cluster)

    def sort_spot_first(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Return *candidates* with Spot nodes first, if there are shares: without them, on-demand nodes may go too."""
        return sorted(candidates, key=lambda candidate: bool(self._shares) and candidate.capacity_type != SPOT)

    def find_verdict(self, candidate: Candidate) -> KeptVerdict | None:
        """Return why *candidate* stays; None if it may be removed."""
        pool = candidate.pool.name
        share = self._shares.get(pool)
        if share is None:
            return None
        if share.measure_excess(self._subtract(share, candidate)) <= share.measure_excess(self._usages[pool]):
            return None
        message = f"{format_share_refusal(pool)}: {share.format_usage(self._usages[pool])}"
        return KeptVerdict(node=candidate.name, reason=SHARE_REASON, message=message)

    def remove(self, candidate: Candidate) -> None:
        """Count *candidate* no longer."""
        pool = candidate.pool.name
        if pool in self._shares:
            self._usages[pool] = self._subtract(self._shares[pool], candidate)

    def _subtract(self, share: SpotShare, candidate: Candidate) -> ShareUsage:
        return self._usages[candidate.pool.name] - measure_node(share, candidate.state, self._cluster)


def format_share_refusal(pool: str) -> str:
    """Return why nodes of *pool* stay."""
    return f"NodePool {pool} would have too few on-demand nodes for its Spot share"
