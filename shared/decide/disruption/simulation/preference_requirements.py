"""Preferences that hold on the current node of a pod are requirements in the simulation of consolidation.

Provisioning treats preferences as requirements and relaxes them only if a pod cannot be scheduled otherwise. A running
pod can stay where it is, so consolidation does not relax what holds there. Preferences that do not hold are relaxed as
usual.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from shared.decide.scheduling.constraints.preference_relaxation import DO_NOT_SCHEDULE, RelaxationStage
from shared.decide.scheduling.constraints.topology_constraint import (
    NodeDomains,
    TopologyConstraint,
    build_topology_constraints,
)
from shared.decide.scheduling.scheduling_problem import SchedulingProblem, build_problem
from shared.model.core.requirements import ANYTHING
from shared.model.decisions.placement import SchedulingOptions
from shared.model.kubernetes.pod import AffinityTerm, Pod, PodSpec, SpreadConstraint
from shared.model.kubernetes.pod_classes import is_reschedulable
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode


def keep_preferences(
    cluster_state: ClusterState,
    staying_nodes: Sequence[StateNode],
    node_by_pod: Mapping[str, str],
    options: SchedulingOptions,
) -> dict[str, Pod]:
    """Return, by name, the pods on *staying_nodes* with preferences that hold there, which then are requirements.

    *node_by_pod*: where other pods are expected; they count there. With the preference policy Ignore, no preference is
    kept. PreferNoSchedule taints are not among the preferences.
    """
    if options.preference_policy == "Ignore":
        return {}
    placements = [
        (pod, state)
        for state in staying_nodes
        for pod in state.pods
        if _has_preferences(pod.spec) and pod.is_active() and is_reschedulable(pod)
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
    kept_pods = [
        (pod, _keep_preferences_of(pod, problem.domains_by_node[state.name], problem)) for pod, state in placements
    ]
    return {pod.name: kept_pod for pod, kept_pod in kept_pods if kept_pod.spec != pod.spec}


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


def _has_preferences(spec: PodSpec) -> bool:
    return bool(
        spec.preferred_terms or spec.preferred_pod_affinity or spec.preferred_pod_anti_affinity or _list_soft(spec)
    )


def _list_soft(spec: PodSpec) -> tuple[SpreadConstraint, ...]:
    return tuple(constraint for constraint in spec.spread if constraint.when_unsatisfiable != DO_NOT_SCHEDULE)


def _keep_preferences_of(pod: Pod, node_domains: NodeDomains, problem: SchedulingProblem) -> Pod:
    """Return *pod*, which is on the node with *node_domains*, with the preferences that hold there as requirements."""
    spec, soft_spread = pod.spec, _list_soft(pod.spec)
    preferences = RelaxationStage(
        requirements=ANYTHING,
        strict=ANYTHING,
        tolerations=(),
        affinity=spec.preferred_pod_affinity,
        anti_affinity=spec.preferred_pod_anti_affinity,
        spread=soft_spread,
    )
    constraints = build_topology_constraints(pod, preferences, problem.cluster.namespaces)
    rules: tuple[AffinityTerm | SpreadConstraint, ...] = (
        *spec.preferred_pod_affinity,
        *spec.preferred_pod_anti_affinity,
        *soft_spread,
    )
    kept_rules = {
        rule
        for rule, constraint in zip(rules, constraints, strict=True)
        if _is_satisfied(constraint, pod, node_domains, problem)
    }
    kept_affinity, other_affinity = _split(spec.preferred_pod_affinity, kept_rules)
    kept_anti_affinity, other_anti_affinity = _split(spec.preferred_pod_anti_affinity, kept_rules)
    kept_terms = tuple(term for term in spec.preferred_terms if node_domains.can_satisfy(term.requirements))
    kept_spec = replace(
        spec,
        kept_terms=tuple(term.requirements for term in kept_terms),
        preferred_terms=tuple(term for term in spec.preferred_terms if term not in kept_terms),
        pod_affinity=(*spec.pod_affinity, *kept_affinity),
        preferred_pod_affinity=other_affinity,
        pod_anti_affinity=(*spec.pod_anti_affinity, *kept_anti_affinity),
        preferred_pod_anti_affinity=other_anti_affinity,
        spread=tuple(
            replace(constraint, when_unsatisfiable=DO_NOT_SCHEDULE) if constraint in kept_rules else constraint
            for constraint in spec.spread
        ),
    )
    return replace(pod, spec=kept_spec)


def _split(
    terms: Iterable[AffinityTerm], kept_rules: set[AffinityTerm | SpreadConstraint]
) -> tuple[tuple[AffinityTerm, ...], tuple[AffinityTerm, ...]]:
    """Return the *terms* in *kept_rules*, as required terms, and the other *terms*."""
    preferred_terms = tuple(terms)
    return (
        tuple(replace(term, weight=0) for term in preferred_terms if term in kept_rules),
        tuple(term for term in preferred_terms if term not in kept_rules),
    )


def _is_satisfied(
    constraint: TopologyConstraint, pod: Pod, node_domains: NodeDomains, problem: SchedulingProblem
) -> bool:
    """Return whether *constraint* holds for *pod*, which is on the node with *node_domains* and counts there."""
    number = problem.topology.number_by_constraint.get(constraint)
    label_requirement = node_domains.by_key.get(constraint.key)
    if number is None or label_requirement is None or len(label_requirement.values) != 1:
        return False
    group, domain = problem.topology.groups[number], min(label_requirement.values)
    self_count = int(constraint.is_selecting(pod.meta.namespace, dict(pod.meta.labels)))
    count = group.counts.get(domain, 0) - self_count
    if constraint.kind == "spread":
        return group.can_admit(domain, 0)
    return count > 0 if constraint.kind == "affinity" else count <= 0
