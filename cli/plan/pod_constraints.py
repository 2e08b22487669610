"""The requirements on a pod's node, and the source of each: the NodePool, the pod, or other pods."""

from collections.abc import Iterator
from typing import Final

import msgspec

from shared.model.core.labels import CAPACITY_TYPE, HOSTNAME, NODECLASS, NODEPOOL
from shared.model.core.requirements import Requirement, Requirements, build_label_requirements, list_requirement_entries
from shared.model.decisions.placement import NewNodeClaim
from shared.model.karpenter.node_pool import NodePool
from shared.model.kubernetes.pod import Pod, build_strict_requirements

_KEYS_OF_EVERY_NODE: Final = frozenset((HOSTNAME, NODEPOOL, NODECLASS))


class PlacementConstraint(msgspec.Struct, frozen=True, kw_only=True):
    """A requirement on the node of a pod, and its sources."""

    requirement: dict[str, object]
    sources: tuple[str, ...]


def list_constraints(pool: NodePool, pod: Pod, node: NewNodeClaim) -> Iterator[PlacementConstraint]:
    """Yield the requirements that *node* has to meet for *pod*, with their sources."""
    pool_requirements, pod_requirements = _build_pool_requirements(pool), build_strict_requirements(pod.spec)
    topology_sources = _list_topology_sources(pod)
    for item in node.requirements:
        is_requested = item.key in pod_requirements or item.key in pool_requirements
        if item.key in _KEYS_OF_EVERY_NODE or (item.key == CAPACITY_TYPE and not is_requested):
            continue
        sources = [f"NodePool {pool.name}"] if item.key in pool_requirements else []
        sources += ["the pod"] if item.key in pod_requirements else []
        combined = pool_requirements[item.key] & pod_requirements[item.key]
        if _is_narrower(item, combined):
            sources.append(topology_sources.get(item.key) or _infer_source(pod, node))
        for entry in list_requirement_entries(Requirements(items=(item,))):
            yield PlacementConstraint(requirement=entry, sources=tuple(sources))
    if HOSTNAME in topology_sources:
        requirement: dict[str, object] = {"key": HOSTNAME, "operator": "Exists"}
        yield PlacementConstraint(requirement=requirement, sources=(topology_sources[HOSTNAME],))


def _is_narrower(item: Requirement, expected: Requirement) -> bool:
    """Return whether *item* allows less than *expected*; available capacity types are not a constraint."""
    return item.key != CAPACITY_TYPE and (item.complement, item.values) != (expected.complement, expected.values)


def _list_topology_sources(pod: Pod) -> dict[str, str]:
    """Return the pod's topology constraints as text, by label key."""
    spec = pod.spec
    sources = {term.topology_key: "the pod's anti-affinity" for term in spec.pod_anti_affinity}
    sources |= {term.topology_key: "the pod's affinity to other pods" for term in spec.pod_affinity}
    return sources | {
        spread_constraint.topology_key: f"the pod's topology spread (maxSkew {spread_constraint.max_skew})"
        for spread_constraint in spec.spread
    }


def _infer_source(pod: Pod, node: NewNodeClaim) -> str:
    """Return what narrowed the placement of *pod* if neither the NodePool nor the pod's requirements did."""
    spec = pod.spec
    if spec.volume_claims:
        return "the pod's volumes"
    if len(node.pods) > 1:
        return "other pods on the node"
    if spec.preferred_terms or spec.preferred_pod_affinity or spec.preferred_pod_anti_affinity:
        return "the pod's preferences"
    return "pods on other nodes"


def _build_pool_requirements(pool: NodePool) -> Requirements:
    return pool.requirements & build_label_requirements(pool.labels)
