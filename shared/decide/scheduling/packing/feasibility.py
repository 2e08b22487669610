"""Feasibility: which nodes can take a pod, and what these nodes may be narrowed to."""

from collections.abc import Iterable, Iterator

import msgspec

from shared.decide.scheduling.instance_types.masks import merge_masks
from shared.decide.scheduling.nodes.node_index import NodeIndex, Nodes
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.pods.stage_compiler import CompiledStage
from shared.decide.scheduling.templates.node_claim_template import NarrowedTemplate, NodeClaimTemplate
from shared.decide.scheduling.topology.topology import Topology


class SatisfyingNodes(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The existing nodes that satisfy a compiled stage's node requirements."""

    class_count: int
    """How many of the satisfying node equivalence classes belong to existing nodes."""
    nodes: Nodes
    nodes_by_label: dict[str, tuple[dict[str, Nodes], tuple[int, ...]]] = msgspec.field(default_factory=dict)
    """By label: the nodes by label value, and the node equivalence classes with an unknown value."""


class Feasibility(msgspec.Struct, kw_only=True, eq=False):
    """Checks which nodes are feasible, given the nodes and the pods on them; it changes nothing but caches."""

    topology: Topology
    nodes: NodeIndex = msgspec.field(default_factory=NodeIndex)
    closed_nodes: Nodes = 0
    """Nodes that take no pods; no change of other nodes affects that."""
    satisfying_nodes: dict[int, SatisfyingNodes] = msgspec.field(default_factory=dict)
    """By node constraints: the existing nodes that satisfy them. Existing nodes never change their class."""
    cached_states: dict[tuple[NarrowedTemplate, CompiledStage], tuple[int, tuple[NarrowedTemplate, ...]]] = (
        msgspec.field(default_factory=dict)
    )
    """By state and compiled stage: the states that a node may be narrowed to, as of a version of the watched groups."""

    def _find_feasible_nodes(self, pod_class: PodEquivalenceClass, stage: CompiledStage) -> Nodes:
        """Return the nodes that can take such a pod, as far as the bit sets tell."""
        too_full_nodes = self.nodes.find_too_full(stage.shape_number, pod_class.request_vector)
        feasible_nodes = self._find_compatible_nodes(pod_class, stage) & ~(too_full_nodes | self.closed_nodes)
        return (
            self._filter_by_host_constraints(feasible_nodes, stage)
            if stage.topology_bindings.hostname_bindings
            else feasible_nodes
        )

    def _is_feasible(self, number: int, pods: PodEquivalenceClass, stage: CompiledStage) -> bool:
        """Return whether node *number* can take such a pod, as far as the bit sets tell."""
        nodes, class_number = self.nodes, self.nodes.class_by_node[number]
        if (
            not nodes.can_class_satisfy(class_number, stage.node_constraints)
            or nodes.find_too_full(stage.shape_number, pods.request_vector) >> number & 1
        ):
            return False
        if stage.topology_bindings.hostname_bindings and not self._filter_by_host_constraints(1 << number, stage):
            return False
        return not stage.topology_bindings.domain_bindings or self._has_open_domain(class_number, pods, stage)

    def _filter_by_host_constraints(self, nodes: Nodes, stage: CompiledStage) -> Nodes:
        """Drop the nodes of *nodes* that a hostname topology constraint excludes."""
        for binding in stage.topology_bindings.hostname_bindings:
            group = self.topology.groups[binding.group]
            if group.rule.kind == "spread":
                nodes &= ~group.get_hosts_above(group.rule.max_skew - binding.self_count)
            elif group.rule.kind != "affinity":
                nodes &= ~group.get_hosts_above(0)
            elif not binding.self_count or group.has_pods():
                nodes &= group.get_hosts_above(0)
        return nodes

    def _find_compatible_nodes(self, pod_class: PodEquivalenceClass, stage: CompiledStage) -> Nodes:
        """Return the nodes that satisfy, or can be narrowed to, the pod's constraints in domains open to it."""
        satisfying_classes = self.nodes.find_satisfying(stage.node_constraints)
        keys = {binding.key for binding in stage.topology_bindings.domain_bindings}
        if len(keys) > 1:
            return self._merge_compatible(satisfying_classes, pod_class, stage)
        satisfying_nodes = self._get_satisfying_nodes(stage, satisfying_classes)
        open_classes = satisfying_classes[satisfying_nodes.class_count :]
        if not keys:
            return satisfying_nodes.nodes | self._merge_compatible(open_classes, pod_class, stage)
        nodes, classes_to_check = self._find_nodes_in_domains(satisfying_nodes, satisfying_classes, keys.pop(), stage)
        return nodes | self._merge_compatible((*classes_to_check, *open_classes), pod_class, stage)

    def _merge_compatible(
        self, class_numbers: Iterable[int], pod_class: PodEquivalenceClass, stage: CompiledStage
    ) -> Nodes:
        """Return the nodes of those equivalence classes that have a domain open to the pod."""
        members, compatible_nodes = self.nodes.members, 0
        has_domains = bool(stage.topology_bindings.domain_bindings)
        for class_number in class_numbers:
            if members[class_number] and (not has_domains or self._has_open_domain(class_number, pod_class, stage)):
                compatible_nodes |= members[class_number]
        return compatible_nodes

    def _get_satisfying_nodes(self, stage: CompiledStage, satisfying_classes: list[int]) -> SatisfyingNodes:
        number = stage.node_constraints.number
        if number not in self.satisfying_nodes:
            existing_classes = [
                site for site in satisfying_classes if self.nodes.equivalence_classes[site].example is not None
            ]
            bits = merge_masks(self.nodes.members[site] for site in existing_classes)
            self.satisfying_nodes[number] = SatisfyingNodes(class_count=len(existing_classes), nodes=bits)
        return self.satisfying_nodes[number]

    def _find_nodes_in_domains(
        self, satisfying_nodes: SatisfyingNodes, satisfying_classes: list[int], key: str, stage: CompiledStage
    ) -> tuple[Nodes, tuple[int, ...]]:
        """Return the nodes in domains that all topology bindings of *stage* allow.

        Return also the classes that must be checked one by one.
        """
        if key not in satisfying_nodes.nodes_by_label:
            by_domain: dict[str, Nodes] = {}
            classes_to_check: list[int] = []
            for class_number in satisfying_classes[: satisfying_nodes.class_count]:
                domain = self.nodes.equivalence_classes[class_number].single_values.get(key)
                if domain is None:
                    classes_to_check.append(class_number)
                else:
                    by_domain[domain] = by_domain.get(domain, 0) | self.nodes.members[class_number]
            satisfying_nodes.nodes_by_label[key] = (by_domain, tuple(classes_to_check))
        by_domain, unknown_value_classes = satisfying_nodes.nodes_by_label[key]
        bindings = [
            (self.topology.groups[bond.group], bond.self_count) for bond in stage.topology_bindings.domain_bindings
        ]
        open_nodes = (
            bits for domain, bits in by_domain.items() if all(group.can_admit(domain, own) for group, own in bindings)
        )
        return merge_masks(open_nodes), unknown_value_classes

    def _has_open_domain(self, number: int, pods: PodEquivalenceClass, stage: CompiledStage) -> bool:
        """Return whether some domain that the nodes of an equivalence class may be in is open to such a pod."""
        equivalence_class, groups = self.nodes.equivalence_classes[number], self.topology.groups
        for binding in stage.topology_bindings.domain_bindings:
            group = groups[binding.group]
            domain = equivalence_class.single_values.get(group.rule.key)
            if domain is None:
                break
            if not group.can_admit(domain, binding.self_count):
                return False
        else:
            return True
        if equivalence_class.template is not None and equivalence_class.state is not None:
            return bool(self._list_narrowed_states(equivalence_class.template, equivalence_class.state, pods, stage))
        bound_groups = [bond.group for bond in stage.topology_bindings.domain_bindings]
        choices = self.topology.build_domain_choices(bound_groups, pods.selecting_groups, equivalence_class.domains)
        return equivalence_class.example is not None and any(
            equivalence_class.example.can_satisfy(choice) for choice in choices
        )

    def _list_narrowed_states(
        self, template: NodeClaimTemplate, state: NarrowedTemplate, pods: PodEquivalenceClass, stage: CompiledStage
    ) -> tuple[NarrowedTemplate, ...]:
        """Return the states that a node may be narrowed to: by volume topology, then by domain, the best first."""
        compatible_states = template.narrow_to_constraints(state, stage.node_constraints)
        if not stage.topology_bindings.domain_bindings:
            return compatible_states
        single_binding = stage.topology_bindings.single_domain_binding
        if single_binding is not None and len(compatible_states) == 1:
            domain = template.get_known_labels(compatible_states[0]).get(single_binding.key)
            if domain is not None:
                return (
                    compatible_states
                    if self.topology.groups[single_binding.group].can_admit(domain, single_binding.self_count)
                    else ()
                )
        key, version = (state, stage), self._get_version(stage)
        cached = self.cached_states.get(key)
        if cached is not None and cached[0] == version:
            return cached[1]
        states = tuple(self._narrow_by_domains(template, compatible_states, pods, stage))
        self.cached_states[key] = (version, states)
        return states

    def _narrow_by_domains(
        self,
        template: NodeClaimTemplate,
        compatible_states: tuple[NarrowedTemplate, ...],
        pods: PodEquivalenceClass,
        stage: CompiledStage,
    ) -> Iterator[NarrowedTemplate]:
        single_binding = stage.topology_bindings.single_domain_binding
        for compatible_state in compatible_states:
            node_domains = template.get_node_domains(compatible_state)
            if single_binding is not None and node_domains.can_have_label(single_binding.key):
                ranked_domains = self.topology.rank_domains(
                    single_binding.group, node_domains.get_requirement(single_binding.key), single_binding.self_count
                )
                yield from template.narrow_to_domains(compatible_state, single_binding.key, ranked_domains)
                continue
            bound_groups = [bond.group for bond in stage.topology_bindings.domain_bindings]
            for choice in self.topology.build_domain_choices(bound_groups, pods.selecting_groups, node_domains):
                narrowed_state = template.narrow(compatible_state, choice)
                if narrowed_state is not None:
                    yield narrowed_state

    def _get_version(self, stage: CompiledStage) -> int:
        groups, watched = self.topology.groups, stage.topology_bindings.watched_groups
        if len(watched) == 1:
            return groups[watched[0]].version
        return sum([groups[number].version for number in watched])

    def _compute_max_count(self, host: str, stage: CompiledStage, count: int) -> int:
        """Return how many of *count* pods *host* may take at once, given the pods elsewhere.

        After that, feasibility must be checked again.
        """
        if stage.topology_bindings.changes_domains:
            count = 1
        groups = self.topology.groups
        for binding in stage.topology_bindings.hostname_bindings:
            count = min(
                count,
                groups[binding.group].count_host_capacity(host, binding.self_count, is_counted=binding.is_counted),
            )
        for binding in stage.topology_bindings.domain_bindings:
            group = groups[binding.group]
            if group.rule.kind == "affinity" and binding.self_count and not group.has_pods():
                count = min(count, 1)
        return count
