"""Which node becomes a canary."""

from collections.abc import Mapping

from shared.decide.disruption.candidates import find_blocking_pod
from shared.decide.disruption.drift.drift import DRIFTED
from shared.model.core.labels import DO_NOT_DISRUPT
from shared.model.core.metadata import is_condition_true
from shared.model.karpenter.node_claim import NodeClaim
from shared.state.cluster_state import ClusterState


class CanaryPreference:
    """Sort key for NodeClaims: disruptable ones first, then the earlier canary, then by name."""

    def __init__(self, cluster_state: ClusterState) -> None:
        """Read the pods and nodes of *cluster_state*."""
        self._cluster_state = cluster_state
        self._do_not_disrupt_by_node: Mapping[str, str] = {
            node.name: node.meta.get_annotation(DO_NOT_DISRUPT) for node in cluster_state.snapshot.nodes
        }

    def __call__(self, claim: NodeClaim) -> tuple[bool, bool, str]:
        """Return the key of *claim*."""
        pods = self._cluster_state.pods_by_node.get(claim.node_name, ())
        is_kept = self._do_not_disrupt_by_node.get(claim.node_name) == "true" or find_blocking_pod(
            pods, self._cluster_state.pdb_limits, self._cluster_state.taken_at
        )
        return bool(is_kept), not is_condition_true(claim.conditions, DRIFTED), claim.name
