"""Priority under limits: whether pods of lower priority took the room of others, and what refused pods are told.

Pods are planned by size, which gives cheaper plans. Only if limits or capacity are short, and a pod is refused although
a pod of lower priority is placed, they are planned by priority.
"""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from shared.model.core.formatting import format_count
from shared.model.decisions.placement import Placement, Unschedulable, UnschedulableReason
from shared.model.kubernetes.pod import Pod

SHORTAGE_REASONS: Final[frozenset[UnschedulableReason]] = frozenset(("LimitExceeded", "MinValuesNotMet", "NoOffering"))
"""Reasons that room taken by other pods can cause: limits, instance types within limits, capacity reservations."""


def is_priority_inverted(placement: Placement, pods: Iterable[Pod]) -> bool:
    """Return whether *placement* refuses one of *pods* for a shortage, and places a pod of lower priority."""
    if not any(refused_pod.reason in SHORTAGE_REASONS for refused_pod in placement.unschedulable):
        return False
    priority_by_pod = {pod.name: pod.priority for pod in pods}
    refused_priorities = [
        priority_by_pod[refused_pod.pod]
        for refused_pod in placement.unschedulable
        if refused_pod.reason in SHORTAGE_REASONS
    ]
    placed_priorities = [priority_by_pod[name] for name in _list_placed_pods(placement)]
    return max(refused_priorities) > min(placed_priorities, default=max(refused_priorities))


def explain_priority(placement: Placement, pods: Iterable[Pod]) -> Placement:
    """Return *placement* in which pods that are refused for a shortage are told which pods took the room."""
    priority_by_pod = {pod.name: pod.priority for pod in pods}
    placed_pods = sorted(
        ((priority_by_pod[name], name) for node in placement.new_nodes for name in node.pods),
        key=lambda placed_pod: (-placed_pod[0], placed_pod[1]),
    )
    refused_pods = tuple(
        _add_higher_pods(refused_pod, priority_by_pod[refused_pod.pod], placed_pods)
        for refused_pod in placement.unschedulable
    )
    return replace(placement, unschedulable=refused_pods)


def _add_higher_pods(refused_pod: Unschedulable, priority: int, placed_pods: list[tuple[int, str]]) -> Unschedulable:
    higher_pods = [placed_pod for placed_pod in placed_pods if placed_pod[0] > priority]
    if refused_pod.reason not in SHORTAGE_REASONS or not higher_pods:
        return refused_pod
    highest_priority, example = higher_pods[0]
    taken_by = (
        f"{format_count(len(higher_pods), 'pod')} of higher priority took the room, such as {example} "
        f"(priority {highest_priority}; this pod: {priority})"
    )
    return replace(refused_pod, message=f"{refused_pod.message}; {taken_by}")


def _list_placed_pods(placement: Placement) -> list[str]:
    pod_lists = [node.pods for node in placement.new_nodes] + [fit.pods for fit in placement.existing]
    return [name for pods in pod_lists for name in pods]
