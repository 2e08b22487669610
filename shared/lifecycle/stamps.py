"""Hashes as annotations: an object says what its nodes are made of, and a claim what its node was made of."""

from collections.abc import Iterable
from typing import Final

from shared.model.action import Action, Kind, PatchMetadata
from shared.model.labels import (
    HASH_VERSION,
    NODECLASS_HASH,
    NODECLASS_HASH_VERSION,
    NODECLASS_HASH_VERSION_VALUE,
    NODEPOOL_HASH,
    NODEPOOL_HASH_VERSION,
)
from shared.model.nodes import NodeClaim
from shared.model.objects import Meta, Pairs, is_true, pairs

_KEYS: Final[dict[Kind, tuple[str, str, str]]] = {
    "NodePool": (NODEPOOL_HASH, NODEPOOL_HASH_VERSION, HASH_VERSION),
    "EC2NodeClass": (NODECLASS_HASH, NODECLASS_HASH_VERSION, NODECLASS_HASH_VERSION_VALUE),
}


def stamp(kind: Kind, meta: Meta, wanted: str, claims: Iterable[NodeClaim]) -> tuple[Action, ...]:
    """Write the hash *wanted* on the object, and carry those of its *claims* over whose hash is of another version.

    These get today's hash, so that they do not drift for being old; those that have drifted get the version only.
    Claims are written first: killed in between, the next cycle does the same.
    """
    if not wanted:
        return ()
    key, version_key, version = _KEYS[kind]
    both = pairs({key: wanted, version_key: version})
    actions = [_carried(one, both, version_key, version) for one in claims if _is_of_another(one, version_key, version)]
    if not set(both) <= set(meta.annotations):
        actions.append(PatchMetadata(kind=kind, name=meta.name, annotations=both, why="what nodes are made of changed"))
    return tuple(actions)


def _is_of_another(claim: NodeClaim, version_key: str, version: str) -> bool:
    return claim.meta.annotation(version_key) != version


def _carried(claim: NodeClaim, both: Pairs, version_key: str, version: str) -> PatchMetadata:
    note = pairs({version_key: version}) if is_true(claim.conditions, "Drifted") else both
    return PatchMetadata(kind="NodeClaim", name=claim.name, annotations=note, why="a new kind of hash")
