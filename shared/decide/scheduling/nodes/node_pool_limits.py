"""NodePool limits: the remaining capacity of each limited NodePool, and the instance types that fit in it.

Usage is counted in capacity, not allocatable. A NodeClaim without an instance counts as the largest instance type that
it may become, so that the launched node cannot exceed what was counted.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from shared.decide.scheduling.instance_types.instance_type_index import InstanceTypeIndex
from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.nodes.existing_node import is_unlaunched, select_claim_types
from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.decide.scheduling.templates.node_claim_template import NodeClaimTemplate
from shared.decide.scheduling.templates.template_builder import find_type_index
from shared.model.core.resources import NODES, build_resources, sum_resources
from shared.model.karpenter.node_pool import NodePool
from shared.state.state_node import StateNode, compute_pool_usage

RemainingLimits: TypeAlias = dict[str, dict[str, int]]
"""For each NodePool with limits: what remains of each."""


def compute_remaining_limits(
    pools: Iterable[NodePool], states: Iterable[StateNode], type_indexes: Mapping[str, InstanceTypeIndex]
) -> RemainingLimits:
    """Return the remaining resources of each NodePool with limits; negative if a limit was lowered."""
    all_states = list(states)
    limits_by_pool: RemainingLimits = {}
    for pool in pools:
        if pool.limits is not None:
            type_index = find_type_index(type_indexes, pool.node_class.name, pool.name)
            limits_by_pool[pool.name] = _compute_remaining(pool, all_states, type_index)
    return limits_by_pool


def filter_types_within_limits(remaining_limits: RemainingLimits, template: NodeClaimTemplate, mask: Mask) -> Mask:
    """Return the types in *mask* that one more node may have within the limits of its NodePool."""
    limits = remaining_limits.get(template.pool.name)
    if limits is None:
        return mask
    return 0 if limits.get(NODES, 1) < 1 else mask & template.type_index.find_within_limits(without_node_limit(limits))


def filter_affordable_types(remaining_limits: RemainingLimits, node: OpenNodeClaim) -> Mask:
    """Return the types that *node* may have within the limits of its NodePool."""
    type_index, limits = node.template.type_index, remaining_limits[node.template.pool.name]
    max_capacities = {
        name: amount + type_index.get_max_capacity(node.mask, name)
        for name, amount in without_node_limit(limits).items()
    }
    return type_index.find_within_limits(max_capacities)


def charge_limits(remaining_limits: RemainingLimits, template: NodeClaimTemplate, mask: Mask) -> None:
    """Subtract the largest of the types in *mask* from the limits of the NodePool, for one new node."""
    limits = remaining_limits.get(template.pool.name, {})
    for name in limits:
        limits[name] -= 1 if name == NODES else template.type_index.get_max_capacity(mask, name)


def widen_types(remaining_limits: RemainingLimits, node: OpenNodeClaim, added_types: Mask) -> None:
    """Add *added_types* to the types of *node*, and charge the limits for them."""
    type_index, limits = node.template.type_index, remaining_limits[node.template.pool.name]
    for name in without_node_limit(limits):
        limits[name] -= type_index.get_max_capacity(node.mask | added_types, name) - type_index.get_max_capacity(
            node.mask, name
        )
    node.mask |= added_types


def without_node_limit(limits: Mapping[str, int]) -> dict[str, int]:
    """Return *limits* without the limit of the number of nodes."""
    return {name: amount for name, amount in limits.items() if name != NODES}


def _compute_remaining(pool: NodePool, states: list[StateNode], type_index: InstanceTypeIndex | None) -> dict[str, int]:
    limits = dict(pool.limits.amounts) if pool.limits is not None else {}
    used = compute_pool_usage((state for state in states if not is_unlaunched(state)), pool.name)
    unlaunched_claims = [
        state.claim
        for state in states
        if state.claim is not None
        and is_unlaunched(state)
        and state.pool == pool.name
        and not state.is_marked_for_deletion()
    ]
    for claim in unlaunched_claims:
        mask = 0 if type_index is None else select_claim_types(claim, type_index)
        max_capacity = (
            {name: type_index.get_max_capacity(mask, name) for name in limits}
            if type_index is not None and mask
            else {}
        )
        used = sum_resources((used, build_resources((max_capacity or dict(claim.requests.amounts)) | {NODES: 1})))
    return {name: limit - used[name] for name, limit in limits.items()}
