"""The workload of a pod: the object that creates its pods, as people know it."""

from typing import Final

from shared.model.kubernetes.pod import Pod

_POD_TEMPLATE_HASH: Final = "pod-template-hash"


def get_workload(pod: Pod) -> str:
    """Return the workload of *pod*: namespace, kind and name, like ``shop/Deployment/web``.

    It is the controller that owns the pod, or the Deployment of that ReplicaSet: a Deployment names its ReplicaSets
    after itself and the label pod-template-hash of their pods. A pod without an owner is a workload of its own.
    """
    owners = pod.meta.owners
    owner = next((reference for reference in owners if reference.controller), owners[0] if owners else None)
    if owner is None:
        return f"{pod.meta.namespace}/Pod/{pod.meta.name}"
    template_hash = pod.meta.get_label(_POD_TEMPLATE_HASH)
    if owner.kind == "ReplicaSet" and template_hash and owner.name.endswith(f"-{template_hash}"):
        return f"{pod.meta.namespace}/Deployment/{owner.name.removesuffix(f'-{template_hash}')}"
    return f"{pod.meta.namespace}/{owner.kind}/{owner.name}"
