"""Writes to the Kubernetes API, one function per Action."""

from typing import Final

import msgspec
from msgspec.structs import replace

from shared.errors import Conflict
from shared.kube.objects import node_claim_object, owner_object
from shared.model.action import (
    CreateNodeClaim,
    DeleteObject,
    DeletePod,
    EvictPod,
    Kind,
    PatchMetadata,
    PatchStatus,
    TaintNode,
)
from shared.model.labels import PLANNED_UNDER
from shared.model.taints import taint_object
from shared.ports import Fence, Kube

COLLECTIONS: Final[dict[str, str]] = {
    "Node": "/api/v1/nodes",
    "NodeClaim": "/apis/karpenter.sh/v1/nodeclaims",
    "NodePool": "/apis/karpenter.sh/v1/nodepools",
    "EC2NodeClass": "/apis/karpenter.k8s.aws/v1/ec2nodeclasses",
    "NodeOverlay": "/apis/karpenter.sh/v1alpha1/nodeoverlays",
    "CapacityBuffer": "/apis/autoscaling.x-k8s.io/v1beta1/capacitybuffers",
}


def path_of(kind: Kind, name: str, namespace: str = "") -> str:
    """Answer where the object *name* lives."""
    collection = COLLECTIONS[kind]
    if namespace:
        version, _, plural = collection.rpartition("/")
        collection = f"{version}/namespaces/{namespace}/{plural}"
    return f"{collection}/{name}"


def create_node_claim(action: CreateNodeClaim, kube: Kube, fence: Fence | None = None) -> None:
    """Create the claim; that it exists already is no error, because its name is derived from the decision.

    It bears the version of the lease that it was decided under: nothing can keep a write from coming late.
    """
    claim = action.claim
    if fence is not None:
        stamped = (*claim.meta.annotations, (PLANNED_UNDER, str(fence.version)))
        claim = replace(claim, meta=replace(claim.meta, annotations=stamped))
    try:
        kube.create(COLLECTIONS["NodeClaim"], msgspec.json.encode(node_claim_object(claim)))
    except Conflict:
        return


def patch_metadata(action: PatchMetadata, kube: Kube) -> None:
    """Merge labels and annotations, take labels away, replace finalizers and owners."""
    metadata: dict[str, object] = {}
    if action.labels or action.unlabelled:
        metadata["labels"] = dict.fromkeys(action.unlabelled) | dict(action.labels)
    if action.annotations:
        metadata["annotations"] = dict(action.annotations)
    if action.finalizers is not None:
        metadata["finalizers"] = list(action.finalizers)
    if action.owners is not None:
        metadata["ownerReferences"] = [owner_object(owner) for owner in action.owners]
    patch_object(kube, path_of(action.kind, action.name), action.resource_version, metadata)


def patch_status(action: PatchStatus, kube: Kube) -> None:
    """Merge into the status subresource."""
    status = msgspec.json.decode(action.status)
    patch_object(
        kube,
        path_of(action.kind, action.name, action.namespace) + "/status",
        action.resource_version,
        {},
        status=status,
    )


def taint_node(action: TaintNode, kube: Kube) -> None:
    """Replace the taints."""
    metadata: dict[str, object] = {"labels": dict(action.labels)} if action.labels else {}
    if action.annotations:
        metadata["annotations"] = dict(action.annotations)
    spec = {"taints": [taint_object(taint) for taint in action.taints]}
    patch_object(kube, path_of("Node", action.name), action.resource_version, metadata, spec=spec)


def evict_pod(action: EvictPod, kube: Kube) -> None:
    """POST an Eviction, for this very pod."""
    path = f"/api/v1/namespaces/{action.namespace}/pods/{action.name}/eviction"
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": action.name, "namespace": action.namespace},
        "deleteOptions": {"preconditions": {"uid": action.uid}},
    }
    kube.create(path, msgspec.json.encode(body))


def delete_pod(action: DeletePod, kube: Kube) -> None:
    """DELETE with the grace that is left, this very pod."""
    options = _delete_options(action.uid) | {"gracePeriodSeconds": action.grace_seconds}
    kube.delete(f"/api/v1/namespaces/{action.namespace}/pods/{action.name}", msgspec.json.encode(options))


def delete_object(action: DeleteObject, kube: Kube) -> None:
    """DELETE, this very object where its uid is known."""
    kube.delete(path_of(action.kind, action.name), msgspec.json.encode(_delete_options(action.uid)))


def _delete_options(uid: str) -> dict[str, object]:
    options: dict[str, object] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    return options | ({"preconditions": {"uid": uid}} if uid else {})


def patch_object(kube: Kube, path: str, resource_version: str, metadata: dict[str, object], **parts: object) -> None:
    """Merge *metadata* and *parts*, if the object is still at *resource_version*."""
    precondition = {"resourceVersion": resource_version} if resource_version else {}
    kube.patch(path, msgspec.json.encode({"metadata": metadata | precondition, **parts}))
