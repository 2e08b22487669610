"""The gap between the cost of a fleet and the lowest possible cost: constraints are lifted one by one.

First, disruption is simulated until no step is left, with all constraints in force; then on the result with one
constraint less, and so on. Single steps cannot save the remaining difference to a completely new plan.
"""

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from cli.consolidate.steps import ConsolidationStep, take_all_steps
from cli.planning.fleet import Fleet, build_fleet, estimate_ideal_cost
from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.pauses import PauseSettings, find_pauses, list_paused_reasons
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import (
    CONSOLIDATION_MODE,
    DISRUPTION_WINDOWS,
    DO_NOT_CONSOLIDATE,
    DO_NOT_DISRUPT,
    DO_NOT_EVICT,
    EVICTION_PRICE,
    MINIMUM_SAVINGS_PERCENT,
    MINIMUM_SAVINGS_USD,
    POD_DIGEST,
    SAFE_TO_EVICT,
    SCALE_DOWN_DISABLED,
    UTILIZATION_THRESHOLD,
)
from shared.model.core.metadata import Condition, ObjectMeta
from shared.model.decisions.placement import SchedulingOptions
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_pool import NodePool
from shared.state.cluster_state import ClusterState

DRIFT_REASONS: Final = frozenset(("Drifted",))
"""Drift replaces nodes regardless of cost, so it does not make a fleet cheaper."""
ClusterAndSettings = tuple[ClusterSnapshot, DisruptionSettings]
ConstraintLift = Callable[[ClusterSnapshot, DisruptionSettings], ClusterAndSettings]
ProgressCallback = Callable[[str], None]


class CostGap(msgspec.Struct, frozen=True, kw_only=True):
    """A cause of higher cost, and how much it costs."""

    cause: str
    explanation: str
    """What the cause is, and what to do if it is not intended."""
    usd_per_hour: float


class RebalancePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The fleet today, the steps of disruption, the cost gaps and the ideal cost."""

    before: Fleet
    steps: tuple[ConsolidationStep, ...]
    """The steps that disruption would take now, without changes."""
    after_usd_per_hour: float
    gaps: tuple[CostGap, ...]
    ideal_usd_per_hour: float


def plan_rebalance(
    cluster: ClusterSnapshot,
    options: SchedulingOptions,
    settings: DisruptionSettings,
    report_progress: ProgressCallback,
) -> RebalancePlan:
    """Return the cost of *cluster*, the lowest cost found, and the gaps; *report_progress* receives the progress."""
    cluster_state = ClusterState(cluster)
    paused_reasons = list_paused_reasons(find_pauses(cluster, (), (), PauseSettings())[0]) | DRIFT_REASONS
    report_progress("simulating disruption with all constraints")
    current_state, merge_steps = take_all_steps(cluster_state, options, settings, paused_reasons)
    price = price_after_steps = build_fleet(current_state).price_usd_per_hour
    gaps: list[CostGap] = []
    for cause, (explanation, lift) in _LIFT_BY_CAUSE.items():
        report_progress(f"simulating disruption without {cause}")
        lifted_cluster, lifted_settings = lift(current_state.snapshot, settings)
        paused: Collection[str] = DRIFT_REASONS
        if (lifted_cluster, lifted_settings) != (current_state.snapshot, settings) or (
            cause == "pauses" and paused_reasons != DRIFT_REASONS
        ):
            current_state, _ = take_all_steps(ClusterState(lifted_cluster), options, lifted_settings, paused)
        settings = lifted_settings
        lifted_price = build_fleet(current_state).price_usd_per_hour
        gaps.append(CostGap(cause=cause, explanation=explanation, usd_per_hour=price - lifted_price))
        price = lifted_price
    for cause, (explanation, lift) in _REPLANNING_LIFT_BY_CAUSE.items():
        report_progress("rescheduling all pods at once")
        lifted_cluster, settings = lift(current_state.snapshot, settings)
        current_state = ClusterState(lifted_cluster)
        best_price = min(price, estimate_ideal_cost(current_state, options, settings))
        gaps.append(CostGap(cause=cause, explanation=explanation, usd_per_hour=price - best_price))
        price = best_price
    return RebalancePlan(
        before=build_fleet(cluster_state),
        steps=merge_steps(),
        after_usd_per_hour=price_after_steps,
        gaps=tuple(gaps),
        ideal_usd_per_hour=price,
    )


def _change_pools(cluster: ClusterSnapshot, change: Callable[[NodePool], NodePool]) -> ClusterSnapshot:
    return replace(cluster, node_pools=tuple(change(node_pool) for node_pool in cluster.node_pools))


def _drop_annotations(meta: ObjectMeta, *keys: str) -> ObjectMeta:
    remaining = tuple(pair for pair in meta.annotations if pair[0] not in keys)
    return meta if remaining == meta.annotations else replace(meta, annotations=remaining)


def _lift_nothing(cluster: ClusterSnapshot, settings: DisruptionSettings) -> ClusterAndSettings:
    return cluster, settings


def _lift_budgets(cluster: ClusterSnapshot, settings: DisruptionSettings) -> ClusterAndSettings:
    def remove_budgets(node_pool: NodePool) -> NodePool:
        return replace(node_pool, budgets=(), meta=_drop_annotations(node_pool.meta, DISRUPTION_WINDOWS))

    return _change_pools(cluster, remove_budgets), replace(settings, budgets=())


def _lift_quiet_period(cluster: ClusterSnapshot, settings: DisruptionSettings) -> ClusterAndSettings:
    """Treat every node as if its pods had been unchanged for long enough."""

    def mark_consolidatable(claim: NodeClaim) -> NodeClaim:
        conditions = tuple(condition for condition in claim.conditions if condition.type != "Consolidatable")
        conditions += (Condition(type="Consolidatable", status="True"),)
        return replace(claim, meta=_drop_annotations(claim.meta, POD_DIGEST), conditions=conditions)

    def remove_delay(node_pool: NodePool) -> NodePool:
        return node_pool if node_pool.consolidate_after is None else replace(node_pool, consolidate_after=timedelta())

    claims = tuple(map(mark_consolidatable, cluster.node_claims))
    return replace(_change_pools(cluster, remove_delay), node_claims=claims), settings


def _lift_protection(cluster: ClusterSnapshot, settings: DisruptionSettings) -> ClusterAndSettings:
    keys = (DO_NOT_DISRUPT, DO_NOT_CONSOLIDATE, DO_NOT_EVICT, SAFE_TO_EVICT, SCALE_DOWN_DISABLED)
    pods = tuple(replace(pod, meta=_drop_annotations(pod.meta, *keys)) for pod in cluster.pods)
    nodes = tuple(replace(node, meta=_drop_annotations(node.meta, *keys)) for node in cluster.nodes)
    return replace(cluster, pods=pods, nodes=nodes, budgets=()), settings


def _lift_policies(cluster: ClusterSnapshot, settings: DisruptionSettings) -> ClusterAndSettings:
    def allow_consolidation(node_pool: NodePool) -> NodePool:
        meta = _drop_annotations(node_pool.meta, *_SAVINGS_ANNOTATIONS)
        return replace(
            node_pool, consolidation_policy="WhenEmptyOrUnderutilized", consolidate_after=timedelta(), meta=meta
        )

    return _change_pools(cluster, allow_consolidation), replace(settings, spot_to_spot=True, eviction_price_usd=0.0)


def _lift_limits(cluster: ClusterSnapshot, settings: DisruptionSettings) -> ClusterAndSettings:
    return _change_pools(cluster, lambda node_pool: replace(node_pool, limits=None)), settings


_SAVINGS_ANNOTATIONS: Final = (
    CONSOLIDATION_MODE,
    EVICTION_PRICE,
    MINIMUM_SAVINGS_PERCENT,
    MINIMUM_SAVINGS_USD,
    UTILIZATION_THRESHOLD,
)
_LIFT_BY_CAUSE: Final[dict[str, tuple[str, ConstraintLift]]] = {
    "pauses": ("disruption is paused: `joiner resume` ends the pause", _lift_nothing),
    "budgets": ("disruption budgets and windows; closed windows open as scheduled", _lift_budgets),
    "consolidateAfter": ("pods changed recently: consolidateAfter has not elapsed yet", _lift_quiet_period),
    "protection": ("do-not-disrupt on nodes and pods, and PodDisruptionBudgets", _lift_protection),
    "policies": (
        "consolidationPolicy, consolidateAfter: Never, minimum savings, eviction price, spot-to-spot consolidation",
        _lift_policies,
    ),
}
_REPLANNING_LIFT_BY_CAUSE: Final[dict[str, tuple[str, ConstraintLift]]] = {
    "steps": ("savings that need many replacements at once; no single step saves money", _lift_nothing),
    "limits": ("limits of NodePools", _lift_limits),
}
