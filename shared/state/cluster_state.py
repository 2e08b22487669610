"""The cluster snapshot, indexed once: every decision of a cycle reads this index instead of building its own."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property

from shared.model.cloud_provider.zonal_shift import ZonalShift
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import ZONE
from shared.model.core.metadata import ObjectMeta
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.pod import Pod
from shared.state.commitments.node_coverage import CommitmentLedger, build_commitment_ledger
from shared.state.daemon_set_pods import with_daemon_representatives
from shared.state.node_claim_state import NodeClaimState, build_claim_states
from shared.state.node_prices import PriceList
from shared.state.pdb_limits import PdbLimits, build_pdb_limits
from shared.state.state_node import StateNode, build_state_nodes, group_pods_by_node
from shared.state.surge_drain import SurgeDrains
from shared.state.zones.zonal_shifts import find_shifted_zones


class ClusterState:
    """Indexes of one snapshot; each is computed when it is read for the first time, and never changes.

    A decision that changes the snapshot makes a new one.
    """

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        """Index *snapshot*."""
        self.snapshot = snapshot

    @property
    def taken_at(self) -> datetime:
        """The time of the snapshot."""
        return self.snapshot.taken_at

    @cached_property
    def nodes(self) -> tuple[StateNode, ...]:
        """The state nodes, sorted by name."""
        return build_state_nodes(self.snapshot, self.pods_by_node)

    @cached_property
    def node_by_name(self) -> Mapping[str, StateNode]:
        """The state nodes by name."""
        return {state.name: state for state in self.nodes}

    @cached_property
    def node_by_claim(self) -> Mapping[str, StateNode]:
        """The state nodes by the name of their NodeClaim."""
        return {state.claim.name: state for state in self.nodes if state.claim is not None}

    @cached_property
    def claim_states(self) -> tuple[NodeClaimState, ...]:
        """The NodeClaims of supported node classes with their Nodes and pods, sorted by name."""
        return build_claim_states(self.snapshot, self.pods_by_node)

    @cached_property
    def pods_by_node(self) -> Mapping[str, tuple[Pod, ...]]:
        """The bound pods by the name of their Node, in the order of the snapshot."""
        return group_pods_by_node(self.snapshot.pods)

    @cached_property
    def node_pools(self) -> Mapping[str, NodePool]:
        """The NodePools of supported node classes, by name."""
        return {pool.name: pool for pool in self.snapshot.node_pools if pool.node_class.is_supported()}

    @cached_property
    def pdb_limits(self) -> PdbLimits:
        """What the PodDisruptionBudgets allow."""
        return build_pdb_limits(self.snapshot.budgets)

    @cached_property
    def surge_drains(self) -> SurgeDrains:
        """The surge drains of Deployments."""
        return SurgeDrains(self.snapshot, self.pdb_limits)

    @cached_property
    def shifted_zones(self) -> Mapping[str, ZonalShift]:
        """The active zonal shifts by the name of their zone."""
        return find_shifted_zones(self.snapshot)

    def find_zonal_shift(self, meta: ObjectMeta) -> ZonalShift | None:
        """Return the zonal shift of the zone in which the NodeClaim or Node *meta* is; None if there is none."""
        return self.shifted_zones.get(meta.get_label(ZONE)) if self.shifted_zones else None

    @cached_property
    def price_list(self) -> PriceList:
        """The prices of the catalog."""
        return PriceList(self.snapshot.catalog)

    @cached_property
    def commitment_ledger(self) -> CommitmentLedger | None:
        """The active commitments of the account; None if there are none."""
        return build_commitment_ledger(self.snapshot.catalog, self.taken_at)

    @cached_property
    def covered_parts(self) -> Mapping[str, float]:
        """By node: the part of its on-demand price that commitments pay, if they pay any."""
        return {} if self.commitment_ledger is None else self.commitment_ledger.compute_covered_parts(self.nodes)

    def get_marginal_price(self, state: StateNode, node_class: str) -> float:
        """Return what *state* adds to the bill; 0 if its price is unknown, or if commitments pay all of it.

        The price of a NodeOverlay takes precedence.
        """
        offering = self.price_list.find_offering(state.meta, node_class)
        if offering is None:
            return 0.0
        covered_part = 0.0 if offering.is_overlaid else self.covered_parts.get(state.name, 0.0)
        return offering.price_usd_per_hour * (1 - covered_part)

    @cached_property
    def unreadable_pod_by_node(self) -> Mapping[str, str]:
        """By Node: the name of a pod there that cannot be read."""
        pod_by_node: dict[str, str] = {}
        for problem in sorted(self.snapshot.problems):
            if problem.kind == "Pod" and problem.node:
                pod_by_node.setdefault(problem.node, problem.name)
        return pod_by_node

    @cached_property
    def planning_snapshot(self) -> ClusterSnapshot:
        """The snapshot with DaemonSets that request what their newest pods do."""
        return with_daemon_representatives(self.snapshot)
