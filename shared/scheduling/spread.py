"""Default topology spread: what a cluster wants of pods that do not say how they are to be spread.

A selector is deduced as kube-scheduler does: from the Services that select the pod and from its controller. Where
nothing can be deduced, nothing is asked.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from shared.model.cluster import Cluster
from shared.model.pods import Pod, SpreadConstraint
from shared.model.selectors import Expression, LabelSelector, selector
from shared.model.workloads import Service, Workload

_LONGEST: Final = 316


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


def default_constraints(text: str) -> tuple[SpreadConstraint, ...]:
    """Read the setting: JSON of ``podTopologySpread.defaultConstraints``; empty text is none.

    Raises:
        ValueError: it is not that, or a constraint cannot be a default.
    """
    if not text.strip():
        return ()
    some = msgspec.json.decode(text, type=_Config).pod_topology_spread.default_constraints
    seen: set[tuple[str, str]] = set()
    for one in some:
        if one.max_skew < 1:
            raise ValueError(f"{one.topology_key}: maxSkew is {one.max_skew}: write one or more")
        if not one.topology_key or len(one.topology_key) > _LONGEST:
            raise ValueError(f"{one.topology_key!r} is no topologyKey: write a label's name")
        if (one.topology_key, one.when_unsatisfiable) in seen:
            raise ValueError(f"{one.topology_key}: {one.when_unsatisfiable} is there twice: remove one")
        seen.add((one.topology_key, one.when_unsatisfiable))
    return tuple(
        SpreadConstraint(
            topology_key=one.topology_key,
            max_skew=one.max_skew,
            when_unsatisfiable=one.when_unsatisfiable,
            min_domains=one.min_domains,
            node_affinity_policy=one.node_affinity_policy,
            node_taints_policy=one.node_taints_policy,
        )
        for one in some
    )


def spread_by_default(cluster: Cluster, constraints: tuple[SpreadConstraint, ...]) -> Cluster:
    """Answer *cluster* with *constraints* on each pod that has none of its own and for which a selector is found."""
    if not constraints:
        return cluster
    find = _Selectors(cluster)
    pods = tuple(_spread(pod, find.selector_of(pod), constraints) for pod in cluster.pods)
    return replace(cluster, pods=pods)


def _spread(pod: Pod, found: LabelSelector | None, constraints: tuple[SpreadConstraint, ...]) -> Pod:
    if found is None:
        return pod
    own = tuple(replace(one, selector=found) for one in constraints)
    return replace(pod, spec=replace(pod.spec, spread=own))


class _Selectors:
    def __init__(self, cluster: Cluster) -> None:
        self._services: dict[str, list[Service]] = defaultdict(list)
        for service in cluster.services:
            if service.selector:
                self._services[service.meta.namespace].append(service)
        self._owners: dict[tuple[str, str, str], Workload] = {}
        for one in _controllers(cluster):
            self._owners[one.meta.namespace, one.kind, one.meta.name] = one

    def selector_of(self, pod: Pod) -> LabelSelector | None:
        """Answer the selector that is deduced, None if there is none or the pod needs none."""
        if pod.spec.spread or pod.is_daemon():
            return None
        labels = dict(pod.meta.labels)
        merged: dict[str, str] = {}
        for service in self._services.get(pod.meta.namespace, ()):
            if all(labels.get(key) == value for key, value in service.selector):
                merged |= dict(service.selector)
        more: tuple[Expression, ...] = ()
        owner = self._owner(pod)
        if owner is not None and owner.selector is not None:
            if owner.kind == "ReplicationController":
                merged |= {one.key: one.values[0] for one in owner.selector.expressions}
            else:
                more = owner.selector.expressions
        found = selector(merged, more)
        return found if found.expressions else None

    def _owner(self, pod: Pod) -> Workload | None:
        for one in pod.meta.owners:
            if one.controller:
                return self._owners.get((pod.meta.namespace, one.kind, one.name))
        return None


def _controllers(cluster: Cluster) -> Iterable[Workload]:
    return (*cluster.replica_sets, *cluster.stateful_sets, *cluster.replication_controllers)
