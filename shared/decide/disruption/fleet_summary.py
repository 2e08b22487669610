"""The fleet summary in the log: nodes, USD per hour and budgets, by NodePool and other groupings.

A metric for each would cost $0.30 a month; a log line costs nothing, and Logs Insights sums the lines on demand.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from shared.decide.disruption.budgets.budget import (
    BUDGET_REASONS,
    UNLIMITED_DISRUPTIONS,
    DisruptionCount,
    compute_allowed_disruptions,
    count_disruptions,
)
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE
from shared.model.karpenter.node_pool import NodePool
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode

ALL: Final = "all"
POOL: Final = "nodePool"
TYPE: Final = "instanceType"
CAPACITY: Final = "capacityType"
LABEL: Final = "label"


class FleetSummaryLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """All nodes, or the nodes of one group."""

    fleet: str
    """The grouping: one of the five constants above."""
    name: str = msgspec.field(name="group")
    """Name of the NodePool, the instance type, …; for all nodes the cluster's name."""
    nodes: int
    usd_per_hour: float
    """Nodes without a known price count as $0."""
    disrupting: int | None = None
    """Of a NodePool: nodes that are being disrupted or unhealthy, as its budgets count them."""
    allowed: int | None = None
    """How many can be disrupted at once, for the reason that allows most; None: unlimited."""


def build_fleet_summary(cluster_state: ClusterState, name: str, label: str = "") -> Iterator[FleetSummaryLine]:
    """Yield the summary lines of the cluster *name*; also by the label *label* if it is not "".

    Every NodePool has a line, also without nodes; sorted by grouping, then by name.
    """
    priced_states = [
        (state, cluster_state.price_list.get_billed_price(state.meta, state.claim.node_class.name))
        for state in cluster_state.nodes
        if state.claim is not None
    ]
    yield FleetSummaryLine(fleet=ALL, name=name, nodes=len(priced_states), usd_per_hour=_sum_prices(priced_states))
    label_by_grouping = {CAPACITY: CAPACITY_TYPE, TYPE: INSTANCE_TYPE} | ({LABEL: label} if label else {})
    for grouping, key in sorted(label_by_grouping.items()):
        for value, group_states in sorted(_group_by_label(key, priced_states).items()):
            yield FleetSummaryLine(
                fleet=grouping, name=value, nodes=len(group_states), usd_per_hour=_sum_prices(group_states)
            )
    yield from _summarize_node_pools(cluster_state.snapshot, priced_states)


def _summarize_node_pools(
    cluster: ClusterSnapshot, priced_states: Iterable[tuple[StateNode, float]]
) -> Iterator[FleetSummaryLine]:
    by_pool: dict[str, list[tuple[StateNode, float]]] = defaultdict(list)
    for state, price in priced_states:
        by_pool[state.pool].append((state, price))
    disruption_counts = count_disruptions(counted_state for counted_state, _ in priced_states)
    pools = {pool.name: pool for pool in cluster.node_pools}
    for name in sorted({*by_pool, *pools}):
        pool_states, disruption_count = by_pool[name], disruption_counts.get(name, DisruptionCount())
        yield FleetSummaryLine(
            fleet=POOL,
            name=name,
            nodes=len(pool_states),
            usd_per_hour=_sum_prices(pool_states),
            disrupting=disruption_count.disrupting,
            allowed=_compute_allowed_disruptions(pools[name], disruption_count, cluster) if name in pools else None,
        )


def _compute_allowed_disruptions(
    pool: NodePool, disruption_count: DisruptionCount, cluster: ClusterSnapshot
) -> int | None:
    max_count = max(
        compute_allowed_disruptions(pool, reason, disruption_count.total, cluster.taken_at).count
        for reason in BUDGET_REASONS
    )
    return None if max_count >= UNLIMITED_DISRUPTIONS else max_count


def _group_by_label(
    key: str, priced_states: Iterable[tuple[StateNode, float]]
) -> Mapping[str, list[tuple[StateNode, float]]]:
    states_by_value: dict[str, list[tuple[StateNode, float]]] = defaultdict(list)
    for state, price in priced_states:
        states_by_value[state.meta.get_label(key) or "-"].append((state, price))
    return states_by_value


def _sum_prices(priced_states: Iterable[tuple[StateNode, float]]) -> float:
    return round(sum(price for _, price in priced_states), 6)
