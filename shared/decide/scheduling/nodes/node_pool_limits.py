"""NodePool limits: the remaining capacity of each limited NodePool.

Usage is counted in capacity, not allocatable. A NodeClaim without an instance counts as the largest instance type that
it may become, so that the launched node cannot exceed what was counted.
"""

from collections.abc import Iterable, Mapping

from shared.decide.scheduling.instance_types.instance_type_index import InstanceTypeIndex
from shared.decide.scheduling.nodes.existing_node import is_unlaunched, select_claim_types
from shared.decide.scheduling.templates.template_builder import find_type_index
from shared.model.core.resources import NODES, build_resources, sum_resources
from shared.model.karpenter.node_pool import NodePool
from shared.state.state_node import StateNode, compute_pool_usage


def compute_remaining_limits(
    pools: Iterable[NodePool], states: Iterable[StateNode], type_indexes: Mapping[str, InstanceTypeIndex]
) -> dict[str, dict[str, int]]:
    """Return the remaining resources of each NodePool with limits; negative if a limit was lowered."""
    all_states = list(states)
    limits_by_pool: dict[str, dict[str, int]] = {}
    for pool in pools:
        if pool.limits is not None:
            type_index = find_type_index(type_indexes, pool.node_class.name, pool.name)
            limits_by_pool[pool.name] = _compute_remaining(pool, all_states, type_index)
    return limits_by_pool


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
