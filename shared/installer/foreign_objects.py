"""Which Karpenter objects are Joiner's: those whose node class is an EC2NodeClass of karpenter.k8s.aws.

EKS Auto Mode and other providers use the same NodePools and NodeClaims, and the same finalizer, for their own nodes.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from shared.installer.manifests import Manifest, get_manifest_name
from shared.model.core.labels import NODECLASS, NODEPOOL
from shared.model.karpenter.node_claim import EC2_NODE_CLASS_KIND, NODE_CLASS_GROUP


def has_own_node_class(manifest: Manifest) -> bool:
    """Return whether the NodePool or NodeClaim *manifest* refers to an EC2NodeClass of karpenter.k8s.aws.

    >>> has_own_node_class({"spec": {"nodeClassRef": {"group": "eks.amazonaws.com", "kind": "NodeClass"}}})
    False
    """
    spec: Any = manifest.get("spec") or {}
    template: Any = spec.get("template")
    if template is not None:
        spec = template.get("spec") or {}
    reference = spec.get("nodeClassRef") or {}
    return (reference.get("group"), reference.get("kind")) == (NODE_CLASS_GROUP, EC2_NODE_CLASS_KIND)


def filter_own_nodes(
    nodes: Iterable[tuple[str, Manifest]], own_pool_names: Collection[str]
) -> Iterator[tuple[str, Manifest]]:
    """Yield path and manifest of the *nodes* with the label of an EC2NodeClass, or of one of our NodePools."""
    for path, node in nodes:
        labels = node["metadata"].get("labels") or {}
        if NODECLASS in labels or labels.get(NODEPOOL) in own_pool_names:
            yield path, node


def list_pool_names(node_pools: Iterable[Manifest], node_claims: Iterable[Manifest]) -> set[str]:
    """Return the names of *node_pools*, and of the NodePools that *node_claims* belong to."""
    labels = ((claim["metadata"].get("labels") or {}).get(NODEPOOL, "") for claim in node_claims)
    return {*map(get_manifest_name, node_pools), *labels} - {""}
