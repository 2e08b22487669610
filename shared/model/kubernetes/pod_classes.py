"""Classes of pods: provisionable, reschedulable, disruptable, evictable, stuck, critical (spec-disruption 2.1)."""

from datetime import datetime, timedelta
from typing import Final

from shared.model.kubernetes.do_not_disrupt import is_pod_protected
from shared.model.kubernetes.pod import Pod

STUCK_TERMINATION_TIMEOUT: Final = timedelta(minutes=1)
CRITICAL_PRIORITY_CLASSES: Final = ("system-cluster-critical", "system-node-critical")


def is_provisionable(pod: Pod) -> bool:
    """Return whether the pod waits for a node that Joiner may launch."""
    if pod.node_name or pod.nominated_node_name or not pod.is_unschedulable():
        return False
    return not pod.meta.owners or not (pod.is_daemon() or pod.is_mirror())


def is_reschedulable(pod: Pod) -> bool:
    """Return whether the pod would need another node if its node was terminated."""
    is_recreated = pod.is_active() or (pod.is_terminating() and pod.meta.is_owned_by("apps/v1", "StatefulSet"))
    return is_recreated and not pod.is_daemon() and not pod.is_mirror()


def is_disruptable(pod: Pod, now: datetime) -> bool:
    """Return whether this pod allows a voluntary disruption of its node."""
    return not pod.is_active() or not is_pod_protected(pod, now)


def is_evictable(pod: Pod, now: datetime) -> bool:
    """Return whether the pod may be evicted with the eviction API."""
    return (
        pod.is_active() and not pod.can_tolerate_disruption() and not pod.is_mirror() and not is_pod_protected(pod, now)
    )


def is_stuck(pod: Pod, now: datetime) -> bool:
    """Return whether the pod's termination is overdue by more than a minute."""
    return pod.meta.deleted_at is not None and now - pod.meta.deleted_at > STUCK_TERMINATION_TIMEOUT


def is_waiting_eviction(pod: Pod, now: datetime) -> bool:
    """Return whether a drain waits for the pod."""
    is_drainable = not pod.can_tolerate_disruption() and not is_stuck(pod, now) and not pod.is_mirror()
    return not pod.is_terminal() and is_drainable


def is_critical(pod: Pod) -> bool:
    """Return whether the pod is evicted in the last groups of a drain."""
    return pod.priority_class in CRITICAL_PRIORITY_CLASSES
