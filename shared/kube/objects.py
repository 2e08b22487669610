"""Writers: model values -> API objects, the inverse of the readers in `shared.snapshot`."""

from shared.model.nodes import NodeClaim
from shared.model.objects import Owner
from shared.model.requirements import written
from shared.model.resources import quantities_from
from shared.model.taints import taint_object
from shared.model.units import duration_text


def node_claim_object(claim: NodeClaim) -> dict[str, object]:
    """Answer a karpenter.sh/v1 NodeClaim to create; status is not written."""
    spec: dict[str, object] = {
        "nodeClassRef": {
            "group": claim.node_class.group,
            "kind": claim.node_class.kind,
            "name": claim.node_class.name,
        },
        "requirements": written(claim.requirements),
        "resources": {"requests": quantities_from(claim.requests)},
        "expireAfter": duration_text(claim.expire_after),
    }
    if claim.taints:
        spec["taints"] = [taint_object(taint) for taint in claim.taints]
    if claim.startup_taints:
        spec["startupTaints"] = [taint_object(taint) for taint in claim.startup_taints]
    if claim.termination_grace_period is not None:
        spec["terminationGracePeriod"] = duration_text(claim.termination_grace_period)
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": _metadata(claim), "spec": spec}


def owner_object(owner: Owner) -> dict[str, object]:
    """Answer an ownerReference that blocks the owner's deletion."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "blockOwnerDeletion": True,
        **({"controller": True} if owner.controller else {}),
    }


def _metadata(claim: NodeClaim) -> dict[str, object]:
    metadata: dict[str, object] = {"name": claim.name}
    if claim.meta.labels:
        metadata["labels"] = dict(claim.meta.labels)
    if claim.meta.annotations:
        metadata["annotations"] = dict(claim.meta.annotations)
    if claim.meta.finalizers:
        metadata["finalizers"] = list(claim.meta.finalizers)
    if claim.meta.owners:
        metadata["ownerReferences"] = [owner_object(owner) for owner in claim.meta.owners]
    return metadata
