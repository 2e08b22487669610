"""What an API server and its controllers would have given an object that no API server has seen."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec.structs import replace

from shared.model.volumes import StorageClass
from shared.snapshot import wire_karpenter, wire_pods, wire_volumes
from shared.snapshot.wire_core import Condition

Complete = Callable[[Any], Any]
"""Wire value to wire value; None: it is left out without a word."""
_TERMINAL: Final = ("Succeeded", "Failed")
_READY: Final = Condition(type="Ready", status="True", reason="Assumed")
_UNSCHEDULABLE: Final = Condition(type="PodScheduled", status="False", reason="Unschedulable")


def completions(storage_classes: Iterable[StorageClass], *, assume_unschedulable: bool) -> dict[str, Complete]:
    """Answer by kind what its objects get; other kinds get nothing."""
    default = min((one.meta.name for one in storage_classes if one.is_default), default="")

    def claim(one: wire_volumes.VolumeClaim) -> wire_volumes.VolumeClaim:
        if one.spec.storage_class_name is not None:
            return one
        return replace(one, spec=replace(one.spec, storage_class_name=default))

    def pod(one: wire_pods.Pod) -> wire_pods.Pod | None:
        if is_terminal(one.status):
            return None
        return replace(one, status=waiting(one.spec.node_name, one.status)) if assume_unschedulable else one

    return {"NodePool": ready, "EC2NodeClass": ready, "PersistentVolumeClaim": claim, "Pod": pod}


def ready(
    one: wire_karpenter.NodePool | wire_karpenter.NodeClass,
) -> wire_karpenter.NodePool | wire_karpenter.NodeClass:
    """Answer *one* as ready if it says nothing about itself."""
    if one.status.conditions:
        return one
    condition = replace(_READY, observed_generation=one.metadata.generation)
    return replace(one, status=replace(one.status, conditions=(condition,)))


def is_terminal(status: wire_pods.PodStatus) -> bool:
    """Whether the pod has run its course."""
    return status.phase in _TERMINAL


def waiting(node_name: str, status: wire_pods.PodStatus) -> wire_pods.PodStatus:
    """Answer the status of a pod that kube-scheduler gave up on, unless it has a node or says otherwise."""
    if node_name or any(one.type == _UNSCHEDULABLE.type for one in status.conditions):
        return status
    return replace(status, conditions=(*status.conditions, _UNSCHEDULABLE))
