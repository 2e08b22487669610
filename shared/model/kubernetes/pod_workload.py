"""The workload of a pod: the object that creates its pods, as people know it."""

from typing import Final

from shared.model.core.metadata import OwnerReference
from shared.model.kubernetes.pod import Pod

TEMPLATE_HASH_LABEL: Final = "pod-template-hash"
"""On a pod of a Deployment: the hash with which the name of its ReplicaSet ends."""


def get_workload(pod: Pod) -> str:
    """Return the workload of *pod*: namespace, kind and name, like ``shop/Deployment/web``.

    It is the controller that owns the pod, or the Deployment of that ReplicaSet. A pod without an owner is a workload
    of its own.
    """
    owners = pod.meta.owners
    owner = next((reference for reference in owners if reference.controller), owners[0] if owners else None)
    if owner is None:
        return f"{pod.meta.namespace}/Pod/{pod.meta.name}"
    if deployment_name := find_deployment_name(owner, pod):
        return f"{pod.meta.namespace}/Deployment/{deployment_name}"
    return f"{pod.meta.namespace}/{owner.kind}/{owner.name}"


def find_deployment_name(owner: OwnerReference, pod: Pod) -> str:
    """Return the name of the Deployment of *owner*, the ReplicaSet of *pod*; "" if it is not one of a Deployment.

    A Deployment names its ReplicaSets after itself and the label pod-template-hash of their pods.
    """
    template_hash = pod.meta.get_label(TEMPLATE_HASH_LABEL)
    if owner.kind != "ReplicaSet" or not template_hash or not owner.name.endswith(f"-{template_hash}"):
        return ""
    return owner.name.removesuffix(f"-{template_hash}")


def find_controlling_owner(pod: Pod) -> OwnerReference | None:
    """Return the controller of *pod*, or else its first owner by kind and name; None if it has no owner."""
    return min(pod.meta.owners, key=lambda owner: (not owner.controller, owner.kind, owner.name), default=None)
