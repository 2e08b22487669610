"""Replacement wait: which pods of a terminating node are not evicted until their new node is ready.

If a pod is evicted before its new node is initialized, the pod runs nowhere meanwhile. So it stays until then, but no
longer than its instance: EC2 announces when it reclaims an instance, the termination grace period ends with the
deletion of the pods, and before either of them the pods keep their own grace periods. A new node that does not come at
all is waited for `MAX_REPLACEMENT_WAIT`.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from shared.decide.lifecycle.reconcile_context import LifecycleContext
from shared.model.core.labels import ENDS_AT
from shared.model.core.units import parse_instant
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_classes import is_critical, is_reschedulable, is_waiting_eviction
from shared.state.node_claim_state import NodeClaimState

MAX_REPLACEMENT_WAIT: Final = timedelta(minutes=2)
"""How long after the announcement of its drain a node waits for its pods' new nodes, however long the instance
lasts.
"""
PLANNING_DELAY: Final = timedelta(seconds=15)
"""How long after the announcement the pods of a reclaimed instance have a new place.

Another invocation of the planner may still have been running.
"""
DRAIN_MARGIN_PERIOD: Final = timedelta(seconds=15)
"""The time that a drain needs in addition to the pods' grace periods, to be noticed: three runs of the lifecycle."""
NO_WAITS: Final[Mapping[str, str]] = MappingProxyType({})


def find_reclaim_time(nodes: Iterable[Node]) -> datetime | None:
    """Return when EC2 reclaims the instance of *nodes*; None if no time was announced."""
    end_times = [at for node in nodes if (at := _parse_optional_instant(node.meta.get_annotation(ENDS_AT))) is not None]
    return min(end_times, default=None)


def find_replacement_waits(
    claim_state: NodeClaimState, context: LifecycleContext, since: datetime | None, deadline: datetime | None
) -> Mapping[str, str]:
    """Return the pods that are not evicted yet: the reason by pod name; *since* is when the drain was announced."""
    now = context.now
    waiting_pods = [pod for pod in claim_state.pods if is_waiting_eviction(pod, now)]
    if not waiting_pods or now >= compute_last_eviction_time(claim_state, waiting_pods, since or now, deadline):
        return NO_WAITS
    if not any(node.is_ready() for node in claim_state.nodes):
        return NO_WAITS  # no running pod can be kept running there
    is_unplanned = find_reclaim_time(claim_state.nodes) is not None and (since is None or now - since < PLANNING_DELAY)
    message_by_pod: dict[str, str] = {}
    for pod in waiting_pods:
        if new_claim := context.replacement_claim_by_pod.get(pod.name):
            message_by_pod[pod.name] = f"pod {pod.name} waits for replacement node {new_claim} to be ready"
        elif is_unplanned and is_reschedulable(pod):
            message_by_pod[pod.name] = f"pod {pod.name} waits for a replacement node to be planned"
    return message_by_pod


def compute_last_eviction_time(
    claim_state: NodeClaimState, waiting_pods: Iterable[Pod], since: datetime, deadline: datetime | None
) -> datetime:
    """Return the latest time for evictions, so that each pod has its grace period before the instance ends."""
    drain_time = DRAIN_MARGIN_PERIOD + _sum_grace_periods(waiting_pods)
    end_times = (find_reclaim_time(claim_state.nodes), deadline)
    return min([since + MAX_REPLACEMENT_WAIT, *(end - drain_time for end in end_times if end is not None)])


def _sum_grace_periods(waiting_pods: Iterable[Pod]) -> timedelta:
    """Return the time the pods need when each eviction group follows the previous one.

    DaemonSet pods do not count, because they end with their instance.
    """
    longest_by_criticality: dict[bool, timedelta] = {}
    for pod in waiting_pods:
        if not pod.is_daemon():
            longest_by_criticality[is_critical(pod)] = max(
                longest_by_criticality.get(is_critical(pod), timedelta()), pod.grace_period
            )
    return sum(longest_by_criticality.values(), timedelta())


def _parse_optional_instant(text: str) -> datetime | None:
    try:
        return parse_instant(text)
    except ValueError:
        return None
