"""Pod groups of the lower bound: equivalent pods, with the constraints that a linear program can express."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

import msgspec

from shared.decide.scheduling.constraints.preference_relaxation import (
    DO_NOT_SCHEDULE,
    RelaxationStage,
    combine_required_terms,
)
from shared.decide.scheduling.scheduling_problem import SchedulingProblem
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from shared.model.core.requirements import Requirements
from shared.model.core.resources import Vector
from shared.model.core.selectors import LabelSelector
from shared.model.kubernetes.pod import AffinityTerm, Pod, SpreadConstraint

PodSelection: TypeAlias = tuple[str, LabelSelector]
"""The pods of a namespace that match a label selector."""
HostLimit: TypeAlias = tuple[int, PodSelection]
"""How many pods of a selection may be on one node, if each of these pods has the constraint."""
SpreadShare: TypeAlias = tuple[str, int, PodSelection, tuple[str, ...]]
"""Even spread: the topology key, the maximum skew, the counted pods, and the domains where they may be."""
NodeDemand: TypeAlias = tuple[tuple[RelaxationStage, ...], tuple[Requirements, ...]]
"""What a pod requires of a node: any one of the relaxation stages, and any one of its volume alternatives."""
SPREAD_KEYS: Final = (ZONE, CAPACITY_TYPE)
"""Labels of offerings that pods are spread over."""


class PodGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Equivalent pods."""

    requests: Vector
    node_demand: NodeDemand
    host_limit: HostLimit | None
    spread_shares: tuple[SpreadShare, ...]


def group_pods(problem: SchedulingProblem, domains: Mapping[str, frozenset[str]]) -> dict[PodGroup, int]:
    """Return how many pods of *problem* are in each group; *domains* has all domains of each spread key."""
    count_by_group: dict[PodGroup, int] = {}
    for pod_shape in problem.pod_shapes:
        pod, stages = pod_shape.representative, problem.stages_by_spec[pod_shape.placement_number]
        unnumbered_stages = tuple(msgspec.structs.replace(stage, number=0) for stage in stages)
        group = PodGroup(
            requests=problem.axes.build_vector(pod.spec.requests),
            node_demand=(unnumbered_stages, problem.volumes.find_alternatives(pod)),
            host_limit=_find_host_limit(pod),
            spread_shares=tuple(_yield_shares(pod, domains)),
        )
        count_by_group[group] = count_by_group.get(group, 0) + len(pod_shape.queue_indexes)
    return count_by_group


def count_closed_shares(count_by_group: Mapping[PodGroup, int], cluster: ClusterSnapshot) -> dict[SpreadShare, int]:
    """Return how many pods each spread share is about; only shares in whose domains no other pod is counted."""
    count_by_share: dict[SpreadShare, int] = {}
    for group, count in count_by_group.items():
        for share in group.spread_shares:
            count_by_share[share] = count_by_share.get(share, 0) + count
    count_by_selection = {selection: 0 for _, _, selection, _ in count_by_share}
    for pod in cluster.pods if count_by_selection else ():
        labels = dict(pod.meta.labels)
        for namespace, selector in count_by_selection:
            if pod.is_active() and pod.meta.namespace == namespace and selector.is_match(labels):
                count_by_selection[namespace, selector] += 1
    return {share: count for share, count in count_by_share.items() if count_by_selection[share[2]] == count}


def _find_host_limit(pod: Pod) -> HostLimit | None:
    """Return the strictest limit of pods per node that applies to *pod* and counts it, or None."""
    anti_affinity_limits = (
        (1, selection) for term in pod.spec.pod_anti_affinity if (selection := _get_excluded_pods(pod, term))
    )
    spread_limits = (
        (constraint.max_skew, selection)
        for constraint in _filter_required(pod, (HOSTNAME,))
        if (selection := _get_counted_pods(pod, constraint))
    )
    return min((*anti_affinity_limits, *spread_limits), default=None)


def _yield_shares(pod: Pod, domains: Mapping[str, frozenset[str]]) -> Iterator[SpreadShare]:
    for constraint in _filter_required(pod, SPREAD_KEYS):
        has_default_policies = (
            constraint.node_affinity_policy,
            constraint.node_taints_policy,
            constraint.min_domains,
        ) == ("Honor", "Ignore", None)
        selection = _get_counted_pods(pod, constraint)
        if has_default_policies and selection is not None:
            node_terms = tuple(combine_required_terms(pod.spec))
            allowed_domains = [
                domain
                for domain in domains[constraint.topology_key]
                if any(term[constraint.topology_key].has(domain) for term in node_terms)
            ]
            yield constraint.topology_key, constraint.max_skew, selection, tuple(sorted(allowed_domains))


def _filter_required(pod: Pod, keys: Iterable[str]) -> Iterator[SpreadConstraint]:
    return (
        constraint
        for constraint in pod.spec.spread
        if constraint.when_unsatisfiable == DO_NOT_SCHEDULE and constraint.topology_key in keys
    )


def _get_counted_pods(pod: Pod, constraint: SpreadConstraint) -> PodSelection | None:
    """Return the pods that *constraint* counts if *pod* is one of them, else None."""
    if (
        constraint.selector is None
        or constraint.match_label_keys
        or not constraint.selector.is_match(dict(pod.meta.labels))
    ):
        return None
    return pod.meta.namespace, constraint.selector


def _get_excluded_pods(pod: Pod, term: AffinityTerm) -> PodSelection | None:
    """Return the pods that *term* keeps off the node if *pod* is one of them, else None."""
    namespace = pod.meta.namespace
    is_plain = not (term.namespace_selector or term.match_label_keys or term.mismatch_label_keys)
    is_own = not term.namespaces or namespace in term.namespaces
    if term.topology_key != HOSTNAME or term.selector is None or not (is_plain and is_own):
        return None
    return (namespace, term.selector) if term.selector.is_match(dict(pod.meta.labels)) else None
