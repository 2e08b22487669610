"""Checks whether savings justify a disruption: NodePool thresholds, Karpenter's `Balanced` policy, and its cost.

Balanced: the share of the NodePool's cost that a command saves must be at least half the share of the NodePool's
disruption that it causes. Only NodePools with that policy are checked; the NodePool of the nodes that receive the pods
is not.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Final

import msgspec

from shared.decide.disruption.budgets.node_pool_annotations import (
    NodePoolDisruptionAnnotations,
    parse_disruption_annotations,
)
from shared.decide.disruption.candidates import Candidate, compute_reschedule_cost
from shared.decide.disruption.savings.command_value import CommandValue, compute_command_value
from shared.decide.disruption.savings.disruption_cost import DisruptionPrices, EvictionCosts
from shared.decide.disruption.savings.refusal import ReplacementRefusal
from shared.decide.disruption.savings.remaining_run_time import RemainingRunTimes, limit_to_expected_end
from shared.decide.disruption.savings.savings_duration import find_launch_times
from shared.decide.disruption.savings.workload_forecast import ForecastDurations
from shared.model.core.formatting import format_usd_per_hour
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.decisions.pod_run_time import RunTimeRecord
from shared.model.decisions.workload_history import DemandForecast
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode

BALANCED_POLICY: Final = "Balanced"
MIN_BALANCED_SCORE_RATIO: Final = 0.5
"""1/k with k = 2."""
FREE: Final = DisruptionPrices()
"""Neither evictions nor launches cost anything."""
_DELETION_PERCENT: Final = 100
"""Only a deletion saves the whole price: even a node in a capacity reservation has a price."""
_PRICE_ERROR_RATIO: Final = 1e-12
"""Rounding error of summed prices; far below the price of any replacement."""


class NodePoolTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Total cost of a NodePool: USD per hour, and the disruption of all its nodes."""

    price_usd_per_hour: float
    disruption_cost: float


class BalancedEvaluator:
    """Decides whether a saving justifies the disruption of its targets."""

    def __init__(
        self,
        cluster_state: ClusterState,
        candidates: Mapping[str, Candidate],
        prices: DisruptionPrices = FREE,
        forecasts: Iterable[DemandForecast] = (),
        run_times: Iterable[RunTimeRecord] = (),
    ) -> None:
        """Sum the NodePools; *candidates*: by name, whether or not a method selects them."""
        self._forecast_durations = ForecastDurations(forecasts, cluster_state)
        self._remaining_run_times = RemainingRunTimes(run_times, cluster_state.taken_at)
        self._now, self._eviction_costs = cluster_state.taken_at, EvictionCosts(prices, cluster_state.taken_at)
        self._state_by_node = cluster_state.node_by_name
        self._launch_time_by_pool = find_launch_times(cluster_state.nodes)
        pools = {candidate.pool.name: candidate.pool for candidate in candidates.values()}
        self._annotations = {name: parse_disruption_annotations(pool) for name, pool in pools.items()}
        balanced = {name for name, pool in pools.items() if pool.consolidation_policy == BALANCED_POLICY}
        self._totals = {name: _compute_totals(name, cluster_state, candidates) for name in sorted(balanced)}

    def evaluate(
        self, targets: Sequence[Candidate], savings_usd_per_hour: float, receivers: Iterable[str] = ()
    ) -> CommandValue | ReplacementRefusal:
        """Return the value of disrupting *targets*, or why they should stay despite *savings_usd_per_hour*.

        *receivers*: names of the existing nodes that receive their pods.
        """
        committed_names = sorted(target.name for target in targets if target.is_committed and not target.is_empty())
        if committed_names:
            message = f"Savings Plans or Reserved Instances pay for {committed_names[0]}: removing it saves nothing"
            return ReplacementRefusal(reason="Committed", message=message)
        price_usd_per_hour = sum(candidate.price_usd_per_hour for candidate in targets)
        for name in sorted({candidate.pool.name for candidate in targets}):
            refusal = _check_thresholds(self._annotations[name], savings_usd_per_hour, price_usd_per_hour)
            if refusal is None and name in self._totals:
                refusal = self._check_balanced(name, targets, savings_usd_per_hour, price_usd_per_hour)
            if refusal is not None:
                return refusal
        removed_share = savings_usd_per_hour / price_usd_per_hour if price_usd_per_hour > 0 else 1.0
        value = compute_command_value(
            targets,
            savings_usd_per_hour,
            self._eviction_costs,
            self._now,
            self._launch_time_by_pool,
            forecast_duration=self._forecast_durations.estimate(targets, removed_share),
            receivers=[self._state_by_node[name] for name in sorted(set(receivers))],
        )
        limited_value = limit_to_expected_end(value, self._remaining_run_times.estimate(targets))
        if isinstance(limited_value, ReplacementRefusal) or limited_value.is_worthwhile():
            return limited_value
        return ReplacementRefusal(reason="PaybackPending", message=value.format_refusal(self._now))

    def compute_score(self, pool: str, targets: Iterable[Candidate], saved: float, price: float) -> float:
        """Return the saved share of *pool*'s cost divided by the share of its disruption."""
        pool_targets = [candidate for candidate in targets if candidate.pool.name == pool]
        pool_price = sum(candidate.price_usd_per_hour for candidate in pool_targets)
        pool_savings = saved * pool_price / price if price > 0 else saved
        total = self._totals[pool]
        if total.price_usd_per_hour <= 0 or total.disruption_cost <= 0:
            return 0.0
        savings_ratio = pool_savings / total.price_usd_per_hour
        disruption_ratio = sum(candidate.reschedule_cost for candidate in pool_targets) / total.disruption_cost
        if savings_ratio <= 0:
            return 0.0
        return savings_ratio / disruption_ratio if disruption_ratio else inf

    def _check_balanced(
        self, pool: str, targets: Sequence[Candidate], saved: float, price: float
    ) -> ReplacementRefusal | None:
        score = self.compute_score(pool, targets, saved, price)
        if score >= MIN_BALANCED_SCORE_RATIO:
            return None
        message = (
            f"saves {format_usd_per_hour(saved)} with a score of {score:.2f}, "
            f"but policy Balanced requires {MIN_BALANCED_SCORE_RATIO}"
        )
        return ReplacementRefusal(reason="NotBalanced", message=message)


