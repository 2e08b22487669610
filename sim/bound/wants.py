"""Who wants a place: pods that are alike, and what sums can say of what they are to each other."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

import msgspec

from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from shared.model.pods import AffinityTerm, Pod, SpreadConstraint
from shared.model.requirements import Requirements
from shared.model.resources import Axes, Vector
from shared.model.selectors import LabelSelector
from shared.scheduling.daemons import terms_of
from shared.scheduling.demand import kinds, stages_of
from shared.scheduling.placement import Options
from shared.scheduling.relaxation import HARD, Stage
from shared.scheduling.volumes import volumes_of

Crowd: TypeAlias = tuple[str, LabelSelector]
"""The pods of a namespace that match."""
Host: TypeAlias = tuple[int, Crowd]
"""So many of a crowd may be on one node, if each of them says so."""
Share: TypeAlias = tuple[str, int, Crowd, tuple[str, ...]]
"""A label, how far its domains may be from even, whose, and the domains that they may be in."""
Wish: TypeAlias = tuple[tuple[Stage, ...], tuple[Requirements, ...]]
"""What a pod asks of a node: any one of the stages, and any one of what its volumes ask."""
SHARED: Final = (ZONE, CAPACITY_TYPE)
"""Labels of offerings that pods are spread over."""


class Want(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that are alike."""

    need: Vector
    wish: Wish
    host: Host | None
    shares: tuple[Share, ...]


def wants_of(
    pods: list[Pod], cluster: Cluster, axes: Axes, options: Options, domains: Mapping[str, frozenset[str]]
) -> dict[Want, int]:
    """Answer how many of *pods* want what; *domains*: of the labels that are shared, all there are."""
    some, volumes = kinds(pods), volumes_of(cluster)
    tried = stages_of(some, options, cluster.pods, discouraged=True)
    found: dict[Want, int] = {}
    for kind in some:
        pod = kind.first
        want = Want(
            need=axes.vector(pod.spec.requests),
            wish=(tried[id(kind.shape)], volumes.alternatives(pod)),
            host=_host(pod),
            shares=tuple(_shares(pod, domains)),
        )
        found[want] = found.get(want, 0) + len(kind.places)
    return found


def closed_shares(found: Mapping[Want, int], cluster: Cluster) -> dict[Share, int]:
    """Answer how many pods each share is about, where no other pod is counted there."""
    counts: dict[Share, int] = {}
    for want, count in found.items():
        for share in want.shares:
            counts[share] = counts.get(share, 0) + count
    crowds = {crowd: 0 for _, _, crowd, _ in counts}
    for pod in cluster.pods if crowds else ():
        labels = dict(pod.meta.labels)
        for namespace, selector in crowds:
            if pod.is_active() and pod.meta.namespace == namespace and selector.matches(labels):
                crowds[namespace, selector] += 1
    return {share: count for share, count in counts.items() if crowds[share[2]] == count}


def _host(pod: Pod) -> Host | None:
    """Answer how few of whom may be with *pod* on a node, itself one of them."""
    apart = ((1, crowd) for term in pod.spec.pod_anti_affinity if (crowd := _kept_apart(pod, term)))
    spread = ((one.max_skew, crowd) for one in _hard(pod, (HOSTNAME,)) if (crowd := _counted(pod, one)))
    return min((*apart, *spread), default=None)


def _shares(pod: Pod, domains: Mapping[str, frozenset[str]]) -> Iterator[Share]:
    for one in _hard(pod, SHARED):
        is_usual = (one.node_affinity_policy, one.node_taints_policy, one.min_domains) == ("Honor", "Ignore", None)
        crowd = _counted(pod, one)
        if is_usual and crowd is not None:
            terms = tuple(terms_of(pod.spec))
            where = [
                name for name in domains[one.topology_key] if any(term[one.topology_key].has(name) for term in terms)
            ]
            yield one.topology_key, one.max_skew, crowd, tuple(sorted(where))


def _hard(pod: Pod, keys: Iterable[str]) -> Iterator[SpreadConstraint]:
    return (one for one in pod.spec.spread if one.when_unsatisfiable == HARD and one.topology_key in keys)


def _counted(pod: Pod, one: SpreadConstraint) -> Crowd | None:
    """Answer whom *one* counts if *pod* is one of them."""
    if one.selector is None or one.match_label_keys or not one.selector.matches(dict(pod.meta.labels)):
        return None
    return pod.meta.namespace, one.selector


def _kept_apart(pod: Pod, term: AffinityTerm) -> Crowd | None:
    """Answer whom *term* keeps away if *pod* is one of them."""
    namespace = pod.meta.namespace
    is_plain = not (term.namespace_selector or term.match_label_keys or term.mismatch_label_keys)
    is_own = not term.namespaces or namespace in term.namespaces
    if term.topology_key != HOSTNAME or term.selector is None or not (is_plain and is_own):
        return None
    return (namespace, term.selector) if term.selector.matches(dict(pod.meta.labels)) else None
