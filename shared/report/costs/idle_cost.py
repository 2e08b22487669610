"""Idle cost: the share of a node's price for the allocatable resources that no pod requests."""

from typing import Final

from shared.model.core.resources import CPU, MEMORY, Resources
from shared.model.core.units import BYTES_PER_GIB

GIB_PER_CPU: Final = 7.5
"""How much memory costs as much as one CPU: the ratio of EC2's prices."""


def compute_idle_ratio(allocatable: Resources, used: Resources) -> float:
    """Return which part of the allocatable resources no pod requests, weighted by price: 0 to 1."""
    allocatable_value, idle_value = _compute_value(allocatable), _compute_value(allocatable - used)
    return min(max(idle_value / allocatable_value, 0.0), 1.0) if allocatable_value else 0.0


def _compute_value(resources: Resources) -> float:
    return max(resources[CPU], 0) / 1000 + max(resources[MEMORY], 0) / BYTES_PER_GIB / GIB_PER_CPU
