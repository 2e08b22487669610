"""The annotations that protect pods and nodes from disruption: `karpenter.sh/do-not-disrupt`, and those of others.

Cluster Autoscaler's annotations count wherever a snapshot contains them. A snapshot contains them only if the setting
honor-cluster-autoscaler-annotations is on: `shared.take.other_annotations`.
"""

from datetime import datetime, timedelta

from shared.model.core.labels import (
    DO_NOT_CONSOLIDATE,
    DO_NOT_DISRUPT,
    DO_NOT_EVICT,
    SAFE_TO_EVICT,
    SCALE_DOWN_DISABLED,
)
from shared.model.core.metadata import ObjectMeta
from shared.model.core.units import parse_duration
from shared.model.kubernetes.pod import Pod


def is_node_protected(meta: ObjectMeta) -> bool:
    """Return whether a node's do-not-disrupt annotation, or the older do-not-consolidate, is exactly ``true``."""
    return "true" in (meta.get_annotation(DO_NOT_DISRUPT), meta.get_annotation(DO_NOT_CONSOLIDATE))


def is_scale_down_disabled(meta: ObjectMeta) -> bool:
    """Return whether Cluster Autoscaler's scale-down-disabled annotation of a node is exactly ``true``."""
    return meta.get_annotation(SCALE_DOWN_DISABLED) == "true"


def is_pod_protected(pod: Pod, now: datetime) -> bool:
    """Return whether an annotation protects the pod from disruption at *now*."""
    return bool(find_protecting_annotation(pod, now))


def find_protecting_annotation(pod: Pod, now: datetime) -> str:
    """Return the key of the annotation that protects the pod from disruption; "" if none is in force.

    `karpenter.sh/do-not-disrupt` is ``true``, or a duration since the pod started. Its older spelling do-not-evict is
    respected too if it is ``true``, and Cluster Autoscaler's safe-to-evict if it is ``false``. As for Cluster
    Autoscaler, safe-to-evict has no effect on the pods of DaemonSets and on static pods: they would keep every node.
    """
    value = pod.meta.get_annotation(DO_NOT_DISRUPT)
    if value == "true" or (value and _is_within_duration(value, pod, now)):
        return DO_NOT_DISRUPT
    if pod.meta.get_annotation(DO_NOT_EVICT) == "true":
        return DO_NOT_EVICT
    is_kept = pod.meta.get_annotation(SAFE_TO_EVICT) == "false" and not pod.is_daemon() and not pod.is_mirror()
    return SAFE_TO_EVICT if is_kept else ""


def _is_within_duration(text: str, pod: Pod, now: datetime) -> bool:
    try:
        protection_duration = parse_duration(text)
    except ValueError:
        return False
    return protection_duration > timedelta() and (pod.started_at is None or now - pod.started_at < protection_duration)


def find_ineffective_protection(pod: Pod) -> str:
    """Return the do-not-disrupt annotation if its value can never protect the pod; "" otherwise."""
    value = pod.meta.get_annotation(DO_NOT_DISRUPT)
    try:
        return value if value != "true" and parse_duration(value) <= timedelta() else ""
    except ValueError:
        return value
