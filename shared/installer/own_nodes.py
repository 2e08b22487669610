"""Which Nodes are Joiner's: those of an EC2NodeClass, or of one of Joiner's NodePools."""

from collections.abc import Collection, Iterable, Iterator

from shared.installer.manifests import Manifest, get_manifest_name
from shared.model.core.labels import NODECLASS, NODEPOOL


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
