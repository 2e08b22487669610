"""Preferred pod anti-affinity that holds on the current node of a pod is required in the simulation of consolidation.

Provisioning treats preferences as requirements and relaxes them only if a pod cannot be scheduled otherwise. A running
pod can stay where it is, so consolidation does not relax anti-affinity that holds there. Anti-affinity that does not
hold, and all other preferences, are relaxed as for a pending pod.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from shared.decide.scheduling.constraints.preference_relaxation import RelaxationStage
from shared.decide.scheduling.constraints.topology_constraint import (
    NodeDomains,
    TopologyConstraint,
    build_inverse_constraints,
    build_topology_constraints,
)
from shared.decide.scheduling.scheduling_problem import SchedulingProblem, build_problem
from shared.model.cluster import ClusterSnapshot
from shared.model.core.requirements import ANYTHING
from shared.model.decisions.placement import SchedulingOptions
from shared.model.kubernetes.pod import AffinityTerm, Pod
from shared.model.kubernetes.pod_classes import is_reschedulable
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode


def find_kept_anti_affinity(
    cluster_state: ClusterState,
    staying_nodes: Sequence[StateNode],
    node_by_pod: Mapping[str, str],
    options: SchedulingOptions,
) -> dict[str, tuple[AffinityTerm, ...]]:
    """Return, by pod on *staying_nodes*, the terms of its preferred anti-affinity that hold there, if there are any.

    *node_by_pod*: where other pods are expected; they count there. With the preference policy Ignore, nothing is kept.
    """
    if options.preference_policy == "Ignore":
        return {}
    placements = [
        (pod, state)
        for state in staying_nodes
        for pod in state.pods
        if pod.spec.preferred_pod_anti_affinity and pod.is_active() and is_reschedulable(pod)
    ]
    if not placements:
        return {}
    problem = build_problem(
        cluster_state,
        pods=[pod for pod, _ in placements],
        staying_nodes=staying_nodes,
        waiting_pods=node_by_pod.keys(),
        options=options,
    )
    _count_expected_pods(problem, node_by_pod)
    terms_by_pod = {
        pod.name: _list_satisfied(pod, problem.domains_by_node[state.name], problem) for pod, state in placements
    }
    return {pod: terms for pod, terms in terms_by_pod.items() if terms}


def require_anti_affinity(pod: Pod, terms: tuple[AffinityTerm, ...]) -> Pod:
    """Return *pod* with *terms* of its preferred anti-affinity as required anti-affinity."""
    spec = replace(
        pod.spec,
        pod_anti_affinity=(*pod.spec.pod_anti_affinity, *terms),
        preferred_pod_anti_affinity=tuple(term for term in pod.spec.preferred_pod_anti_affinity if term not in terms),
    )
    return replace(pod, spec=spec)


def index_kept_constraints(
    terms_by_pod: Mapping[str, tuple[AffinityTerm, ...]], cluster: ClusterSnapshot
) -> dict[TopologyConstraint, str]:
    """Return the constraints by which kept anti-affinity keeps other pods away, with the first pod that has each.

    *terms_by_pod*: the kept terms of all pods.
    """
    pods = sorted((pod for pod in cluster.pods if pod.name in terms_by_pod), key=lambda pod: pod.name)
    owner_by_constraint: dict[TopologyConstraint, str] = {}
    for pod in pods:
        restricting_pod = replace(pod, spec=replace(pod.spec, pod_anti_affinity=terms_by_pod[pod.name]))
        for constraint in build_inverse_constraints(restricting_pod, cluster.namespaces):
            owner_by_constraint.setdefault(constraint, pod.name)
    return owner_by_constraint


def _count_expected_pods(problem: SchedulingProblem, node_by_pod: Mapping[str, str]) -> None:
    topology = problem.topology
    if topology.groups:
        for pod in problem.cluster.pods:
            node_domains = problem.domains_by_node.get(node_by_pod.get(pod.name, ""))
            if node_domains is not None:
                group_numbers = topology.find_selecting_groups(pod)
                topology.record_pods(
                    [number for number in group_numbers if topology.groups[number].rule.kind != "inverse"],
                    node_domains,
                )


def _list_satisfied(pod: Pod, node_domains: NodeDomains, problem: SchedulingProblem) -> tuple[AffinityTerm, ...]:
    """Return the terms of preferred anti-affinity that hold for *pod*, which is on the node with *node_domains*."""
    terms = pod.spec.preferred_pod_anti_affinity
    stage = RelaxationStage(requirements=ANYTHING, strict=ANYTHING, tolerations=(), anti_affinity=terms)
    constraints = build_topology_constraints(pod, stage, problem.cluster.namespaces)
    return tuple(
        term
        for term, constraint in zip(terms, constraints, strict=True)
        if _is_satisfied(constraint, pod, node_domains, problem)
    )


def _is_satisfied(
    constraint: TopologyConstraint, pod: Pod, node_domains: NodeDomains, problem: SchedulingProblem
) -> bool:
    number = problem.topology.number_by_constraint.get(constraint)
    label_requirement = node_domains.by_key.get(constraint.key)
    if number is None or label_requirement is None:
        return False
    self_count = int(constraint.is_selecting(pod.meta.namespace, dict(pod.meta.labels)))
    return problem.topology.groups[number].counts.get(min(label_requirement.values), 0) <= self_count
