"""Topology groups: which domains of a label other pods leave open, for each topology constraint.

Pods with equal constraints share a group, which counts pods by domain. A pod counts in a domain once its node can be in
no other domain; with anti-affinity, every domain that the node may still be in counts as taken. A group over the
hostname also keeps, as bits, which nodes have how many pods: these nodes are excluded or selected all at once.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product

import msgspec

from shared.decide.scheduling.constraints.preference_relaxation import RelaxationStage
from shared.decide.scheduling.constraints.topology_constraint import (
    NodeDomains,
    TopologyConstraint,
    build_inverse_constraints,
    build_topology_constraints,
    has_label_keys,
)
from shared.decide.scheduling.topology.topology_group import (
    NO_LABEL,
    CountingPlan,
    TopologyGroup,
)
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import HOSTNAME
from shared.model.core.metadata import Pairs
from shared.model.core.requirements import Requirement, Requirements
from shared.model.kubernetes.pod import Pod


class Topology(msgspec.Struct, kw_only=True, eq=False):
    """All topology groups of a scheduling run."""

    cluster: ClusterSnapshot
    number_by_constraint: dict[TopologyConstraint, int] = msgspec.field(default_factory=dict)
    groups: list[TopologyGroup] = msgspec.field(default_factory=list)
    selecting_by_labels: dict[tuple[str, Pairs], tuple[int, ...]] = msgspec.field(default_factory=dict)
    binding_by_stage: dict[tuple[int, str, Pairs], tuple[int, ...]] = msgspec.field(default_factory=dict)
    label_dependence_by_stage: dict[int, bool] = msgspec.field(default_factory=dict)
    counting_plans: dict[tuple[NodeDomains, tuple[int, ...]], CountingPlan] = msgspec.field(default_factory=dict)
    groups_by_label: dict[tuple[str, str], list[int]] = msgspec.field(default_factory=dict)
    """Groups whose selector requires the label, under one key of the selector only; NO_LABEL: groups that require no
    label.
    """
    indexed_count: int = 0
    """Number of groups in *groups_by_label*."""

    def fork(self) -> "Topology":
        """Return a copy with the same counts that can be changed independently."""
        groups = [
            TopologyGroup(
                rule=group.rule,
                counts=dict(group.counts),
                host_levels=list(group.host_levels),
                allowed_domains=group.allowed_domains,
                version=group.version,
            )
            for group in self.groups
        ]
        return msgspec.structs.replace(self, groups=groups)

    def find_binding_groups(self, pod: Pod, stage: RelaxationStage) -> tuple[int, ...]:
        """Return the groups that apply to *pod* at *stage*: its own, and those of other pods that keep it away."""
        if stage.number not in self.label_dependence_by_stage:
            self.label_dependence_by_stage[stage.number] = has_label_keys(pod.spec)
        key = (
            stage.number,
            pod.meta.namespace,
            pod.meta.labels if self.label_dependence_by_stage[stage.number] else (),
        )
        if key not in self.binding_by_stage:
            own_groups = (
                self.number_by_constraint[rule]
                for rule in build_topology_constraints(pod, stage, self.cluster.namespaces)
            )
            self.binding_by_stage[key] = tuple(dict.fromkeys(own_groups))
        inverse_groups = [
            number for number in self.find_selecting_groups(pod) if self.groups[number].rule.kind == "inverse"
        ]
        return (
            tuple(dict.fromkeys((*self.binding_by_stage[key], *inverse_groups)))
            if inverse_groups
            else self.binding_by_stage[key]
        )

    def find_inverse_groups(self, pod: Pod) -> tuple[int, ...]:
        """Return the groups by which *pod* keeps other pods away."""
        if not pod.spec.pod_anti_affinity:
            return ()
        return tuple(
            self.number_by_constraint[rule] for rule in build_inverse_constraints(pod, self.cluster.namespaces)
        )

    def find_selecting_groups(self, pod: Pod) -> tuple[int, ...]:
        """Return the groups whose selector matches *pod*."""
        key = (pod.meta.namespace, pod.meta.labels)
        if key not in self.selecting_by_labels:
            labels, namespace = dict(pod.meta.labels), pod.meta.namespace
            self.selecting_by_labels[key] = tuple(
                number
                for number in self._find_candidate_groups(labels)
                if self.groups[number].rule.is_selecting(namespace, labels)
            )
        return self.selecting_by_labels[key]

    def _find_candidate_groups(self, labels: Mapping[str, str]) -> list[int]:
        """Return the groups that may select a pod with *labels*, in order.

        The index avoids testing every group: thousands of pods may have no label in common.
        """
        while self.indexed_count < len(self.groups):
            for label in _list_selector_labels(self.groups[self.indexed_count].rule):
                self.groups_by_label.setdefault(label, []).append(self.indexed_count)
            self.indexed_count += 1
        return sorted(number for label in (NO_LABEL, *labels.items()) for number in self.groups_by_label.get(label, ()))

    def build_domain_choices(
        self, binding_groups: Iterable[int], selecting_groups: Collection[int], node_domains: NodeDomains
    ) -> list[Requirements]:
        """Return the requirements on *node_domains* that satisfy all groups in *binding_groups*, best first."""
        groups_by_key: dict[str, list[int]] = {}
        for group_number in binding_groups:
            rule = self.groups[group_number].rule
            if node_domains.can_have_label(rule.key):
                groups_by_key.setdefault(rule.key, []).append(group_number)
            elif rule.kind != "inverse":
                return []
        options = [
            self._list_domain_options(key, group_numbers, selecting_groups, node_domains)
            for key, group_numbers in sorted(groups_by_key.items())
        ]
        return [
            Requirements(items=tuple(item for item in items if item.key != HOSTNAME)) for items in product(*options)
        ]

    def rank_domains(self, group: int, domain_requirement: Requirement, self_count: int) -> tuple[str, ...]:
        """Return the domains of *domain_requirement* that are open in *group*, a spread or an affinity; best first."""
        topology_group = self.groups[group]
        domains = topology_group.find_open_domains(domain_requirement, self_count)
        if len(domains) < 2:  # noqa: PLR2004 - nothing to sort
            return tuple(domains)
        sign = 1 if topology_group.rule.kind == "spread" else -1
        counts = topology_group.counts
        return tuple(
            [
                domain
                for _, domain in sorted([(sign * counts.get(open_domain, 0), open_domain) for open_domain in domains])
            ]
        )

    def record_pods(
        self, counting_groups: Iterable[int], node_domains: NodeDomains, count: int = 1, node_bit: int = 0
    ) -> list[int]:
        """Count pods of a node in *counting_groups*; return the groups whose domain is not decided yet.

        *node_bit*: the bit of the node; 0 if pods cannot be placed on it.
        """
        undecided_groups = []
        for number in counting_groups:
            group = self.groups[number]
            domain_requirement = node_domains.get_requirement(group.rule.key)
            if not node_domains.can_have_label(group.rule.key) or not group.rule.is_node_counted(node_domains):
                continue
            if group.rule.key == HOSTNAME and len(domain_requirement.values) == 1 and not domain_requirement.complement:
                group.add_pods_on_host(min(domain_requirement.values), node_bit, count)
            elif group.rule.kind in ("apart", "inverse"):
                group.add_pods(
                    [domain for domain in group.counts if domain_requirement.has(domain)]
                    if domain_requirement.complement
                    else domain_requirement.values,
                    count,
                )
            elif not domain_requirement.complement and len(domain_requirement.values) == 1:
                group.add_pods(domain_requirement.values, count)
            else:
                undecided_groups.append(number)
        return undecided_groups

    def record_pods_on_node(
        self, counting_groups: tuple[int, ...], node_domains: NodeDomains, host: str, node_bit: int, count: int
    ) -> tuple[int, ...]:
        """Do the same as `record_pods`, faster, for the node *node_bit* with the name *host* and *node_domains*."""
        key = (node_domains, counting_groups)
        counting_plan = self.counting_plans.get(key)
        if counting_plan is None:
            counting_plan = self.counting_plans[key] = self._build_counting_plan(counting_groups, node_domains)
        groups = self.groups
        for number in counting_plan.host_groups:
            groups[number].add_pods_on_host(host, node_bit, count)
        for number, domain in counting_plan.fixed_domains:
            group = groups[number]
            group.counts[domain] = group.counts.get(domain, 0) + count
            group.version += 1
        if not counting_plan.dynamic_groups:
            return counting_plan.undecided_groups
        host_domains = msgspec.structs.replace(
            node_domains, by_key={**node_domains.by_key, HOSTNAME: build_hostname_requirement(host)}
        )
        return (
            *counting_plan.undecided_groups,
            *self.record_pods(counting_plan.dynamic_groups, host_domains, count, node_bit),
        )

    def find_counting_groups(self, pod: Pod) -> tuple[int, ...]:
        """Return the groups in which *pod* counts, wherever it is placed."""
        selected_groups = (
            number for number in self.find_selecting_groups(pod) if self.groups[number].rule.kind != "inverse"
        )
        return (*selected_groups, *self.find_inverse_groups(pod))

    def index_hosts(self, hosts: Sequence[str]) -> None:
        """Record in the groups over the hostname which node, by its position in *hosts*, has how many pods."""
        for group in self.groups:
            if group.host_levels and any(group.counts.values()):
                for number, host in enumerate(hosts):
                    for more_than in range(min(group.counts.get(host, 0), len(group.host_levels))):
                        group.host_levels[more_than] |= 1 << number

    def _build_counting_plan(self, counting_groups: tuple[int, ...], node_domains: NodeDomains) -> CountingPlan:
        host_groups, fixed_domains, dynamic_groups, undecided_groups = [], [], [], []
        for number in counting_groups:
            rule = self.groups[number].rule
            domain_requirement = node_domains.get_requirement(rule.key)
            if any(HOSTNAME in term for term in rule.terms):
                dynamic_groups.append(number)
            elif not rule.is_node_counted(node_domains) or (
                rule.key != HOSTNAME and not node_domains.can_have_label(rule.key)
            ):
                continue
            elif rule.key == HOSTNAME:
                host_groups.append(number)
            elif not domain_requirement.complement and len(domain_requirement.values) == 1:
                fixed_domains.append((number, min(domain_requirement.values)))
            elif rule.kind in ("apart", "inverse"):
                dynamic_groups.append(number)
            else:
                undecided_groups.append(number)
        return CountingPlan(
            host_groups=tuple(host_groups),
            fixed_domains=tuple(fixed_domains),
            dynamic_groups=tuple(dynamic_groups),
            undecided_groups=tuple(undecided_groups),
        )

    def _list_domain_options(
        self, key: str, group_numbers: list[int], selecting_groups: Collection[int], node_domains: NodeDomains
    ) -> list[Requirement]:
        groups = [self.groups[number] for number in group_numbers]
        domain_requirement = node_domains.get_requirement(key)
        domain_sets = [
            group.find_open_domains(domain_requirement, int(number in selecting_groups))
            for group, number in zip(groups, group_numbers, strict=True)
        ]
        domains = frozenset.intersection(*domain_sets)
        if not domains:
            return []
        if key == HOSTNAME or all(group.rule.kind in ("apart", "inverse") for group in groups):
            return [Requirement(key=key, values=domains)]

        def compute_load(domain: str) -> tuple[int, str]:
            signs = (
                (1 if group.rule.kind == "spread" else -1, group) for group in groups if group.rule.kind != "inverse"
            )
            return sum(sign * group.counts.get(domain, 0) for sign, group in signs), domain

        return [Requirement(key=key, values=frozenset((domain,))) for domain in sorted(domains, key=compute_load)]


def _list_selector_labels(rule: TopologyConstraint) -> Iterable[tuple[str, str]]:
    """Return labels of which a pod has exactly one if *rule* selects it."""
    if rule.selector is None:
        return ()
    in_expression = next((expression for expression in rule.selector.expressions if expression.operator == "In"), None)
    return (
        (NO_LABEL,)
        if in_expression is None
        else [(in_expression.key, value) for value in dict.fromkeys(in_expression.values)]
    )


def build_hostname_requirement(host: str) -> Requirement:
    """Return the requirement that the hostname is *host*."""
    return Requirement(key=HOSTNAME, values=frozenset((host,)))
