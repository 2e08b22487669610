"""Disruptions that budgets still allow, by NodePool and reason, while a run selects one node after the other."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from shared.decide.disruption.budgets.budget import (
    UNLIMITED_DISRUPTIONS,
    AllowedDisruptions,
    DisruptionCount,
    compute_allowed_disruptions,
    compute_min_allowed,
    count_disruptions,
)
from shared.decide.disruption.budgets.cluster_settings import BUDGETS_SETTING, DisruptionSettings
from shared.decide.disruption.candidates import Candidate
from shared.model.core.calendar.time_zones import get_time_zone
from shared.model.core.formatting import format_count
from shared.model.karpenter.node_pool import NodePool
from shared.state.cluster_state import ClusterState

_DISRUPTING_TEXT: Final = "terminating or not Ready"


class BudgetTracker:
    """Tracks what budgets still allow; budgets of the cluster count the nodes of all NodePools."""

    def __init__(
        self,
        cluster_state: ClusterState,
        settings: DisruptionSettings,
        command_nodes: frozenset[str],
        reserved_by_pool: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Count the nodes; *command_nodes*: names of nodes in running commands.

        *reserved_by_pool*: further disruptions.
        """
        self._cluster_state, self._settings, self._command_nodes = cluster_state, settings, command_nodes
        self._count_by_pool = count_disruptions(cluster_state.nodes, command_nodes)
        self._cluster_count = DisruptionCount(
            total=sum(count.total for count in self._count_by_pool.values()),
            disrupting=sum(count.disrupting for count in self._count_by_pool.values()),
        )
        self._reserved_by_pool: dict[str, int] = dict(reserved_by_pool)
        self._allowed_by_key: dict[tuple[str, str], AllowedDisruptions] = {}

    def fork_tracker(self) -> "BudgetTracker":
        """Return a copy that continues to count independently."""
        return BudgetTracker(self._cluster_state, self._settings, self._command_nodes, self._reserved_by_pool)

    def count_remaining(self, pool: NodePool, reason: str) -> int:
        """Return how many more nodes of *pool* may be disrupted for *reason*."""
        pool_count, reserved_count = (
            self._count_by_pool.get(pool.name, DisruptionCount()),
            self._reserved_by_pool.get(pool.name, 0),
        )
        pool_remaining = self.get_allowed(pool, reason).count - pool_count.disrupting - reserved_count
        return max(min(pool_remaining, self._count_remaining_in_cluster(reason)), 0)

    def reserve(self, targets: Iterable[Candidate]) -> None:
        """Count *targets* as disrupted."""
        for target in targets:
            self._reserved_by_pool[target.pool.name] = self._reserved_by_pool.get(target.pool.name, 0) + 1

    def release(self, targets: Iterable[Candidate]) -> None:
        """Stop counting *targets*, which were reserved, as disrupted."""
        for target in targets:
            self._reserved_by_pool[target.pool.name] -= 1

    def has_budget_for(self, targets: Iterable[Candidate], reason: str) -> bool:
        """Return whether all *targets* may be disrupted together."""
        requested_by_pool: dict[str, tuple[NodePool, int]] = {}
        for target in targets:
            requested_by_pool[target.pool.name] = (
                target.pool,
                requested_by_pool.get(target.pool.name, (target.pool, 0))[1] + 1,
            )
        min_margin = min(
            (self.count_remaining(pool, reason) - count for pool, count in requested_by_pool.values()), default=0
        )
        return min_margin >= 0 and (
            len(requested_by_pool) <= 1
            or sum(count for _, count in requested_by_pool.values()) <= self._count_remaining_in_cluster(reason)
        )

    def get_allowed(self, pool: NodePool, reason: str) -> AllowedDisruptions:
        """Return what the NodePool's budgets allow, before disrupted nodes are subtracted."""
        key = (pool.name, reason)
        if key not in self._allowed_by_key:
            total = self._count_by_pool.get(pool.name, DisruptionCount()).total
            self._allowed_by_key[key] = compute_allowed_disruptions(pool, reason, total, self._cluster_state.taken_at)
        return self._allowed_by_key[key]

    def explain_exhausted_budget(self, pool: NodePool, reason: str) -> str:
        """Return which budget prevents the disruption of more nodes of *pool* for *reason*."""
        pool_allowed = self.get_allowed(pool, reason)
        if pool_allowed.problem:
            return f"NodePool {pool.name}: {pool_allowed.problem}"
        allowed_in_cluster = self._get_allowed_in_cluster(reason)
        if allowed_in_cluster.problem:
            return allowed_in_cluster.problem
        disrupting_count = self._count_by_pool.get(
            pool.name, DisruptionCount()
        ).disrupting + self._reserved_by_pool.get(pool.name, 0)
        if pool_allowed.count <= disrupting_count or allowed_in_cluster.count >= UNLIMITED_DISRUPTIONS:
            pool_text = (
                f"NodePool {pool.name} allows {format_count(pool_allowed.count, 'node')} at a time for reason {reason}"
            )
            return f"{pool_text}, {disrupting_count} are {_DISRUPTING_TEXT}"
        count, cluster_disrupting_count = (
            allowed_in_cluster.count,
            self._cluster_count.disrupting + sum(self._reserved_by_pool.values()),
        )
        cluster_text = f"the cluster allows {format_count(count, 'node')} at a time for reason {reason}"
        return f"{cluster_text}, {cluster_disrupting_count} are {_DISRUPTING_TEXT}"

    def _count_remaining_in_cluster(self, reason: str) -> int:
        """Return how many more nodes of the whole cluster may be disrupted."""
        return (
            self._get_allowed_in_cluster(reason).count
            - self._cluster_count.disrupting
            - sum(self._reserved_by_pool.values())
        )

    def _get_allowed_in_cluster(self, reason: str) -> AllowedDisruptions:
        if self._settings.problem:
            return AllowedDisruptions(count=0, problem=self._settings.problem)
        if not self._settings.budgets:
            return AllowedDisruptions(count=UNLIMITED_DISRUPTIONS)
        key = ("", reason)
        if key not in self._allowed_by_key:
            zone = get_time_zone(self._settings.time_zone)
            self._allowed_by_key[key] = compute_min_allowed(
                self._settings.budgets,
                reason,
                self._cluster_count.total,
                self._cluster_state.taken_at,
                zone,
                BUDGETS_SETTING,
            )
        return self._allowed_by_key[key]
