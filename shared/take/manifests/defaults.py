"""Defaults that the API server and the controllers set, for objects that no API server has seen."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec.structs import replace

from shared.model.kubernetes.volumes import StorageClass
from shared.wire.schema import karpenter, pods, volumes
from shared.wire.schema.core import ConditionJson

FillDefaults = Callable[[Any], Any]
"""A function from wire object to wire object; None: the object is left out silently."""
_TERMINAL_PHASES: Final = ("Succeeded", "Failed")
_READY_CONDITION: Final = ConditionJson(type="Ready", status="True", reason="Assumed")
_UNSCHEDULABLE_CONDITION: Final = ConditionJson(type="PodScheduled", status="False", reason="Unschedulable")


def build_default_fillers(
    storage_classes: Iterable[StorageClass], *, assume_unschedulable: bool
) -> dict[str, FillDefaults]:
    """Return the function that fills defaults for each kind; objects of other kinds stay unchanged."""
    default_storage_class = min(
        (storage_class.meta.name for storage_class in storage_classes if storage_class.is_default), default=""
    )

    def fill_volume_claim_defaults(volume_claim: volumes.VolumeClaimJson) -> volumes.VolumeClaimJson:
        if volume_claim.spec.storage_class_name is not None:
            return volume_claim
        return replace(volume_claim, spec=replace(volume_claim.spec, storage_class_name=default_storage_class))

    def fill_pod_defaults(pod: pods.PodJson) -> pods.PodJson | None:
        if has_terminal_phase(pod.status):
            return None
        return (
            replace(pod, status=add_unschedulable_condition(pod.spec.node_name, pod.status))
            if assume_unschedulable
            else pod
        )

    return {
        "NodePool": fill_readiness,
        "EC2NodeClass": fill_readiness,
        "PersistentVolumeClaim": fill_volume_claim_defaults,
        "Pod": fill_pod_defaults,
    }


def fill_readiness(
    obj: karpenter.NodePoolJson | karpenter.NodeClassJson,
) -> karpenter.NodePoolJson | karpenter.NodeClassJson:
    """Return *obj* with the condition Ready if its status has no conditions."""
    if obj.status.conditions:
        return obj
    condition = replace(_READY_CONDITION, observed_generation=obj.metadata.generation)
    return replace(obj, status=replace(obj.status, conditions=(condition,)))


def has_terminal_phase(status: pods.PodStatusJson) -> bool:
    """Return whether the pod has finished (phase Succeeded or Failed)."""
    return status.phase in _TERMINAL_PHASES


def add_unschedulable_condition(node_name: str, status: pods.PodStatusJson) -> pods.PodStatusJson:
    """Return *status* with the condition PodScheduled=False, reason Unschedulable.

    The status stays unchanged if the pod has a node or already has a PodScheduled condition.
    """
    if node_name or any(condition.type == _UNSCHEDULABLE_CONDITION.type for condition in status.conditions):
        return status
    return replace(status, conditions=(*status.conditions, _UNSCHEDULABLE_CONDITION))
