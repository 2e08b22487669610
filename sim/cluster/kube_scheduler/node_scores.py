"""Score plugins that depend on one node only, and their weights."""

from typing import Final

from sim.cluster.kube_scheduler.node_cache import NodeInfo
from sim.cluster.kube_scheduler.pod_shape import SchedulingShape
from sim.cluster.matching import find_untolerated_taint

_SCORED_RESOURCES: Final = ("cpu", "memory")
_NODE_AFFINITY_SCORE_WEIGHT: Final = 2
_TAINT_TOLERATION_SCORE_WEIGHT: Final = 3


def score_node(shape: SchedulingShape, node: NodeInfo) -> int:
    """Return the score of *node* for *shape*.

    It is made of free cpu and memory, their balance, preferred node affinity and PreferNoSchedule taints.
    """
    free_percents = [_compute_free_percent(node, position, shape.score_requests[position]) for position in (0, 1)]
    matched_weight = sum(weight for weight, matches in shape.preferred_node_terms if matches(node.name, node.labels))
    total_weight = sum(weight for weight, _ in shape.preferred_node_terms) or 1
    has_untolerated_taint = find_untolerated_taint(node.taints, shape.tolerations, ("PreferNoSchedule",)) is not None
    return (
        sum(free_percents) // 2
        + _score_balanced_allocation(shape, node)
        + _NODE_AFFINITY_SCORE_WEIGHT * 100 * matched_weight // total_weight
        - _TAINT_TOLERATION_SCORE_WEIGHT * 100 * has_untolerated_taint
    )


def _score_balanced_allocation(shape: SchedulingShape, node: NodeInfo) -> int:
    """Return how much the pod improves the balance between the used fractions of cpu and memory."""
    requested = tuple(shape.requests.get(name, 0) for name in _SCORED_RESOURCES)
    if not any(requested):
        return 0
    balance_before = _compute_balance(node, (0, 0))
    change = 50 + _compute_balance(node, requested) - balance_before
    return 50 + (change // 2 if change >= 0 else -(-change // 2))


def _compute_balance(node: NodeInfo, added: tuple[int, ...]) -> int:
    used_fractions = [
        min(1.0, (node.used.get(name, 0) + extra) / node.allocatable[name])
        for name, extra in zip(_SCORED_RESOURCES, added, strict=True)
        if node.allocatable.get(name)
    ]
    deviation = (
        abs((used_fractions[0] - used_fractions[1]) / 2) if len(used_fractions) == len(_SCORED_RESOURCES) else 0.0
    )
    return int((1 - deviation) * 100)


def _compute_free_percent(node: NodeInfo, position: int, requested: int) -> int:
    total = node.allocatable.get(_SCORED_RESOURCES[position], 0)
    return max(0, total - node.used_scored[position] - requested) * 100 // total if total else 0
