"""Hash annotations: the hash of the object a node is built from, and on the NodeClaim the hash it was built with."""

from collections.abc import Iterable
from typing import Final

from shared.model.core.labels import (
    HASH_VERSION,
    NODECLASS_HASH,
    NODECLASS_HASH_VERSION,
    NODECLASS_HASH_VERSION_VALUE,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
)
from shared.model.core.metadata import ObjectMeta, Pairs, build_pairs, is_condition_true
from shared.model.decisions.action import Action, Kind, PatchMetadata
from shared.model.karpenter.node_claim import NodeClaim

_HASH_KEYS_BY_KIND: Final[dict[Kind, tuple[str, str, str]]] = {
    "NodePool": (NODEPOOL_HASH, NODEPOOL_HASH_VERSION, HASH_VERSION),
    "EC2NodeClass": (NODECLASS_HASH, NODECLASS_HASH_VERSION, NODECLASS_HASH_VERSION_VALUE),
}


def update_hash_annotations(
    kind: Kind, meta: ObjectMeta, new_hash: str, claims: Iterable[NodeClaim]
) -> tuple[Action, ...]:
    """Write *new_hash* on the object, and migrate its *claims* with a hash of another hash version.

    Such a NodeClaim gets the new hash, so that it does not drift because of the version; a NodeClaim that has drifted
    gets the version only. NodeClaims are written first: after an interrupted run, the next cycle does the same.
    """
    if not new_hash:
        return ()
    key, version_key, version = _HASH_KEYS_BY_KIND[kind]
    hash_annotations = build_pairs({key: new_hash, version_key: version})
    actions = [
        _build_claim_hash_patch(claim, hash_annotations, version_key, version)
        for claim in claims
        if _has_other_hash_version(claim, version_key, version)
    ]
    if not set(hash_annotations) <= set(meta.annotations):
        actions.append(
            PatchMetadata(
                kind=kind,
                name=meta.name,
                annotations=hash_annotations,
                message="the fields that nodes are launched from changed",
            )
        )
    return tuple(actions)


def _has_other_hash_version(claim: NodeClaim, version_key: str, version: str) -> bool:
    return claim.meta.get_annotation(version_key) != version


def _build_claim_hash_patch(claim: NodeClaim, hash_annotations: Pairs, version_key: str, version: str) -> PatchMetadata:
    annotations = (
        build_pairs({version_key: version}) if is_condition_true(claim.conditions, "Drifted") else hash_annotations
    )
    return PatchMetadata(kind="NodeClaim", name=claim.name, annotations=annotations, message="the hash version changed")
