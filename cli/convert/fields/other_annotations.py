"""Annotations of Cluster Autoscaler and Node Termination Handler: what replaces them, and which have no effect."""

from typing import Final

import msgspec

from shared.model.core.labels import DO_NOT_DISRUPT, SAFE_TO_EVICT, SCALE_DOWN_DISABLED


class ForeignAnnotation(msgspec.Struct, frozen=True, kw_only=True):
    """An annotation that Joiner does not read by default, and what says the same to Joiner."""

    replacement: str = ""
    """The annotation with the value "true" that has the same meaning; "" if there is none."""
    reason: str
    """Why it has no effect."""


_PROTECTING_VALUES: Final = {SAFE_TO_EVICT: "false", SCALE_DOWN_DISABLED: "true"}
"""By annotation, the value that keeps the pod or node."""
_REASONS: Final = {
    SAFE_TO_EVICT: "Joiner evicts pods with local volumes and pods without a controller by default",
    SCALE_DOWN_DISABLED: "Joiner may remove nodes by default",
    "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": "local volumes never keep a node",
    "cluster-autoscaler.kubernetes.io/enable-ds-eviction": "a drain leaves DaemonSet pods to their node",
    "cluster-autoscaler.kubernetes.io/daemonset-pod": "only pods that a DaemonSet owns are DaemonSet pods",
    "cluster-autoscaler.kubernetes.io/pod-scale-up-delay": "Joiner launches nodes as soon as pods are unschedulable",
}
_TERMINATION_HANDLER_PREFIX: Final = "aws-node-termination-handler/"


def find_foreign_annotation(key: str, value: object) -> ForeignAnnotation | None:
    """Return what is known about the annotation *key*; None if it is not of another autoscaler.

    >>> find_foreign_annotation(SAFE_TO_EVICT, "false").replacement
    'karpenter.sh/do-not-disrupt'
    >>> find_foreign_annotation("team", "shop") is None
    True
    """
    if str(value).lower() == _PROTECTING_VALUES.get(key):
        return ForeignAnnotation(replacement=DO_NOT_DISRUPT, reason=f"{DO_NOT_DISRUPT} replaces it")
    if key in _REASONS:
        return ForeignAnnotation(reason=_REASONS[key])
    if key.startswith(_TERMINATION_HANDLER_PREFIX):
        return ForeignAnnotation(reason="Joiner handles interruptions of its nodes itself")
    return None
