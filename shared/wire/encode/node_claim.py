"""Encodes model values as API objects, the inverse of the decoders in `shared.take`."""

from shared.model.core.metadata import OwnerReference
from shared.model.core.requirements import list_requirement_entries
from shared.model.core.resources import format_quantities
from shared.model.core.taints import encode_taint
from shared.model.core.units import format_duration
from shared.model.karpenter.node_claim import KARPENTER_API_VERSION, NodeClaim


def encode_node_claim(claim: NodeClaim) -> dict[str, object]:
    """Return the karpenter.sh/v1 NodeClaim object to create; the status is omitted."""
    spec: dict[str, object] = {
        "nodeClassRef": {
            "group": claim.node_class.group,
            "kind": claim.node_class.kind,
            "name": claim.node_class.name,
        },
        "requirements": list_requirement_entries(claim.requirements),
        "resources": {"requests": format_quantities(claim.requests)},
        "expireAfter": format_duration(claim.expire_after),
    }
    if claim.taints:
        spec["taints"] = [encode_taint(taint) for taint in claim.taints]
    if claim.startup_taints:
        spec["startupTaints"] = [encode_taint(taint) for taint in claim.startup_taints]
    if claim.termination_grace_period is not None:
        spec["terminationGracePeriod"] = format_duration(claim.termination_grace_period)
    return {"apiVersion": KARPENTER_API_VERSION, "kind": "NodeClaim", "metadata": _encode_metadata(claim), "spec": spec}


def encode_owner_reference(owner: OwnerReference) -> dict[str, object]:
    """Return the ownerReference, with blockOwnerDeletion set."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "blockOwnerDeletion": True,
        **({"controller": True} if owner.controller else {}),
    }


def _encode_metadata(claim: NodeClaim) -> dict[str, object]:
    metadata: dict[str, object] = {"name": claim.name}
    if claim.meta.labels:
        metadata["labels"] = dict(claim.meta.labels)
    if claim.meta.annotations:
        metadata["annotations"] = dict(claim.meta.annotations)
    if claim.meta.finalizers:
        metadata["finalizers"] = list(claim.meta.finalizers)
    if claim.meta.owners:
        metadata["ownerReferences"] = [encode_owner_reference(owner) for owner in claim.meta.owners]
    return metadata
