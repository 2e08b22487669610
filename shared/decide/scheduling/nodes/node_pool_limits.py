"""NodePool limits: the remaining capacity of each limited NodePool, and the instance types that fit in it.

Usage is counted in capacity, not allocatable. A NodeClaim without an instance counts as the largest instance type that
it may become, so that the launched node cannot exceed what was counted.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from shared.decide.launch.money.limit_prices import LimitPrices
from shared.decide.scheduling.instance_types.instance_type_index import InstanceTypeIndex
from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.instance_types.type_prices import TypePrices
from shared.decide.scheduling.nodes.existing_node import is_unlaunched, select_claim_types
from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.decide.scheduling.templates.node_claim_template import NarrowedTemplate, NodeClaimTemplate
from shared.decide.scheduling.templates.template_builder import find_type_index
from shared.model.core.resources import NODES, USD_PER_HOUR, build_resources, sum_resources
from shared.model.karpenter.money_limit import CLUSTER_SCOPE, list_limits
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_pool import NodePool
from shared.state.state_node import StateNode, compute_pool_usage

RemainingLimits: TypeAlias = dict[str, dict[str, int]]
"""For each NodePool with limits: what remains of each; for `CLUSTER_SCOPE`: of the limit of the cluster."""


def compute_remaining_limits(
    pools: Iterable[NodePool],
    states: Iterable[StateNode],
    type_indexes: Mapping[str, InstanceTypeIndex],
    type_prices: Mapping[str, TypePrices],
    limit_prices: LimitPrices | None,
    cluster_limit: int | None,
) -> RemainingLimits:
    """Return the remaining resources of each NodePool with limits; negative if a limit was lowered.

    *type_prices*, by NodePool, and *limit_prices* are needed for limits in USD per hour. With a *cluster_limit*, every
    NodePool has an entry.
    """
    all_states = list(states)
    limits_by_pool: RemainingLimits = {}
    micro_usd_used = 0
    for pool in pools:
        if pool.limits is None and limit_prices is None:
            continue
        type_index = find_type_index(type_indexes, pool.node_class.name, pool.name)
        used_usd = 0
        if limit_prices is not None:
            used_usd = _compute_price(pool, all_states, (type_index, type_prices.get(pool.name)), limit_prices)
            micro_usd_used += used_usd
        limits = list_limits(pool)
        if pool.limits is not None or USD_PER_HOUR in limits or cluster_limit is not None:
            limits_by_pool[pool.name] = _compute_remaining(pool, limits, all_states, type_index)
            if USD_PER_HOUR in limits:
                limits_by_pool[pool.name][USD_PER_HOUR] = limits[USD_PER_HOUR] - used_usd
    if cluster_limit is not None:
        limits_by_pool[CLUSTER_SCOPE] = {USD_PER_HOUR: cluster_limit - micro_usd_used}
    return limits_by_pool


def filter_types_within_limits(
    remaining_limits: RemainingLimits, template: NodeClaimTemplate, mask: Mask, state: NarrowedTemplate | None = None
) -> Mask:
    """Return the types in *mask* that one more node in *state* may have within the limits.

    Without *state*, the node has the requirements of its NodePool.
    """
    limits = remaining_limits.get(template.pool.name)
    if limits is None:
        return mask
    if limits.get(NODES, 1) < 1:
        return 0
    mask &= template.type_index.find_within_limits(select_type_limits(limits))
    usd_left = find_remaining_usd(remaining_limits, template.pool.name)
    if usd_left is None or template.type_prices is None:
        return mask
    return mask & template.type_prices.find_types_within((state or template.initial_state).requirements, usd_left)


def filter_affordable_types(remaining_limits: RemainingLimits, node: OpenNodeClaim) -> Mask:
    """Return the types that *node* may have within the limits of its NodePool."""
    template, limits = node.template, remaining_limits[node.template.pool.name]
    max_capacities = {
        name: amount + template.type_index.get_max_capacity(node.mask, name)
        for name, amount in select_type_limits(limits).items()
    }
    mask = template.type_index.find_within_limits(max_capacities)
    usd_left = find_remaining_usd(remaining_limits, template.pool.name)
    if usd_left is None or template.type_prices is None:
        return mask
    usd_left += template.type_prices.get_max_price(node.state.requirements, node.mask)
    return mask & template.type_prices.find_types_within(node.state.requirements, usd_left)


def charge_limits(
    remaining_limits: RemainingLimits, template: NodeClaimTemplate, mask: Mask, state: NarrowedTemplate
) -> None:
    """Subtract the largest of the types in *mask* from the limits, for one new node in *state*."""
    limits = remaining_limits.get(template.pool.name, {})
    for name in limits:
        if name != USD_PER_HOUR:
            limits[name] -= 1 if name == NODES else template.type_index.get_max_capacity(mask, name)
    if template.type_prices is not None:
        _charge_usd(remaining_limits, template, template.type_prices.get_max_price(state.requirements, mask))


def widen_types(remaining_limits: RemainingLimits, node: OpenNodeClaim, added_types: Mask) -> None:
    """Add *added_types* to the types of *node*, and charge the limits for them."""
    template, limits = node.template, remaining_limits[node.template.pool.name]
    for name in select_type_limits(limits):
        limits[name] -= template.type_index.get_max_capacity(
            node.mask | added_types, name
        ) - template.type_index.get_max_capacity(node.mask, name)
    charge_for_change(remaining_limits, node, node.mask | added_types, node.state)
    node.mask |= added_types


def charge_for_change(
    remaining_limits: RemainingLimits, node: OpenNodeClaim, mask: Mask, state: NarrowedTemplate
) -> bool:
    """Charge the limits in USD per hour for the higher price that *node* has with *mask* in *state*.

    Return False, and charge nothing, if that is not left.
    """
    type_prices = node.template.type_prices
    usd_left = find_remaining_usd(remaining_limits, node.template.pool.name)
    if type_prices is None or usd_left is None:
        return True
    difference = type_prices.get_max_price(state.requirements, mask) - type_prices.get_max_price(
        node.state.requirements, node.mask
    )
    if difference > max(0, usd_left):
        return False
    _charge_usd(remaining_limits, node.template, max(0, difference))
    return True


def find_remaining_usd(remaining_limits: RemainingLimits, pool: str) -> int | None:
    """Return what remains of the limits in USD per hour of *pool* and of the cluster, in millionths; None: no limit."""
    amounts = [
        remaining_limits[scope][USD_PER_HOUR]
        for scope in (pool, CLUSTER_SCOPE)
        if USD_PER_HOUR in remaining_limits.get(scope, {})
    ]
    return min(amounts, default=None)


def select_type_limits(limits: Mapping[str, int]) -> dict[str, int]:
    """Return the *limits* of resources that an instance type has: neither of nodes nor of USD."""
    return {name: amount for name, amount in limits.items() if name not in (NODES, USD_PER_HOUR)}


def _charge_usd(remaining_limits: RemainingLimits, template: NodeClaimTemplate, micro_usd: int) -> None:
    for scope in (template.pool.name, CLUSTER_SCOPE):
        limits = remaining_limits.get(scope, {})
        if USD_PER_HOUR in limits:
            limits[USD_PER_HOUR] -= micro_usd


def _compute_remaining(
    pool: NodePool, limits: Mapping[str, int], states: list[StateNode], type_index: InstanceTypeIndex | None
) -> dict[str, int]:
    used = compute_pool_usage((state for state in states if not is_unlaunched(state)), pool.name)
    for claim in _list_unlaunched_claims(pool, states):
        mask = 0 if type_index is None else select_claim_types(claim, type_index)
        max_capacity = (
            {name: type_index.get_max_capacity(mask, name) for name in limits}
            if type_index is not None and mask
            else {}
        )
        used = sum_resources((used, build_resources((max_capacity or dict(claim.requests.amounts)) | {NODES: 1})))
    return {name: limit - used[name] for name, limit in limits.items()}


def _compute_price(
    pool: NodePool,
    states: list[StateNode],
    type_data: tuple[InstanceTypeIndex | None, TypePrices | None],
    limit_prices: LimitPrices,
) -> int:
    """Return the price of the nodes of *pool*; a NodeClaim without an instance has that of its most expensive type."""
    type_index, type_prices = type_data
    launched_states = (state for state in states if not is_unlaunched(state))
    price = limit_prices.compute_usage(launched_states, pool.name)[USD_PER_HOUR]
    if type_index is None or type_prices is None:
        return price
    return price + sum(
        type_prices.get_max_price(claim.requirements, select_claim_types(claim, type_index))
        for claim in _list_unlaunched_claims(pool, states)
    )


def _list_unlaunched_claims(pool: NodePool, states: Iterable[StateNode]) -> list[NodeClaim]:
    return [
        state.claim
        for state in states
        if state.claim is not None
        and is_unlaunched(state)
        and state.pool == pool.name
        and not state.is_marked_for_deletion()
    ]
