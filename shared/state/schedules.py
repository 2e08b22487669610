"""Schedules applied to a snapshot: the NodePools and CapacityBuffers as they are at its time.

Every decision reads the result, and needs no rule of its own. In a snapshot without schedules nothing is changed or
computed.
"""

from datetime import datetime
from typing import TypeVar

from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import LIMIT_USD
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.core.resources import NONE, Resources
from shared.model.core.units import parse_nillable_duration
from shared.model.karpenter.capacity_buffer import CapacityBuffer
from shared.model.karpenter.node_pool import DisruptionBudget, NodePool
from shared.model.karpenter.schedule import ScheduledValues

ScheduledT = TypeVar("ScheduledT", NodePool, CapacityBuffer)


def apply_schedules(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """Return *cluster* with the schedules of its objects applied at its time; applying them again changes nothing."""
    changes: dict[str, object] = {}
    if any(pool.schedule is not None for pool in cluster.node_pools):
        changes["node_pools"] = tuple(apply_node_pool_schedule(pool, cluster.taken_at) for pool in cluster.node_pools)
    if any(buffer.schedule is not None for buffer in cluster.capacity_buffers):
        changes["capacity_buffers"] = tuple(
            apply_buffer_schedule(buffer, cluster.taken_at) for buffer in cluster.capacity_buffers
        )
    return replace(cluster, **changes) if changes else cluster


def get_usual(scheduled_object: ScheduledT) -> ScheduledT:
    """Return *scheduled_object* as its spec describes it, without its schedule."""
    usual: ScheduledT | None = scheduled_object.usual
    return scheduled_object if usual is None else usual


def apply_node_pool_schedule(pool: NodePool, at: datetime) -> NodePool:
    """Return *pool* with the values that its schedule has at *at*."""
    usual = get_usual(pool)
    values = ScheduledValues() if usual.schedule is None else usual.schedule.compute_values(at)
    if values == ScheduledValues():
        return usual
    return replace(
        usual,
        meta=_set_usd_limit(usual.meta, values.limit_usd_per_hour),
        replicas=usual.replicas if values.replicas is None else values.replicas,
        limits=_merge_limits(usual.limits, values),
        consolidation_policy=values.consolidation_policy or usual.consolidation_policy,
        consolidate_after=parse_nillable_duration(values.consolidate_after)
        if values.consolidate_after
        else usual.consolidate_after,
        budgets=tuple(DisruptionBudget(nodes=budget.nodes, reasons=budget.reasons) for budget in values.budgets)
        or usual.budgets,
        scheduled_pauses=values.paused,
        usual=usual,
    )


def apply_buffer_schedule(buffer: CapacityBuffer, at: datetime) -> CapacityBuffer:
    """Return *buffer* with the values that its schedule has at *at*; a size replaces both sizes of the spec."""
    usual = get_usual(buffer)
    values = ScheduledValues() if usual.schedule is None else usual.schedule.compute_values(at)
    if values == ScheduledValues():
        return usual
    has_size = values.replicas is not None or values.percentage is not None
    return replace(
        usual,
        replicas=values.replicas if has_size else usual.replicas,
        percentage=values.percentage if has_size else usual.percentage,
        limits=_merge_limits(usual.limits, values) or NONE,
        usual=usual,
    )


def _merge_limits(limits: Resources | None, values: ScheduledValues) -> Resources | None:
    """Return *limits* with those of *values*; zeros are kept."""
    if not values.limits:
        return limits
    amounts = dict(limits.amounts if limits is not None else ()) | dict(values.limits)
    return Resources(amounts=tuple(sorted(amounts.items())))


def _set_usd_limit(meta: ObjectMeta, limit_text: str) -> ObjectMeta:
    if not limit_text:
        return meta
    return replace(meta, annotations=build_pairs({**dict(meta.annotations), LIMIT_USD: limit_text}))
