"""Literal types of the EC2 API."""

from typing import Final, Literal, TypeAlias

CapacityType: TypeAlias = Literal["spot", "on-demand", "reserved"]
InstanceState: TypeAlias = Literal["pending", "running", "shutting-down", "terminated", "stopping", "stopped"]
AllocationStrategy: TypeAlias = Literal[
    "lowest-price", "price-capacity-optimized", "capacity-optimized-prioritized", "prioritized"
]
Tenancy: TypeAlias = Literal["default", "dedicated"]
Tags: TypeAlias = tuple[tuple[str, str], ...]
"""Sorted by key."""
ReservationType: TypeAlias = Literal["", "default", "capacity-block", "interruptible"]
"""The kind of reservation a launch uses; "" for none."""
KUBERNETES_ARCH_BY_EC2_ARCH: Final = {"x86_64": "amd64", "arm64": "arm64"}
