"""Decides which pods of a terminating node are evicted or deleted now.

If the node's termination grace period leaves a pod no more time, the pod is deleted regardless of PodDisruptionBudgets.
The other pods are evicted in groups, each after the previous group has left: ordinary pods, DaemonSet pods, critical
pods, critical DaemonSet pods.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

import msgspec

from shared.model.core.formatting import format_count, join_names
from shared.model.decisions.action import DeletePod, EvictPod
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_classes import is_critical, is_evictable, is_waiting_eviction
from shared.state.pdb_limits import PdbLimits

_MAX_PODS_SHOWN: Final = 3


class DrainPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a drain; pods are sorted by name."""

    waiting: tuple[Pod, ...] = ()
    """All pods that have not left yet."""
    forced: tuple[Pod, ...] = ()
    evicted: tuple[Pod, ...] = ()
    refusal_messages: tuple[str, ...] = ()
    """Why pods of the current group are not evicted."""

    def describe(self) -> str:
        """Return a short message about the pods that the drain waits for."""
        pod_names = join_names((pod.name for pod in self.waiting), _MAX_PODS_SHOWN)
        refusal_text = f"; {self.refusal_messages[0]}" if self.refusal_messages else ""
        return f"draining: {format_count(len(self.waiting), 'pod')} left: {pod_names}{refusal_text}"


def plan_drain(
    pods: Iterable[Pod],
    deadline: datetime | None,
    now: datetime,
    pdb_limits: PdbLimits,
    replacement_waits: Mapping[str, str] = MappingProxyType({}),
) -> DrainPlan:
    """Return the drain plan for the pods of one node.

    *deadline* is the end of the node's termination grace period (None: no limit). Pods in *replacement_waits* are not
    evicted yet; it maps a pod's name to the reason.
    """
    waiting_pods = tuple(sorted((pod for pod in pods if is_waiting_eviction(pod, now)), key=_build_pod_key))
    forced_pods = tuple(pod for pod in waiting_pods if deadline is not None and is_forced(pod, deadline, now))
    forced_keys = {_build_pod_key(pod) for pod in forced_pods}
    evictable_pods = [pod for pod in waiting_pods if _build_pod_key(pod) not in forced_keys]
    first_group = min((_compute_eviction_group(pod) for pod in evictable_pods), default=0)
    current_pods = [pod for pod in evictable_pods if _compute_eviction_group(pod) == first_group and pod.is_active()]
    refusal_by_pod = {
        _build_pod_key(pod): _find_refusal(pod, now, pdb_limits) or replacement_waits.get(pod.name, "")
        for pod in current_pods
    }
    evicted_pods = tuple(pod for pod in current_pods if not refusal_by_pod[_build_pod_key(pod)])
    refusal_messages = tuple(message for message in refusal_by_pod.values() if message)
    return DrainPlan(waiting=waiting_pods, forced=forced_pods, evicted=evicted_pods, refusal_messages=refusal_messages)


def is_forced(pod: Pod, deadline: datetime, now: datetime) -> bool:
    """Return whether the pod's deletion must begin now, or be shortened, so that the pod is gone at *deadline*."""
    if pod.meta.deleted_at is not None:
        return pod.meta.deleted_at > deadline
    return now > deadline - pod.grace_period


def find_next_forced_deletion(waiting: Iterable[Pod], deadline: datetime) -> datetime:
    """Return when the next of the *waiting* pods must be deleted, at the latest *deadline*."""
    return min((deadline - pod.grace_period for pod in waiting if pod.is_active()), default=deadline)


def build_evictions(pods: Iterable[Pod], message: str) -> tuple[EvictPod, ...]:
    """Return an eviction for each of *pods*."""
    return tuple(
        EvictPod(
            namespace=pod.meta.namespace, name=pod.meta.name, uid=pod.meta.uid, node=pod.node_name, message=message
        )
        for pod in pods
    )


def build_pod_deletions(pods: Iterable[Pod], deadline: datetime, now: datetime, message: str) -> tuple[DeletePod, ...]:
    """Return a deletion for each of *pods*, with the whole seconds until *deadline* as grace period, at least one."""
    grace = max(int((deadline - now) / timedelta(seconds=1)), 1)
    return tuple(
        DeletePod(
            namespace=pod.meta.namespace,
            name=pod.meta.name,
            uid=pod.meta.uid,
            node=pod.node_name,
            grace_seconds=grace,
            message=message,
        )
        for pod in pods
    )


def _compute_eviction_group(pod: Pod) -> int:
    return 2 * is_critical(pod) + pod.is_daemon()


def _find_refusal(pod: Pod, now: datetime, pdb_limits: PdbLimits) -> str:
    if not is_evictable(pod, now):
        return f"pod {pod.name} must not be disrupted"
    return pdb_limits.find_lasting_refusal(pod)


def _build_pod_key(pod: Pod) -> tuple[str, str]:
    return pod.name, pod.meta.uid
