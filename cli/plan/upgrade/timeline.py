"""When the drifted nodes of each NodePool are replaced: budgets, windows, schedules and pauses over time."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from cli.plan.upgrade.drifting_nodes import DriftingNode
from shared.decide.disruption.budgets.budget import compute_allowed_disruptions, compute_min_allowed
from shared.decide.disruption.budgets.cluster_settings import BUDGETS_SETTING, DisruptionSettings
from shared.decide.disruption.drift.drift import DRIFTED
from shared.model.cluster import ClusterSnapshot
from shared.model.core.calendar.time_zones import get_time_zone
from shared.model.core.labels import DISRUPTION_PAUSED
from shared.model.karpenter.node_pool import NodePool
from shared.model.karpenter.pause import Pause
from shared.state.pauses import list_active_pauses
from shared.state.schedules import apply_schedules

REPLACEMENT_PERIOD: Final = timedelta(minutes=5)
"""Assumed time to replace a node: launch, registration, readiness of the new node, and drain of the old one."""
PLANNED_PERIOD: Final = timedelta(days=14)
"""Nodes that cannot be replaced in this time are reported."""
IDLE_PERIOD: Final = timedelta(minutes=15)
"""While no node can be replaced, the next quarter of an hour is tried: windows begin and end then."""


class UpgradeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the deployment that limit drift."""

    disruption: DisruptionSettings = DisruptionSettings()
    pauses: tuple[Pause, ...] = ()
    """Of the setting disruption-paused."""
    drift_pause_percent: int = 0


class PoolTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """When the nodes of a NodePool are replaced."""

    allowed_now: int = 0
    """Nodes that can be replaced at once, at the beginning."""
    message: str = ""
    """Why no node can be replaced at the beginning."""
    max_at_once: int = 0
    starts_at: datetime | None = None
    """When the first node is replaced; None: not in the planned period."""
    ends_at: datetime | None = None
    """When the last node is replaced; None: not all nodes in the planned period."""
    replaced_count: int = 0


class _Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How many nodes may be replaced at one time."""

    count_by_pool: Mapping[str, int]
    message_by_pool: Mapping[str, str]
    cluster_count: int
    cluster_message: str


def plan_replacements(
    cluster: ClusterSnapshot,
    nodes: Sequence[DriftingNode],
    totals: Mapping[str, int],
    settings: UpgradeSettings,
) -> Mapping[str, PoolTimeline]:
    """Return the timeline of each NodePool of *nodes*, which are in the order of their replacement.

    *totals* are the numbers of nodes of the NodePools that percentages of budgets refer to.
    """
    names = sorted({node.node_pool for node in nodes})
    now, end = cluster.taken_at, cluster.taken_at + PLANNED_PERIOD
    limits = _find_limits(cluster, names, totals, settings, now)
    remaining, timelines = list(nodes), _begin_timelines(nodes, limits)
    while remaining and now < end:
        replaced = _choose_nodes(remaining, limits)
        replaced_names = {node.node for node in replaced}
        remaining = [node for node in remaining if node.node not in replaced_names]
        following = now + REPLACEMENT_PERIOD if replaced else _round_up(now)
        for name, count in Counter(node.node_pool for node in replaced).items():
            is_complete = not any(node.node_pool == name for node in remaining)
            timelines[name] = replace(
                timelines[name],
                starts_at=timelines[name].starts_at or now,
                ends_at=following if is_complete else None,
                max_at_once=max(timelines[name].max_at_once, count),
                replaced_count=timelines[name].replaced_count + count,
            )
        now = following
        limits = _find_limits(cluster, names, totals, settings, now)
    return timelines


def _begin_timelines(nodes: Sequence[DriftingNode], limits: _Limits) -> dict[str, PoolTimeline]:
    count_by_pool = Counter(node.node_pool for node in _choose_nodes(nodes, limits))
    return {
        name: PoolTimeline(
            allowed_now=count_by_pool[name],
            message="" if count_by_pool[name] else limits.message_by_pool[name] or limits.cluster_message,
        )
        for name in {node.node_pool for node in nodes}
    }


def _choose_nodes(nodes: Iterable[DriftingNode], limits: _Limits) -> list[DriftingNode]:
    """Return the first of *nodes* that *limits* allow at once."""
    chosen_nodes: list[DriftingNode] = []
    count_by_pool = Counter[str]()
    for node in nodes:
        is_allowed = count_by_pool[node.node_pool] < limits.count_by_pool[node.node_pool]
        if is_allowed and len(chosen_nodes) < limits.cluster_count:
            chosen_nodes.append(node)
            count_by_pool[node.node_pool] += 1
    return chosen_nodes


def _find_limits(
    cluster: ClusterSnapshot,
    names: Iterable[str],
    totals: Mapping[str, int],
    settings: UpgradeSettings,
    at: datetime,
) -> _Limits:
    cluster_then = apply_schedules(replace(cluster, taken_at=at))
    pause_by_pool = _find_pauses(cluster_then, settings)
    counts: dict[str, int] = {}
    messages: dict[str, str] = {}
    pools = {pool.name: pool for pool in cluster_then.node_pools}
    for name in names:
        counts[name], messages[name] = _find_pool_limit(pools[name], totals.get(name, 0), pause_by_pool, at)
    disruption = settings.disruption
    zone = get_time_zone(disruption.time_zone)
    allowed = compute_min_allowed(disruption.budgets, DRIFTED, sum(totals.values()), at, zone, BUDGETS_SETTING)
    return _Limits(
        count_by_pool=counts,
        message_by_pool=messages,
        cluster_count=allowed.count,
        cluster_message=f"the setting {BUDGETS_SETTING} allows {allowed.count} nodes at a time",
    )


def _find_pool_limit(pool: NodePool, total: int, pause_by_pool: Mapping[str, str], at: datetime) -> tuple[int, str]:
    pause_message = pause_by_pool.get(pool.name) or pause_by_pool.get("", "")
    if pause_message:
        return 0, f"drift is paused: {pause_message}"
    allowed = compute_allowed_disruptions(pool, DRIFTED, total, at)
    return allowed.count, allowed.problem or ("" if allowed.count else "an active budget allows 0 nodes")


def _find_pauses(cluster: ClusterSnapshot, settings: UpgradeSettings) -> dict[str, str]:
    """Return the messages of pauses of drift by NodePool; "" is the key of pauses of all NodePools."""
    pauses = {
        name: f"by the setting disruption-paused {pause.describe()}".strip()
        for pause in settings.pauses
        if DRIFTED in pause.reasons and pause.is_active(cluster.taken_at)
        for name in pause.pools or ("",)
    }
    active_pauses, _ = list_active_pauses(cluster)
    return pauses | {
        active_pause.pool: active_pause.build_message()
        for active_pause in active_pauses
        if active_pause.key == DISRUPTION_PAUSED and DRIFTED in active_pause.pause.reasons
    }


def _round_up(at: datetime) -> datetime:
    """Return the next quarter of an hour after *at*."""
    since = at.replace(minute=0, second=0, microsecond=0)
    return since + IDLE_PERIOD * ((at - since) // IDLE_PERIOD + 1)
