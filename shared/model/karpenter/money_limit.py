"""Limits in USD per hour: of a NodePool, in the annotation joiner.dev/limit-usd-per-hour, and of the cluster.

Money is a pseudo-resource of NodePool limits, in millionths of a USD per hour: amounts are never floats.
"""

from math import ceil
from typing import Final, Literal, TypeAlias

import msgspec

from shared.model.core.labels import LIMIT_USD
from shared.model.core.resources import USD_PER_HOUR
from shared.model.karpenter.node_pool import NodePool

CLUSTER_SCOPE: Final = "*"
"""The name of the cluster among the names of NodePools with limits."""
GROUP_SCOPE_PREFIX: Final = "group/"
"""Before the name of a group of clusters, where limits of NodePools are listed as well: their names have no slash."""
GROUP_LIMIT_FIX: Final = "group-limit-usd-per-hour in all clusters of the group"
"""What to increase if the limit of a group is reached: the lowest limit of its clusters applies."""
MICRO_USD: Final = 1_000_000
"""Millionths of a USD in a USD."""
_MAX_USD_PER_HOUR: Final = 1e6
LimitPriceKind: TypeAlias = Literal["marginal", "list"]


def format_scope(scope: str) -> str:
    """Return the name of what a limit applies to: of a NodePool, of the cluster, or of its group."""
    if scope.startswith(GROUP_SCOPE_PREFIX):
        return f"group {scope.removeprefix(GROUP_SCOPE_PREFIX)}"
    return "the cluster" if scope == CLUSTER_SCOPE else f"NodePool {scope}"


class GroupShare(msgspec.Struct, frozen=True, kw_only=True):
    """What a group of clusters leaves to one of its clusters, in millionths of a USD per hour."""

    group: str
    limit: int
    """The limit of all clusters together."""
    available: int
    """What this cluster may use at most, with what it uses already."""
    waiting_reason: str = ""
    """Why nothing is available for now; "" if the other clusters use what is not available."""


class MoneyPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The limit of the cluster, and how nodes count against limits in USD per hour."""

    cluster_limit: int | None = None
    """In millionths of a USD per hour; None: unlimited."""
    group: GroupShare | None = None
    """What the group of the cluster leaves to it when a decision is made; None: there is no group."""
    prices: LimitPriceKind = "marginal"
    """`marginal`: the price of the offering; `list`: the on-demand price of the instance type."""
    volume_usd_per_gib_month: float = 0.08

    @property
    def effective_limit(self) -> int | None:
        """What the nodes of the cluster may cost: its limit, or what its group leaves; None: unlimited."""
        limits = [] if self.cluster_limit is None else [self.cluster_limit]
        return min([*limits, *([] if self.group is None else [self.group.available])], default=None)

    @property
    def deciding_group(self) -> GroupShare | None:
        """The group if it leaves less than the limit of the cluster; None if the limit of the cluster decides."""
        return self.group if self.group is not None and self.group.available == self.effective_limit else None

    @property
    def is_waiting(self) -> bool:
        """Whether nothing is available for now, although the other clusters of the group may leave something."""
        return self.group is not None and bool(self.group.waiting_reason)


NO_CLUSTER_LIMIT: Final = MoneyPolicy()


def find_limit_problem(pool: NodePool) -> str:
    """Return the error in the limit of *pool* in USD per hour, with the fix; "" if there is none."""
    try:
        _parse_limit(pool.meta.get_annotation(LIMIT_USD))
    except ValueError as error:
        return f"{LIMIT_USD}: {error}"
    if pool.replicas is not None and pool.meta.get_annotation(LIMIT_USD):
        return f"{LIMIT_USD}: has no effect on a static NodePool: use spec.limits.nodes"
    return ""


def list_limits(pool: NodePool) -> dict[str, int]:
    """Return the limits of *pool* by resource name, with `usd-per-hour`.

    An invalid amount of USD allows nothing. Static NodePools have no limit in USD.
    """
    limits = dict(pool.limits.amounts) if pool.limits is not None else {}
    if pool.replicas is None and pool.meta.get_annotation(LIMIT_USD):
        try:
            limits[USD_PER_HOUR] = _parse_limit(pool.meta.get_annotation(LIMIT_USD))
        except ValueError:
            limits[USD_PER_HOUR] = 0
    return limits


def has_limits(pool: NodePool) -> bool:
    """Return whether *pool* limits anything."""
    return bool(list_limits(pool))


def convert_to_micro_usd(amount_usd: float) -> int:
    """Return *amount_usd* in millionths, rounded up, so that no price is underestimated."""
    return ceil(round(amount_usd * MICRO_USD, 3))


def _parse_limit(text: str) -> int:
    """Return the limit in millionths of a USD per hour; 0 for "".

    Raises:
        ValueError: *text* is not an amount.
    """
    try:
        amount = float(text) if text else 0.0
    except ValueError:
        raise ValueError(f"{text!r} is not an amount in USD per hour: write a number like 12.50") from None
    if not 0 <= amount < _MAX_USD_PER_HOUR:
        raise ValueError(f"{text!r} is not between 0 and 1,000,000 USD per hour: write a number like 12.50")
    return int(amount * MICRO_USD)
