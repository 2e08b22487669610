"""Cluster Autoscaler's annotations in a snapshot: they are kept only if the deployment honors them.

Decisions respect these annotations wherever a snapshot has them, so a replay needs no setting.
"""

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import SAFE_TO_EVICT, SCALE_DOWN_DISABLED

_ANNOTATIONS: Final = frozenset((SAFE_TO_EVICT, SCALE_DOWN_DISABLED))
ANNOTATED_FIELDS: Final = ("pods", "nodes", "node_claims")
"""The lists of a snapshot whose objects can have these annotations: a NodeClaim passes its own on to its node."""


def without_cluster_autoscaler_annotations(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """Return *cluster* without Cluster Autoscaler's annotations."""
    return replace(cluster, **{field: strip_objects(getattr(cluster, field)) for field in ANNOTATED_FIELDS})


def strip_objects(objects: Iterable[Any]) -> tuple[Any, ...]:
    """Return *objects*, which have metadata, without Cluster Autoscaler's annotations."""
    return tuple([_strip_object(obj) if obj.meta.annotations else obj for obj in objects])


def _strip_object(obj: Any) -> Any:  # noqa: ANN401 - a pod, a node or a NodeClaim
    annotations = obj.meta.annotations
    if all(key not in _ANNOTATIONS for key, _ in annotations):
        return obj
    remaining = tuple(pair for pair in annotations if pair[0] not in _ANNOTATIONS)
    return replace(obj, meta=replace(obj.meta, annotations=remaining))
