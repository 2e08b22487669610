"""Scheduling requirements of a pod, parsed once for all pods that are alike."""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from shared.model.core.units import parse_quantity
from sim.cluster.matching import (
    Labels,
    Obj,
    Predicate,
    compile_label_selector,
    compile_node_selector_term,
    compile_required_node_affinity,
    get_required_node_terms,
)

Resources = dict[str, int]

_DEFAULT_CPU_MILLI: Final = 100
_DEFAULT_MEMORY_BYTES: Final = 200 * 1024 * 1024
_amount_cache: dict[tuple[str, str], int] = {}


def parse_amount(name: str, text: object) -> int:
    """Parse the quantity *text* of resource *name*: millicores for cpu, whole units for all other resources."""
    key = (name, str(text))
    if key not in _amount_cache:
        _amount_cache[key] = parse_quantity(key[1], per_unit=1000 if name == "cpu" else 1)
    return _amount_cache[key]


def parse_resources(quantities: Obj | None) -> Resources:
    """Parse a resource list."""
    return {name: parse_amount(name, text) for name, text in sorted((quantities or {}).items())}


def compute_pod_requests(spec: Obj) -> Resources:
    """Return the requests of a pod: the larger of containers and init containers, plus overhead.

    Sidecars (restartable init containers) count together with the containers.
    """
    container_requests: Resources = {}
    for container in spec.get("containers") or []:
        _add_resources(container_requests, _parse_container_requests(container))
    init_requests, sidecar_requests = _sum_init_requests(spec.get("initContainers") or [])
    _add_resources(container_requests, sidecar_requests)
    total = {
        name: max(container_requests.get(name, 0), init_requests.get(name, 0))
        for name in sorted(container_requests.keys() | init_requests.keys())
    }
    _apply_pod_level_resources(total, spec)
    _add_resources(total, parse_resources(spec.get("overhead")))
    return total


def _parse_container_requests(container: Obj) -> Resources:
    requirements = container.get("resources") or {}
    return parse_resources((requirements.get("limits") or {}) | (requirements.get("requests") or {}))


def _sum_init_requests(containers: Iterable[Obj]) -> tuple[Resources, Resources]:
    init_requests: Resources = {}
    sidecar_requests: Resources = {}
    for container in containers:
        requests = _parse_container_requests(container)
        if container.get("restartPolicy") == "Always":
            _add_resources(sidecar_requests, requests)
            requests = {}
        for name in requests.keys() | sidecar_requests.keys():
            init_requests[name] = max(init_requests.get(name, 0), requests.get(name, 0) + sidecar_requests.get(name, 0))
    return init_requests, sidecar_requests


def _apply_pod_level_resources(total: Resources, spec: Obj) -> None:
    requirements = spec.get("resources") or {}
    total.update(parse_resources((requirements.get("limits") or {}) | (requirements.get("requests") or {})))


def _add_resources(total: Resources, added: Resources) -> None:
    for name, count in added.items():
        total[name] = total.get(name, 0) + count


