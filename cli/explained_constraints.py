"""What a pod's place had to be, and who made it so: its NodePool, the pod, or others."""

from collections.abc import Iterator
from typing import Final

import msgspec

from shared.model.labels import CAPACITY_TYPE, HOSTNAME, NODECLASS, NODEPOOL
from shared.model.nodepools import NodePool
from shared.model.pods import Pod, strict_requirements
from shared.model.requirements import Requirement, Requirements, requirements_from_labels, written
from shared.scheduling.placement import NewNode

_OF_EVERY_NODE: Final = frozenset((HOSTNAME, NODEPOOL, NODECLASS))


class Constraint(msgspec.Struct, frozen=True, kw_only=True):
    """A requirement of the place, and who made it."""

    requirement: dict[str, object]
    made_by: tuple[str, ...]


def constraints(pool: NodePool, pod: Pod, node: NewNode) -> Iterator[Constraint]:
    """Iterate over what *node* has to be for *pod*, with who wants it so."""
    offered, own = _offered_by(pool), strict_requirements(pod.spec)
    keys = _topology_keys(pod)
    for item in node.requirements:
        is_asked = item.key in own or item.key in offered
        if item.key in _OF_EVERY_NODE or (item.key == CAPACITY_TYPE and not is_asked):
            continue
        makers = [f"pool {pool.name}"] if item.key in offered else []
        makers += ["the pod"] if item.key in own else []
        both = offered[item.key] & own[item.key]
        if _narrows(item, both):
            makers.append(keys.get(item.key) or _whoever(pod, node))
        for entry in written(Requirements(items=(item,))):
            yield Constraint(requirement=entry, made_by=tuple(makers))
    if HOSTNAME in keys:
        yield Constraint(requirement={"key": HOSTNAME, "operator": "Exists"}, made_by=(keys[HOSTNAME],))


def _narrows(item: Requirement, known: Requirement) -> bool:
    """Whether *item* allows less than *known*; which offerings are sold at all is nobody's constraint."""
    return item.key != CAPACITY_TYPE and (item.complement, item.values) != (known.complement, known.values)


def _topology_keys(pod: Pod) -> dict[str, str]:
    """Answer what the pod wants in view of other pods, by label key."""
    spec = pod.spec
    found = {one.topology_key: "the pod's anti-affinity" for one in spec.pod_anti_affinity}
    found |= {one.topology_key: "the pod's affinity to other pods" for one in spec.pod_affinity}
    return found | {one.topology_key: f"the pod's topology spread (maxSkew {one.max_skew})" for one in spec.spread}


def _whoever(pod: Pod, node: NewNode) -> str:
    """Answer who is left to have narrowed the place of *pod*, if neither the pool nor what the pod requires has."""
    spec = pod.spec
    if spec.volume_claims:
        return "the pod's volumes"
    if len(node.pods) > 1:
        return "the pods beside it"
    if spec.preferred_terms or spec.preferred_pod_affinity or spec.preferred_pod_anti_affinity:
        return "the pod's preferences"
    return "pods elsewhere"


def _offered_by(pool: NodePool) -> Requirements:
    return pool.requirements & requirements_from_labels(pool.labels)