def _check_thresholds(
    annotations: NodePoolDisruptionAnnotations, saved: float, price: float
) -> ReplacementRefusal | None:
    min_savings_usd_per_hour = annotations.minimum_usd_per_hour
    if saved < min_savings_usd_per_hour:
        message = (
            f"saves {format_usd_per_hour(saved)}, less than the threshold of "
            f"{format_usd_per_hour(min_savings_usd_per_hour)}"
        )
        return ReplacementRefusal(reason="BelowThreshold", message=message)
    if saved < price * (annotations.minimum_percent / 100) - price * _PRICE_ERROR_RATIO:
        message = (
            f"saves {100 * saved / price:.0f}%, less than the threshold of {annotations.minimum_percent:g}%"
            if annotations.minimum_percent < _DELETION_PERCENT
            else f"a replacement saves less than the threshold of {_DELETION_PERCENT}%: only deletion is allowed"
        )
        return ReplacementRefusal(reason="BelowThreshold", message=message)
    return None


def _compute_totals(pool: str, cluster_state: ClusterState, candidates: Mapping[str, Candidate]) -> NodePoolTotals:
    price, disruption_cost = 0.0, 0.0
    for state in cluster_state.nodes:
        if state.claim is not None and _has_price_labels(state, pool):
            price += cluster_state.price_list.get_price(state.claim.meta, state.claim.node_class.name)
        if state.pool == pool:
            candidate = candidates.get(state.name)
            disruption_cost += (
                candidate.reschedule_cost if candidate is not None else compute_reschedule_cost(state.pods)
            )
    if price <= 0:
        price = sum(
            pool_candidate.price_usd_per_hour
            for pool_candidate in candidates.values()
            if pool_candidate.pool.name == pool
        )
    return NodePoolTotals(price_usd_per_hour=price, disruption_cost=disruption_cost)


def _has_price_labels(state: StateNode, pool: str) -> bool:
    claim = state.claim
    if claim is None or claim.meta.get_label(NODEPOOL) != pool:
        return False
    return all(claim.meta.get_label(key) for key in (INSTANCE_TYPE, ZONE, CAPACITY_TYPE))
