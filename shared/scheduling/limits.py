"""What is left of the limits of NodePools, in raw capacity.

A claim without an instance counts as the largest type it may become: what comes cannot exceed what was reckoned with.
"""

from collections.abc import Iterable, Mapping

from shared.model.nodepools import NodePool
from shared.model.resources import NODES, resources, total
from shared.model.state import StateNode, pool_usage
from shared.scheduling.shelf import Shelf
from shared.scheduling.standing import is_unlaunched, types_of
from shared.scheduling.templates import shelf_for


def remaining(
    pools: Iterable[NodePool], states: Iterable[StateNode], shelves: Mapping[str, Shelf]
) -> dict[str, dict[str, int]]:
    """Answer, for each pool with limits, what is left by resource; negative if a limit was lowered."""
    some = list(states)
    found: dict[str, dict[str, int]] = {}
    for pool in pools:
        if pool.limits is not None:
            shelf = shelf_for(shelves, pool.node_class.name, pool.name)
            found[pool.name] = _left(pool, some, shelf)
    return found


def _left(pool: NodePool, states: list[StateNode], shelf: Shelf | None) -> dict[str, int]:
    limits = dict(pool.limits.amounts) if pool.limits is not None else {}
    used = pool_usage((state for state in states if not is_unlaunched(state)), pool.name)
    coming = [
        state.claim
        for state in states
        if state.claim is not None and is_unlaunched(state) and state.pool == pool.name and not state.is_marked()
    ]
    for claim in coming:
        mask = 0 if shelf is None else types_of(claim, shelf)
        largest = {name: shelf.largest(mask, name) for name in limits} if shelf is not None and mask else {}
        used = total((used, resources((largest or dict(claim.requests.amounts)) | {NODES: 1})))
    return {name: limit - used[name] for name, limit in limits.items()}
