"""The annotation `karpenter.sh/do-not-disrupt` of pods and nodes."""

from datetime import datetime, timedelta

from shared.model.core.labels import DO_NOT_CONSOLIDATE, DO_NOT_DISRUPT, DO_NOT_EVICT
from shared.model.core.metadata import ObjectMeta
from shared.model.core.units import parse_duration
from shared.model.kubernetes.pod import Pod


def is_node_protected(meta: ObjectMeta) -> bool:
    """Return whether a node's do-not-disrupt annotation, or the older do-not-consolidate, is exactly ``true``."""
    return "true" in (meta.get_annotation(DO_NOT_DISRUPT), meta.get_annotation(DO_NOT_CONSOLIDATE))


def is_pod_protected(pod: Pod, now: datetime) -> bool:
    """Return whether `karpenter.sh/do-not-disrupt` is in force: ``true``, or a duration since the pod started.

    Its older spelling do-not-evict is respected too if it is ``true``.
    """
    value = pod.meta.get_annotation(DO_NOT_DISRUPT)
    if value == "true" or pod.meta.get_annotation(DO_NOT_EVICT) == "true":
        return True
    try:
        protection_duration = parse_duration(value)
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
