"""Objects of other providers of Karpenter's API, as EKS Auto Mode: Joiner leaves them alone, no snapshot contains them.

EKS Auto Mode and other providers use the same NodePools and NodeClaims, and the same finalizer, for their own nodes.
An object is Joiner's if `NodeClassRef.is_supported`: its node class is an EC2NodeClass of karpenter.k8s.aws.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from shared.model.core.labels import NODECLASS
from shared.model.core.metadata import ObjectMeta
from shared.model.karpenter.node_claim import NodeClassRef

SHARED_FIELDS: Final = frozenset({"node_pools", "node_claims"})
"""The fields of a snapshot whose kinds other providers use, too."""
_NODE_CLASS_LABEL_SUFFIX: Final = "nodeclass"


def filter_own_objects(field: str, values: Iterable[Any]) -> tuple[Any, ...]:
    """Return the *values* of a snapshot's *field* without those whose node class is not an EC2NodeClass."""
    if field not in SHARED_FIELDS:
        return tuple(values)
    return tuple(value for value in values if value.node_class.is_supported())


def has_own_node_class(manifest: Mapping[str, Any]) -> bool:
    """Return whether the NodePool or NodeClaim *manifest* refers to an EC2NodeClass of karpenter.k8s.aws.

    >>> has_own_node_class({"spec": {"nodeClassRef": {"group": "eks.amazonaws.com", "kind": "NodeClass"}}})
    False
    """
    spec: Any = manifest.get("spec") or {}
    template: Any = spec.get("template")
    if template is not None:
        spec = template.get("spec") or {}
    reference = spec.get("nodeClassRef") or {}
    return NodeClassRef(name="", group=reference.get("group", ""), kind=reference.get("kind", "")).is_supported()


def is_of_other_provider(node_meta: ObjectMeta) -> bool:
    """Return whether a Node with *node_meta* has the node class label of another provider, as of EKS Auto Mode.

    Karpenter's core gives every Node the label GROUP/KIND of its node class, in lowercase.
    """
    has_other_class = any(key.endswith(_NODE_CLASS_LABEL_SUFFIX) for key, _ in node_meta.labels)
    return has_other_class and not node_meta.get_label(NODECLASS)
