"""Node scores of kube-scheduler: more free resources, balanced use, preferred labels."""

from typing import Final, TypeAlias

from shared.decide.scheduling.constraints.topology_constraint import NodeDomains, is_blocked
from shared.model.core.requirements import Requirement, Requirements
from shared.model.core.taints import find_untolerated_taint
from shared.model.kubernetes.pod import PodSpec

CpuMemory: TypeAlias = tuple[int, int]
"""CPU in millicores, and memory in bytes."""
DEFAULT_NONZERO_REQUESTS: Final = (100, 200 * 1024 * 1024)
"""Amounts that kube-scheduler assumes in scores for a pod without requests."""
MAX_NODE_SCORE: Final = 100


def score_labels_and_taints(spec: PodSpec, terms: tuple[Requirements, ...], node_domains: NodeDomains) -> int | None:
    """Return the score of the labels and taints of a node for pods with *spec*; None if they exclude the pods.

    This part of the score does not change while pods are placed.
    """
    if is_blocked(node_domains.taints, spec.tolerations):
        return None
    if not any(_can_satisfy(node_domains, term) for term in terms):
        return None
    preferred = spec.preferred_terms
    preferred_weight = sum(term.weight for term in preferred if _can_satisfy(node_domains, term.requirements))
    max_weight = sum(term.weight for term in preferred) or 1
    soft = (taint for taint in node_domains.taints if taint.effect == "PreferNoSchedule")
    avoided = find_untolerated_taint(soft, spec.tolerations) is not None
    return 2 * MAX_NODE_SCORE * preferred_weight // max_weight - 3 * MAX_NODE_SCORE * avoided


def _can_satisfy(node_domains: NodeDomains, requirements: Requirements) -> bool:
    return all(_is_satisfied(node_domains.by_key.get(item.key), item) for item in requirements)


def _is_satisfied(node_requirement: Requirement | None, item: Requirement) -> bool:
    return item.is_tolerant() if node_requirement is None else node_requirement.has_intersection(item)


def score_node(requested: CpuMemory, total: CpuMemory, used: CpuMemory, nonzero_used: CpuMemory) -> int:
    """Return kube-scheduler's score of the free resources: 0 to 200.

    Pairs are CPU and memory: *requested* by the pod, what the node has in *total*, what is *used*, and *nonzero_used*,
    which assumes default amounts for pods without requests.
    """
    (cpu, memory), (total_cpu, total_memory) = requested, total
    free = _compute_free_percent(total_cpu - nonzero_used[0] - (cpu or DEFAULT_NONZERO_REQUESTS[0]), total_cpu)
    free += _compute_free_percent(
        total_memory - nonzero_used[1] - (memory or DEFAULT_NONZERO_REQUESTS[1]), total_memory
    )
    if not cpu and not memory:
        return free // 2
    change = (
        MAX_NODE_SCORE // 2 + _score_balance((used[0] + cpu, used[1] + memory), total) - _score_balance(used, total)
    )
    return free // 2 + MAX_NODE_SCORE // 2 + (change // 2 if change >= 0 else -(-change // 2))


def _compute_free_percent(free: int, total: int) -> int:
    return max(0, free) * MAX_NODE_SCORE // total if total else 0


def _score_balance(used: CpuMemory, total: CpuMemory) -> int:
    """Return the balance of CPU and memory use, from 50 (unequal) to 100 (equal)."""
    if not total[0] or not total[1]:
        return MAX_NODE_SCORE
    cpu, memory = min(1.0, used[0] / total[0]), min(1.0, used[1] / total[1])
    return int((1 - abs((cpu - memory) / 2)) * MAX_NODE_SCORE)