def list_host_ports(spec: Obj) -> tuple[tuple[str, str, int], ...]:
    """Return the host ports of *spec* as (ip, protocol, port), sorted."""
    host_ports = set()
    for container in (spec.get("containers") or []) + (spec.get("initContainers") or []):
        for port in container.get("ports") or []:
            number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") else 0)
            if number:
                host_ports.add((port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", int(number)))  # noqa: S104 - any
    return tuple(sorted(host_ports))


class CompiledAffinityTerm:
    """A compiled pod affinity term: label selector, namespaces and topology key."""

    __slots__ = ("id", "labels", "namespace_selector", "namespaces", "topology_key", "weight")

    def __init__(self, term: Obj, namespace: str, labels: Labels, weight: int = 0) -> None:
        """Compile *term* of a pod in *namespace* with *labels*."""
        selector = _merge_label_keys(term, labels)
        self.labels = compile_label_selector(selector)
        self.namespace_selector = (
            None if term.get("namespaceSelector") is None else compile_label_selector(term["namespaceSelector"])
        )
        names = term.get("namespaces") or ([] if self.namespace_selector else [namespace])
        self.namespaces = frozenset(names)
        self.topology_key: str = term["topologyKey"]
        self.weight = weight
        self.id = json.dumps([selector, sorted(names), term.get("namespaceSelector")], sort_keys=True)

    def is_match(self, shape: "SchedulingShape", namespace_labels: Callable[[str], Labels]) -> bool:
        """Return whether the term selects pods of *shape*."""
        is_in_namespace = shape.namespace in self.namespaces or (
            self.namespace_selector is not None and self.namespace_selector(namespace_labels(shape.namespace))
        )
        return is_in_namespace and self.labels(shape.labels)


def _merge_label_keys(term: Obj, labels: Labels) -> Obj | None:
    """Return the term's label selector with matchLabelKeys and mismatchLabelKeys as expressions."""
    selector: Obj | None = term.get("labelSelector")
    keys = [(key, "In") for key in term.get("matchLabelKeys") or []]
    keys += [(key, "NotIn") for key in term.get("mismatchLabelKeys") or []]
    label_expressions = [
        {"key": key, "operator": operator, "values": [labels[key]]} for key, operator in keys if key in labels
    ]
    if selector is None or not label_expressions:
        return selector
    return selector | {"matchExpressions": (selector.get("matchExpressions") or []) + label_expressions}


class CompiledSpreadConstraint:
    """A compiled topology spread constraint."""

    __slots__ = ("honors_affinity", "honors_taints", "max_skew", "min_domains", "selects", "term", "topology_key")

    def __init__(self, constraint: Obj, namespace: str, labels: Labels) -> None:
        """Compile *constraint* of a pod in *namespace* with *labels*."""
        self.term = CompiledAffinityTerm(constraint | {"namespaces": [namespace]}, namespace, labels)
        self.topology_key: str = constraint["topologyKey"]
        self.max_skew: int = constraint.get("maxSkew", 1)
        self.min_domains: int = constraint.get("minDomains") or 1
        self.honors_affinity = constraint.get("nodeAffinityPolicy", "Honor") == "Honor"
        self.honors_taints = constraint.get("nodeTaintsPolicy", "Ignore") == "Honor"
        self.selects: Predicate = self.term.labels


class SchedulingShape:
    """Everything in a pod that influences its scheduling, except the state of its claims."""

    def __init__(self, key: str, namespace: str, labels: Labels, spec: Obj) -> None:
        """Parse *spec*."""
        self.key, self.namespace, self.labels = key, namespace, labels
        self.requests = compute_pod_requests(spec)
        self.score_requests = (
            self.requests.get("cpu") or _DEFAULT_CPU_MILLI,
            self.requests.get("memory") or _DEFAULT_MEMORY_BYTES,
        )
        self.nonzero_requests = tuple((name, count) for name, count in self.requests.items() if count)
        self.host_ports = list_host_ports(spec)
        self.tolerations: list[Obj] = spec.get("tolerations") or []
        self.is_required_node = compile_required_node_affinity(spec)
        self.named_nodes = _find_named_nodes(spec)
        self.preferred_node_terms = _compile_preferred_node_terms(spec)
        self.can_preempt = spec.get("preemptionPolicy") != "Never"
        affinity = spec.get("affinity") or {}
        self.affinity_terms, self.preferred_affinity_terms = _compile_affinity_terms(
            affinity.get("podAffinity"), namespace, labels
        )
        self.anti_affinity_terms, self.preferred_anti_affinity_terms = _compile_affinity_terms(
            affinity.get("podAntiAffinity"), namespace, labels
        )
        spreads = spec.get("topologySpreadConstraints") or []
        compiled_constraints = [
            (entry.get("whenUnsatisfiable", "DoNotSchedule"), CompiledSpreadConstraint(entry, namespace, labels))
            for entry in spreads
        ]
        self.spread_constraints = tuple(spread for when, spread in compiled_constraints if when == "DoNotSchedule")
        self.preferred_spread_constraints = tuple(
            spread for when, spread in compiled_constraints if when != "DoNotSchedule"
        )
        self.claim_names = tuple(_iterate_claim_names(spec))
        self.ephemeral_volume_names = tuple(
            volume["name"] for volume in spec.get("volumes") or [] if volume.get("ephemeral")
        )
        preferred_rules = (
            self.preferred_affinity_terms or self.preferred_anti_affinity_terms or self.preferred_spread_constraints
        )
        self.has_inter_pod_rules = bool(
            self.affinity_terms or self.anti_affinity_terms or self.spread_constraints or preferred_rules
        )


def _compile_affinity_terms(
    affinity: Obj | None, namespace: str, labels: Labels
) -> tuple[tuple[CompiledAffinityTerm, ...], tuple[CompiledAffinityTerm, ...]]:
    terms = affinity or {}
    required_entries = terms.get("requiredDuringSchedulingIgnoredDuringExecution") or []
    preferred_entries = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or []
    return (
        tuple(CompiledAffinityTerm(term, namespace, labels) for term in required_entries),
        tuple(
            CompiledAffinityTerm(entry["podAffinityTerm"], namespace, labels, entry["weight"])
            for entry in preferred_entries
        ),
    )


def _compile_preferred_node_terms(spec: Obj) -> tuple[tuple[int, Callable[[str, Labels], bool]], ...]:
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity")) or {}
    entries = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []
    return tuple((entry["weight"], compile_node_selector_term(entry["preference"])) for entry in entries)


def _find_named_nodes(spec: Obj) -> frozenset[str] | None:
    """Return the node names in the required node affinity; None unless each of its terms names nodes."""
    terms = get_required_node_terms(spec)
    if not terms:
        return None
    names: set[str] = set()
    for term in terms:
        fields = [
            field
            for field in term.get("matchFields") or []
            if field["key"] == "metadata.name" and field["operator"] == "In"
        ]
        if not fields:
            return None
        names |= set(fields[0]["values"])
    return frozenset(names)


def _iterate_claim_names(spec: Obj) -> Iterable[str]:
    for volume in spec.get("volumes") or []:
        if volume.get("persistentVolumeClaim"):
            yield volume["persistentVolumeClaim"]["claimName"]


_SHAPE_SPEC_FIELDS: Final = (
    *("affinity", "hostNetwork", "nodeSelector", "overhead", "preemptionPolicy", "resources", "tolerations"),
    "topologySpreadConstraints",
)


def _build_container_key(container: Obj) -> list[Any]:
    return [container.get("resources"), container.get("ports"), container.get("restartPolicy")]


class ShapeCache:
    """The shapes of all pods so far."""

    def __init__(self) -> None:
        """Create an empty cache."""
        self._shape_by_key: dict[str, SchedulingShape] = {}

    def get_shape(self, pod: Obj) -> SchedulingShape:
        """Return the shape of *pod*, the same object for pods that are alike."""
        spec, metadata = pod["spec"], pod["metadata"]
        volumes = [
            volume
            for volume in spec.get("volumes") or []
            if volume.get("persistentVolumeClaim") or volume.get("ephemeral")
        ]
        parts = [
            metadata.get("namespace", ""),
            metadata.get("labels"),
            [spec.get(part) for part in _SHAPE_SPEC_FIELDS],
            [_build_container_key(container) for container in spec.get("containers") or []],
            [_build_container_key(container) for container in spec.get("initContainers") or []],
            volumes,
        ]
        key = json.dumps(parts, sort_keys=True)
        shape = self._shape_by_key.get(key)
        if shape is None:
            shape = SchedulingShape(key, metadata.get("namespace", ""), metadata.get("labels") or {}, spec)
            self._shape_by_key[key] = shape
        return shape
