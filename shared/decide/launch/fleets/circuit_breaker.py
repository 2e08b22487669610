"""The launch circuit breaker, which limits launches in case of a wrong pod spec or a bug in Joiner.

Without it, such a fault could exhaust the account's quota or budget within minutes. Launch groups are recorded before
they are sent and kept for a day, so they are the only input. Nodes are counted over a minute. Cost is summed over an
hour: USD per hour of all instances started within the last hour, at the price of the offering that EC2 chose, or of the
cheapest one until EC2 has responded. The breaker closes without intervention as launches leave the window.

Instances that EC2 ends before their nodes register (a KMS key, an EBS quota) would be replaced every few seconds, and
so count too: the lifecycle records them in an annotation of the NodePool.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.model.cloud_provider.launch_group import LaunchGroup, get_node_pool_name
from shared.model.core.formatting import format_count, format_usd_per_hour
from shared.model.core.labels import EARLY_ENDS
from shared.model.ec2.fleet import Override
from shared.model.karpenter.node_pool import NodePool

NODES_WINDOW: Final = timedelta(minutes=1)
COST_WINDOW: Final = timedelta(hours=1)
EARLY_ENDS_WINDOW: Final = timedelta(minutes=10)
MAX_EARLY_ENDS: Final = 3
"""Instances of a NodePool that EC2 may end early within `EARLY_ENDS_WINDOW`, before its launches are delayed."""


EARLY_ENDS_LIMIT: Final = "early_ends"
_EARLY_ENDS_MESSAGE: Final = (
    f"launch circuit breaker: EC2 ended {MAX_EARLY_ENDS} instances of NodePool {{node_pool}} within 10m before their "
    "nodes registered; further launches are delayed; to fix: see the event InstanceEndedEarly of the NodePool"
)


class CircuitBreakerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Maximum launches within one minute or hour; 0 means unlimited. `shared.settings` has the defaults."""

    nodes_per_minute: int = 0
    usd_per_hour: float = 0.0
    pool_nodes_per_minute: int = 0
    pool_usd_per_hour: float = 0.0


class CircuitBreakerTrip(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A limit that was exceeded, and the NodePool that exceeded it."""

    node_pool: str
    limit_name: str
    """Name of the limit's setting."""
    message: str


class CircuitBreaker:
    """Counts recent launches and the launches of the current plan."""

    def __init__(
        self,
        groups: Iterable[LaunchGroup],
        now: datetime,
        limits: CircuitBreakerLimits,
        node_pools: Iterable[NodePool] = (),
    ) -> None:
        """Count *groups*, and the early ends that *node_pools* have recorded."""
        self._limits = limits
        self._early_end_counts = {
            pool.name: len(select_recent_ends(parse_early_ends(pool), now)) for pool in node_pools
        }
        self._node_counts: dict[str, int] = {}
        self._usd_per_hour: dict[str, float] = {}
        self.trips: dict[tuple[str, str], CircuitBreakerTrip] = {}
        for group in groups:
            age = now - group.created_at
            nodes, usd = count_started(group)
            self._add_launches(
                get_node_pool_name(group.request), nodes if age < NODES_WINDOW else 0, usd if age < COST_WINDOW else 0.0
            )

    def admit_launches(self, node_pool: str, count: int, usd_per_instance: float) -> tuple[int, str]:
        """Admit the first of *count* instances.

        Return their number and the message of the limit that stops the others.
        """
        allowed, message = count, ""
        for limit_name, remaining in self._list_remaining(node_pool, usd_per_instance):
            if remaining < allowed:
                allowed = remaining
                trip = self._build_trip(node_pool, limit_name)
                self.trips[node_pool, limit_name] = trip
                message = trip.message
        self._add_launches(node_pool, allowed, allowed * usd_per_instance)
        return allowed, message

    def _list_remaining(self, node_pool: str, usd_per_instance: float) -> Iterable[tuple[str, int]]:
        limits = self._limits
        if self._early_end_counts.get(node_pool, 0) >= MAX_EARLY_ENDS:
            yield EARLY_ENDS_LIMIT, 0
        for limit_name, max_nodes, started_nodes in (
            ("nodes_per_minute", limits.nodes_per_minute, self._node_counts.get("", 0)),
            ("pool_nodes_per_minute", limits.pool_nodes_per_minute, self._node_counts.get(f"/{node_pool}", 0)),
        ):
            if max_nodes:
                yield limit_name, max(0, max_nodes - started_nodes)
        for limit_name, max_usd, started_usd in (
            ("usd_per_hour", limits.usd_per_hour, self._usd_per_hour.get("", 0.0)),
            ("pool_usd_per_hour", limits.pool_usd_per_hour, self._usd_per_hour.get(f"/{node_pool}", 0.0)),
        ):
            if max_usd and usd_per_instance > 0:
                yield limit_name, max(0, int((max_usd - started_usd) / usd_per_instance + 1e-9))

    def _build_trip(self, node_pool: str, limit_name: str) -> CircuitBreakerTrip:
        if limit_name == EARLY_ENDS_LIMIT:
            return CircuitBreakerTrip(
                node_pool=node_pool, limit_name=limit_name, message=_EARLY_ENDS_MESSAGE.format(node_pool=node_pool)
            )
        limit = getattr(self._limits, limit_name)
        scope = f"NodePool {node_pool}" if limit_name.startswith("pool") else "the cluster"
        setting = f"launch-{limit_name.replace('_', '-')}"
        amount = (
            f"{format_count(limit, 'node')} within a minute"
            if "nodes" in limit_name
            else f"instances for {format_usd_per_hour(limit)} within an hour"
        )
        message = (
            f"launch circuit breaker: {scope} has launched {amount}, the limit of {setting}; further launches are "
            f"delayed; to fix: correct the pods that need so many nodes, or raise {setting}"
        )
        return CircuitBreakerTrip(node_pool=node_pool, limit_name=limit_name, message=message)

    def _add_launches(self, node_pool: str, nodes: int, usd: float) -> None:
        for key in ("", f"/{node_pool}"):
            self._node_counts[key] = self._node_counts.get(key, 0) + nodes
            self._usd_per_hour[key] = self._usd_per_hour.get(key, 0.0) + usd


def parse_early_ends(pool: NodePool) -> Mapping[str, datetime]:
    """Return when EC2 ended instances of *pool* early, by instance id; empty if the annotation cannot be read."""
    try:
        return msgspec.json.decode(pool.meta.get_annotation(EARLY_ENDS), type=dict[str, datetime])
    except msgspec.DecodeError:
        return {}


def select_recent_ends(ends: Mapping[str, datetime], now: datetime) -> dict[str, datetime]:
    """Return the early ends that still count."""
    return {instance_id: at for instance_id, at in sorted(ends.items()) if now - at < EARLY_ENDS_WINDOW}


def count_started(group: LaunchGroup) -> tuple[int, float]:
    """Return how many instances *group* started, or may have started, and their price in USD per hour."""
    prices = {(override.instance_type, override.zone): override.priority or 0.0 for override in _list_overrides(group)}
    if group.result is None:
        return group.request.capacity, group.request.capacity * min(prices.values(), default=0.0)
    instance_prices = [prices.get((instance.instance_type, instance.zone), 0.0) for instance in group.result.instances]
    return len(instance_prices), sum(instance_prices)


def _list_overrides(group: LaunchGroup) -> list[Override]:
    return [override for config in group.request.configs for override in config.overrides]
