"""Default topology spread: the constraints of a cluster for pods that declare no topology spread.

The selector is deduced as in kube-scheduler: from the Services that select the pod and from its controller. If no
selector can be deduced, no constraint is added.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.selectors import LabelSelector, SelectorExpression, build_label_selector
from shared.model.kubernetes.pod import Pod, SpreadConstraint
from shared.model.kubernetes.workloads import Service, Workload

_MAX_TOPOLOGY_KEY_LENGTH: Final = 316


class _Constraint(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    max_skew: int
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    min_domains: int | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"


class _Spread(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    default_constraints: tuple[_Constraint, ...] = ()


class _Config(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    pod_topology_spread: _Spread = _Spread()


def parse_default_constraints(text: str) -> tuple[SpreadConstraint, ...]:
    """Parse the setting: JSON of ``podTopologySpread.defaultConstraints``; empty text means no constraints.

    Raises:
        ValueError: the text is not that, or a constraint cannot be a default.
    """
    if not text.strip():
        return ()
    constraints = msgspec.json.decode(text, type=_Config).pod_topology_spread.default_constraints
    seen_keys: set[tuple[str, str]] = set()
    for default_constraint in constraints:
        if default_constraint.max_skew < 1:
            raise ValueError(
                f"{default_constraint.topology_key}: maxSkew is {default_constraint.max_skew}: write 1 or more"
            )
        if not default_constraint.topology_key or len(default_constraint.topology_key) > _MAX_TOPOLOGY_KEY_LENGTH:
            raise ValueError(f"{default_constraint.topology_key!r} is not a topologyKey: write a label key")
        if (default_constraint.topology_key, default_constraint.when_unsatisfiable) in seen_keys:
            raise ValueError(
                f"{default_constraint.topology_key}: {default_constraint.when_unsatisfiable} is there "
                "twice: remove one of them"
            )
        seen_keys.add((default_constraint.topology_key, default_constraint.when_unsatisfiable))
    return tuple(
        SpreadConstraint(
            topology_key=constraint.topology_key,
            max_skew=constraint.max_skew,
            when_unsatisfiable=constraint.when_unsatisfiable,
            min_domains=constraint.min_domains,
            node_affinity_policy=constraint.node_affinity_policy,
            node_taints_policy=constraint.node_taints_policy,
        )
        for constraint in constraints
    )


def apply_default_spread(cluster: ClusterSnapshot, constraints: tuple[SpreadConstraint, ...]) -> ClusterSnapshot:
    """Return *cluster* with *constraints* on each pod that has no spread of its own and a deducible selector."""
    if not constraints:
        return cluster
    selectors = _SelectorFinder(cluster)
    pods = tuple(_with_spread(pod, selectors.deduce_selector(pod), constraints) for pod in cluster.pods)
    return replace(cluster, pods=pods)


def _with_spread(pod: Pod, pod_selector: LabelSelector | None, constraints: tuple[SpreadConstraint, ...]) -> Pod:
    if pod_selector is None:
        return pod
    pod_constraints = tuple(replace(constraint, selector=pod_selector) for constraint in constraints)
    return replace(pod, spec=replace(pod.spec, spread=pod_constraints))


class _SelectorFinder:
    def __init__(self, cluster: ClusterSnapshot) -> None:
        self._services_by_namespace: dict[str, list[Service]] = defaultdict(list)
        for service in cluster.services:
            if service.selector:
                self._services_by_namespace[service.meta.namespace].append(service)
        self._controllers_by_key: dict[tuple[str, str, str], Workload] = {}
        for controller in _list_controllers(cluster):
            self._controllers_by_key[controller.meta.namespace, controller.kind, controller.meta.name] = controller

    def deduce_selector(self, pod: Pod) -> LabelSelector | None:
        """Return the selector that kube-scheduler would deduce; None if there is none or the pod needs none."""
        if pod.spec.spread or pod.is_daemon():
            return None
        labels = dict(pod.meta.labels)
        match_labels: dict[str, str] = {}
        for service in self._services_by_namespace.get(pod.meta.namespace, ()):
            if all(labels.get(key) == value for key, value in service.selector):
                match_labels |= dict(service.selector)
        expressions: tuple[SelectorExpression, ...] = ()
        owner = self._find_controller(pod)
        if owner is not None and owner.selector is not None:
            if owner.kind == "ReplicationController":
                match_labels |= {expression.key: expression.values[0] for expression in owner.selector.expressions}
            else:
                expressions = owner.selector.expressions
        deduced_selector = build_label_selector(match_labels, expressions)
        return deduced_selector if deduced_selector.expressions else None

    def _find_controller(self, pod: Pod) -> Workload | None:
        for owner_reference in pod.meta.owners:
            if owner_reference.controller:
                return self._controllers_by_key.get((pod.meta.namespace, owner_reference.kind, owner_reference.name))
        return None


def _list_controllers(cluster: ClusterSnapshot) -> Iterable[Workload]:
    return (*cluster.replica_sets, *cluster.stateful_sets, *cluster.replication_controllers)
