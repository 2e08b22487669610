"""The services of `mixed` in an account with commitments: both capacity types are allowed for most services.

The commitments would pay for about half of the services on a weekday if all of them ran on demand. Their rates are
synthetic: 40 % below the on-demand price for Reserved Instances, 35 % and 27 % for Savings Plans.
"""

from datetime import datetime
from typing import Final

import msgspec

from sim.cloud.resources.commitments import AccountCommitments
from sim.soak.worlds import mixed
from sim.soak.worlds.soak_workloads import SERVICES_POOL, SoakNodePool
from sim.soak.worlds.world_definition import WorldDefinition

RESERVED_COUNT: Final = 6
"""At size 1: regional Reserved Instances of m6i.large."""
INSTANCE_PLAN_USD_PER_HOUR: Final = 0.30
"""At size 1: an EC2 Instance Savings Plan for c6i."""
COMPUTE_PLAN_USD_PER_HOUR: Final = 0.40
"""At size 1."""


def add_commitments(account: AccountCommitments, size: float, now: datetime) -> None:
    """Add the commitments of a cluster of *size*."""
    account.add_reserved("m6i.large", max(1, round(size * RESERVED_COUNT)), now, discount=0.40)
    account.add_plan(size * INSTANCE_PLAN_USD_PER_HOUR, now, family="c6i", discount=0.35)
    account.add_plan(size * COMPUTE_PLAN_USD_PER_HOUR, now, discount=0.27)


def _allow_spot(pool: SoakNodePool) -> SoakNodePool:
    """Return *pool*; if it is the NodePool of the services, it also allows spot."""
    return msgspec.structs.replace(pool, capacity_types=("spot", "on-demand")) if pool.name == SERVICES_POOL else pool


COMMITTED_WORLD: Final = WorldDefinition(
    name="committed",
    description="the world mixed in an account with Savings Plans and Reserved Instances",
    node_pools=tuple(map(_allow_spot, mixed.NODE_POOLS)),
    list_services=mixed.list_services,
    build_churn=mixed.build_churn,
    add_commitments=add_commitments,
)
