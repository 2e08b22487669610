"""Prices of nodes as limits in USD per hour count them, in millionths of a USD per hour.

The price of a node is that of its offering and of its volumes. Volumes are those that the EC2NodeClass maps, else the
default ones of the AMI family; a volume without a size has the size of its image, which is not known, and counts as 0.
"""

from collections.abc import Iterable, Mapping

import msgspec

from shared.decide.launch.ami_families.ami_family import AMI_FAMILIES
from shared.model.cloud_provider.instance_type import InstanceType, Offering
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import ON_DEMAND
from shared.model.core.resources import USD_PER_HOUR, Resources, build_resources
from shared.model.core.units import HOURS_PER_MONTH
from shared.model.ec2.launch_template import BlockDevice
from shared.model.karpenter.money_limit import (
    CLUSTER_SCOPE,
    GROUP_SCOPE_PREFIX,
    MoneyPolicy,
    convert_to_micro_usd,
    list_limits,
)
from shared.model.karpenter.node_class import EC2NodeClass
from shared.state.cluster_state import ClusterState
from shared.state.node_prices import PriceList
from shared.state.state_node import StateNode, compute_pool_usage


class LimitPrices:
    """Prices of offerings and of existing nodes."""

    def __init__(
        self, cluster: ClusterSnapshot, policy: MoneyPolicy, covered_parts: Mapping[str, float] | None = None
    ) -> None:
        """Index the node classes of *cluster*; *policy* selects marginal or list prices.

        *covered_parts*: by node, the part of its price that commitments pay.
        """
        self._covered_parts = covered_parts or {}
        self._uses_list_price = policy.prices == "list"
        self._price_list = PriceList(cluster.catalog)
        self._volume_price_by_class = {
            node_class.name: convert_to_micro_usd(
                sum(
                    device.volume_size_gib or 0
                    for device in node_class.block_devices or _list_default_devices(node_class)
                )
                * policy.volume_usd_per_gib_month
                / HOURS_PER_MONTH
            )
            for node_class in cluster.node_classes
        }

    def get_volume_price(self, node_class: str) -> int:
        """Return the price of the volumes of a node of *node_class*."""
        return self._volume_price_by_class.get(node_class, 0)

    def get_price(self, instance_type: InstanceType, offering: Offering, node_class: str) -> int:
        """Return the price of a node with *offering*."""
        usd_per_hour = offering.billed_usd_per_hour
        if self._uses_list_price:
            list_prices = (
                other.price_usd_per_hour for other in instance_type.offerings if other.capacity_type == ON_DEMAND
            )
            usd_per_hour = max(list_prices, default=usd_per_hour)
        return convert_to_micro_usd(usd_per_hour) + self.get_volume_price(node_class)

    def get_node_price(self, state: StateNode) -> int:
        """Return the current price of an existing node; only that of its volumes if its offering is unknown.

        What commitments pay for does not count as a marginal price.
        """
        node_class = state.claim.node_class.name if state.claim is not None else ""
        offering = self._price_list.find_offering(state.meta, node_class)
        instance_type = self._price_list.find_type(state.meta, node_class)
        if offering is None or instance_type is None:
            return self.get_volume_price(node_class)
        if not self._uses_list_price and self._covered_parts.get(state.name) and not offering.is_overlaid:
            uncovered_part = 1 - self._covered_parts[state.name]
            offering = msgspec.structs.replace(
                offering, price_usd_per_hour=offering.price_usd_per_hour * uncovered_part
            )
        return self.get_price(instance_type, offering, node_class)

    def compute_usage(self, states: Iterable[StateNode], scope: str) -> Resources:
        """Return the price of the nodes of NodePool *scope*, or of all NodePools, that are not terminating."""
        price = sum(
            self.get_node_price(state)
            for state in states
            if state.pool and scope in (state.pool, CLUSTER_SCOPE) and not state.is_marked_for_deletion()
        )
        return build_resources({USD_PER_HOUR: price})


class LimitUsage(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a limit in USD per hour is used, in millionths of a USD per hour."""

    scope: str
    """The NodePool, `CLUSTER_SCOPE`, or the group after `GROUP_SCOPE_PREFIX`."""
    used: int
    limit: int

    @property
    def used_percent(self) -> float:
        """The used part; a limit of 0 is used up."""
        return 100 * self.used / self.limit if self.limit else 100.0


def apply_group(policy: MoneyPolicy, cluster: ClusterSnapshot) -> MoneyPolicy:
    """Return *policy* with what the group of *cluster* leaves to it; unchanged without a group."""
    usage = cluster.group_usage
    return policy if usage is None else msgspec.structs.replace(policy, group=usage.compute_share(cluster.taken_at))


def measure_limit_usage(cluster_state: ClusterState, policy: MoneyPolicy) -> tuple[LimitUsage, ...]:
    """Return the usage of each limit in USD per hour: of the cluster, of NodePools by name, of the group if known."""
    cluster = cluster_state.snapshot
    policy = apply_group(policy, cluster)
    limit_prices = find_limit_prices(cluster_state, policy)
    if limit_prices is None:
        return ()
    limits = {} if policy.cluster_limit is None else {CLUSTER_SCOPE: policy.cluster_limit}
    for pool in sorted(cluster.node_pools, key=lambda pool: pool.name):
        pool_limits = list_limits(pool)
        limits |= {pool.name: pool_limits[USD_PER_HOUR]} if USD_PER_HOUR in pool_limits else {}
    own_usages = tuple(
        LimitUsage(scope=scope, used=limit_prices.compute_usage(cluster_state.nodes, scope)[USD_PER_HOUR], limit=limit)
        for scope, limit in limits.items()
    )
    group = cluster.group_usage
    if group is None or group.read_error:
        return own_usages
    used = group.used_by_others + limit_prices.compute_usage(cluster_state.nodes, CLUSTER_SCOPE)[USD_PER_HOUR]
    return (*own_usages, LimitUsage(scope=f"{GROUP_SCOPE_PREFIX}{group.group}", used=used, limit=group.limit))


def compute_limit_usage(state: StateNode, limit_prices: LimitPrices | None) -> Resources:
    """Return what one node counts against the limits of its NodePool and of the cluster."""
    usage = compute_pool_usage((state,), state.pool)
    return usage if limit_prices is None else usage + limit_prices.compute_usage((state,), state.pool)


def _list_default_devices(node_class: EC2NodeClass) -> tuple[BlockDevice, ...]:
    family = AMI_FAMILIES.get(node_class.ami_family)
    return () if family is None else family.default_devices


def find_limit_prices(cluster_state: ClusterState, policy: MoneyPolicy) -> LimitPrices | None:
    """Return the prices if the cluster or one of its NodePools has a limit in USD per hour, else None."""
    cluster = cluster_state.snapshot
    has_limit = policy.effective_limit is not None or any(
        USD_PER_HOUR in list_limits(pool) for pool in cluster.node_pools
    )
    return LimitPrices(cluster, policy, cluster_state.covered_parts) if has_limit else None
