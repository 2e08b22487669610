"""Limits of the NodePools of a script: vCPUs, and how many nodes may be disrupted voluntarily at a time."""

from datetime import datetime, timedelta
from typing import Final

from sim.fault_simulation.events.script import ScriptSetup
from sim.fault_simulation.events.script_manifests import (
    CLOSED_WINDOW_MINUTES,
    MAIN_POOL,
    SCRIPT_START_MINUTE,
    SECOND_POOL,
)
from sim.fault_simulation.features.feature_manifests import LIMIT_CPU_BY_POOL, list_pools

DEFAULT_ALLOWED_DISRUPTIONS: Final = 1
"""For a NodePool without a budget of its own: 10 %, rounded up."""
CLOSED_WINDOW_TOLERANCE: Final = timedelta(seconds=100)
"""What was observed before a window began may be written within it: because of clock skew, or after a pause."""


def get_cpu_limits(setting: ScriptSetup) -> dict[str, int]:
    """Return the vCPU limit of each NodePool."""
    return get_general_cpu_limits(setting) | {name: LIMIT_CPU_BY_POOL[name] for name in list_pools(setting.features)}


def get_general_cpu_limits(setting: ScriptSetup) -> dict[str, int]:
    """Return the vCPU limit of each NodePool that is not only for the pods of a feature."""
    return {MAIN_POOL: setting.limit_cpu} | ({SECOND_POOL: setting.second_pool_cpu} if setting.second_pool_cpu else {})


def get_allowed_disruptions(setting: ScriptSetup, pool: str, nodes: int) -> int:
    """Return how many of *nodes* nodes may be disrupted at a time."""
    if pool == MAIN_POOL:
        return min(
            setting.budget, _compute_percentage(setting.budget_percent, nodes) if setting.budget_percent else nodes
        )
    return DEFAULT_ALLOWED_DISRUPTIONS


def is_closed(setting: ScriptSetup, pool: str, when: datetime) -> bool:
    """Return whether no node may have been selected for disruption at *when*."""
    if not setting.closed_after_minutes or pool != MAIN_POOL:
        return False
    window_start = when.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(
        minutes=SCRIPT_START_MINUTE + setting.closed_after_minutes
    )
    return (
        window_start + CLOSED_WINDOW_TOLERANCE
        <= when
        < window_start + timedelta(minutes=CLOSED_WINDOW_MINUTES) - CLOSED_WINDOW_TOLERANCE
    )


def _compute_percentage(percent: str, nodes: int) -> int:
    return -(-nodes * int(percent.removesuffix("%")) // 100)
