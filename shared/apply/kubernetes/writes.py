"""Writes to the Kubernetes API, one function per Action."""

import msgspec
from msgspec.structs import replace

from shared.errors import Conflict, Invalid
from shared.model.core.labels import (
    OWN_DELETION_COST,
    PLANNED_UNDER,
    POD_DELETION_COST,
    SCHEDULED_SCALE,
    SURGE_DRAIN_RESTART,
)
from shared.model.core.taints import encode_taint
from shared.model.decisions.action import (
    SCALING_SUFFIX,
    CreateNodeClaim,
    DeleteObject,
    DeletePod,
    EvictPod,
    PatchMetadata,
    PatchStatus,
    RestartDeployment,
    ScaleWorkload,
    SetDeletionCost,
    TaintNode,
)
from shared.ports.kubernetes import Kube
from shared.ports.storage import FencingToken
from shared.wire.encode.node_claim import encode_node_claim, encode_owner_reference
from shared.wire.paths import COLLECTION_PATHS, build_object_path


class _PatchedMeta(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    resource_version: str = ""


class _PatchedObject(msgspec.Struct, frozen=True, kw_only=True):
    metadata: _PatchedMeta = _PatchedMeta()


def create_node_claim(action: CreateNodeClaim, kube: Kube, fence: FencingToken | None = None) -> None:
    """Create the claim; a conflict is ignored.

    The claim's name is derived from the decision, so a claim with this name is the same claim.

    The claim is annotated with the version of the lease under which it was decided: a write can always arrive late.
    """
    claim = action.claim
    if fence is not None:
        annotations = (*claim.meta.annotations, (PLANNED_UNDER, str(fence.version)))
        claim = replace(claim, meta=replace(claim.meta, annotations=annotations))
    try:
        kube.create(COLLECTION_PATHS["NodeClaim"], msgspec.json.encode(encode_node_claim(claim)))
    except Conflict:
        return


def patch_metadata(action: PatchMetadata, kube: Kube) -> None:
    """Patch labels, annotations, finalizers and owners; remove labels."""
    metadata: dict[str, object] = {}
    if action.labels or action.removed_labels:
        metadata["labels"] = dict.fromkeys(action.removed_labels) | dict(action.labels)
    if action.annotations:
        metadata["annotations"] = dict(action.annotations)
    if action.finalizers is not None:
        metadata["finalizers"] = list(action.finalizers)
    if action.owners is not None:
        metadata["ownerReferences"] = [encode_owner_reference(owner) for owner in action.owners]
    patch_object(kube, build_object_path(action.kind, action.name), action.resource_version, metadata)


def patch_status(action: PatchStatus, kube: Kube) -> None:
    """Merge into the status subresource."""
    status = msgspec.json.decode(action.status)
    patch_object(
        kube,
        build_object_path(action.kind, action.name, action.namespace) + "/status",
        action.resource_version,
        {},
        status=status,
    )


def taint_node(action: TaintNode, kube: Kube) -> None:
    """Replace the node's taints; merge its labels and annotations."""
    metadata: dict[str, object] = {"labels": dict(action.labels)} if action.labels else {}
    if action.annotations:
        metadata["annotations"] = dict(action.annotations)
    spec = {"taints": [encode_taint(taint) for taint in action.taints]}
    patch_object(kube, build_object_path("Node", action.name), action.resource_version, metadata, spec=spec)


def evict_pod(action: EvictPod, kube: Kube) -> None:
    """POST an Eviction of the pod with this uid."""
    path = f"/api/v1/namespaces/{action.namespace}/pods/{action.name}/eviction"
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": action.name, "namespace": action.namespace},
        "deleteOptions": {"preconditions": {"uid": action.uid}},
    }
    kube.create(path, msgspec.json.encode(body))


def set_deletion_cost(action: SetDeletionCost, kube: Kube) -> None:
    """Set or remove the deletion cost of the pod and the mark that it is Joiner's, with one patch.

    Raises:
        Conflict: the pod has changed, or the pod with this name is another one: a user may have set a deletion cost.
    """
    value = None if action.cost is None else str(action.cost)
    metadata: dict[str, object] = {
        "uid": action.uid,
        "annotations": {POD_DELETION_COST: value, OWN_DELETION_COST: value},
    }
    path = f"/api/v1/namespaces/{action.namespace}/pods/{action.name}"
    try:
        patch_object(kube, path, action.resource_version, metadata)
    except Invalid as refused:
        raise Conflict(str(refused)) from refused


def restart_deployment(action: RestartDeployment, kube: Kube) -> None:
    """Annotate the pod template, as `kubectl rollout restart` does, if the Deployment has not changed."""
    path = f"/apis/apps/v1/namespaces/{action.namespace}/deployments/{action.name}"
    template = {"metadata": {"annotations": {SURGE_DRAIN_RESTART: action.restart}}}
    patch_object(kube, path, action.resource_version, {}, spec={"template": template})


def scale_workload(action: ScaleWorkload, kube: Kube) -> None:
    """Annotate, scale, and annotate that it is scaled; or scale back, then remove the annotation.

    A run that is killed in between is repeated. The generation of the workload cannot replace the third write: the
    annotations of a Deployment count as a change of its spec.

    Each write has the version that the write before it returned as its precondition.
    """
    path = f"/apis/apps/v1/namespaces/{action.namespace}/{action.kind.lower()}s/{action.name}"
    version = action.resource_version
    annotations: dict[str, object] = {"annotations": {SCHEDULED_SCALE: action.memory}}
    if action.memory is not None:
        scaling: dict[str, object] = {"annotations": {SCHEDULED_SCALE: f"{action.memory}{SCALING_SUFFIX}"}}
        version = _read_version(patch_object(kube, path, version, scaling))
    if action.replicas is not None:
        version = _read_version(patch_object(kube, f"{path}/scale", version, {}, spec={"replicas": action.replicas}))
    patch_object(kube, path, version, annotations)


def delete_pod(action: DeletePod, kube: Kube) -> None:
    """DELETE the pod with this uid, with its remaining grace period."""
    options = _build_delete_options(action.uid) | {"gracePeriodSeconds": action.grace_seconds}
    kube.delete(f"/api/v1/namespaces/{action.namespace}/pods/{action.name}", msgspec.json.encode(options))


def delete_object(action: DeleteObject, kube: Kube) -> None:
    """DELETE the object, with its uid as a precondition if known."""
    kube.delete(build_object_path(action.kind, action.name), msgspec.json.encode(_build_delete_options(action.uid)))


def _build_delete_options(uid: str) -> dict[str, object]:
    options: dict[str, object] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    return options | ({"preconditions": {"uid": uid}} if uid else {})


def patch_object(kube: Kube, path: str, resource_version: str, metadata: dict[str, object], **parts: object) -> bytes:
    """Merge *metadata* and *parts* if the object is still at *resource_version*; return the stored object."""
    precondition = {"resourceVersion": resource_version} if resource_version else {}
    return kube.patch(path, msgspec.json.encode({"metadata": metadata | precondition, **parts}))


def _read_version(body: bytes) -> str:
    return msgspec.json.decode(body, type=_PatchedObject).metadata.resource_version
