"""Build the topology groups of a scheduling run, with the domains that exist and the pods that run there."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from shared.decide.scheduling.constraints.preference_relaxation import RelaxationStage
from shared.decide.scheduling.constraints.topology_constraint import (
    NodeDomains,
    TopologyConstraint,
    build_inverse_constraints,
    build_topology_constraints,
    has_label_keys,
    is_blocked,
)
from shared.decide.scheduling.instance_types.instance_type_index import OFFERING_KEYS
from shared.decide.scheduling.templates.node_claim_template import NodeClaimTemplate
from shared.decide.scheduling.topology.topology import Topology
from shared.decide.scheduling.topology.topology_group import ALL_TYPES, MAX_HOST_LEVELS, TopologyGroup
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import HOSTNAME
from shared.model.core.metadata import Pairs
from shared.model.kubernetes.pod import Pod
from shared.state.state_node import StateNode


def build_topology(
    cluster: ClusterSnapshot,
    batch: Iterable[tuple[Pod, RelaxationStage]],
    names: Collection[str],
    domains_by_node: Mapping[str, NodeDomains],
    states: tuple[StateNode, ...],
    staying: frozenset[str],
    templates: tuple[NodeClaimTemplate, ...],
) -> Topology:
    """Build the groups of the pods in *batch* and of running pods with anti-affinity; count the running pods.

    *batch*: one pod of each shape; *names*: all pods to be scheduled. *domains_by_node*: the domains of the nodes of
    *states*, by name; only nodes in *staying* provide domains for more pods.
    """
    new_topology = Topology(cluster=cluster)
    running = [(pod, state) for state in states for pod in state.pods if pod.is_active() and pod.name not in names]
    seen_keys: set[tuple[int, str, Pairs]] = set()
    for pod, stage in batch:
        key = (stage.number, pod.meta.namespace, pod.meta.labels if has_label_keys(pod.spec) else ())
        if key not in seen_keys:
            seen_keys.add(key)
            _add_groups(
                new_topology,
                (
                    *build_topology_constraints(pod, stage, cluster.namespaces),
                    *build_inverse_constraints(pod, cluster.namespaces),
                ),
            )
    for pod, _ in running:
        if pod.spec.pod_anti_affinity:
            _add_groups(new_topology, build_inverse_constraints(pod, cluster.namespaces))
    if new_topology.groups:
        _register_domains(new_topology, [domains_by_node[name] for name in sorted(staying)], templates)
        for pod, state in running:
            new_topology.record_pods(new_topology.find_counting_groups(pod), domains_by_node[state.name])
    return new_topology


def _add_groups(new_topology: Topology, rules: Iterable[TopologyConstraint]) -> None:
    for rule in rules:
        if rule not in new_topology.number_by_constraint:
            new_topology.number_by_constraint[rule] = len(new_topology.groups)
            levels = 0
            if rule.key == HOSTNAME:
                levels = min(rule.max_skew + 1, MAX_HOST_LEVELS) if rule.kind == "spread" else 1
            new_topology.groups.append(TopologyGroup(rule=rule, counts={}, host_levels=[0] * levels))


def _register_domains(
    new_topology: Topology, nodes_domains: list[NodeDomains], templates: tuple[NodeClaimTemplate, ...]
) -> None:
    """Register the domains of existing nodes, and those that NodePools can create, in the groups."""
    domain_nodes_by_key = {
        key: list(_list_known_domains(nodes_domains, key)) for key in {group.rule.key for group in new_topology.groups}
    }
    for group in new_topology.groups:
        rule = group.rule
        for template in templates:
            if rule.tolerations is None or not is_blocked(template.pool.taints, rule.tolerations):
                group.counts |= dict.fromkeys(_list_template_domains(template, rule.key), 0)
        domain_nodes = domain_nodes_by_key[rule.key]
        if rule.kind != "spread" or (rule.is_anywhere and rule.tolerations is None):
            group.counts |= dict.fromkeys([domain for domain, _ in domain_nodes], 0)
        else:
            group.counts |= dict.fromkeys([domain for domain, place in domain_nodes if rule.is_node_counted(place)], 0)


def _list_known_domains(nodes_domains: Iterable[NodeDomains], key: str) -> Iterator[tuple[str, NodeDomains]]:
    """Yield the domain of *key* with its node, for each node with a single known value of *key*."""
    for node_domains in nodes_domains:
        requirement = node_domains.by_key.get(key)
        if requirement is not None and len(requirement.values) == 1:
            yield min(requirement.values), node_domains


def _list_template_domains(template: NodeClaimTemplate, key: str) -> Iterable[str]:
    """Return the values that nodes of a NodePool can have for the label *key*.

    For labels of instance types, types that the NodePool excludes count too, as in Karpenter. A zone without offerings
    of the NodePool's own types does not count: pods would wait for it forever.
    """
    domain_requirement = template.initial_state.requirements[key]
    if key == HOSTNAME:
        return ()
    if template.type_index.has_label(key):
        eligible_types = (
            template.type_index.find_compatible(template.initial_state.requirements)
            if key in OFFERING_KEYS
            else ALL_TYPES
        )
        return template.type_index.list_values(domain_requirement, eligible_types)
    return () if domain_requirement.complement else domain_requirement.values
