"""What the scheduler reads of a pod, parsed once for all pods that are alike."""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from shared.model.units import parse_quantity
from sim.cluster.scheduler_match import (
    Labels,
    Obj,
    Predicate,
    label_selector,
    node_selector_term,
    required_terms,
    wanted_node,
)

Resources = dict[str, int]

_DEFAULT_CPU_MILLI: Final = 100
_DEFAULT_MEMORY_BYTES: Final = 200 * 1024 * 1024
_parsed: dict[tuple[str, str], int] = {}


def amount(name: str, text: object) -> int:
    """Count *text* of resource *name*: milli for cpu, whole units for everything else."""
    key = (name, str(text))
    if key not in _parsed:
        _parsed[key] = parse_quantity(key[1], per_unit=1000 if name == "cpu" else 1)
    return _parsed[key]


def resources(quantities: Obj | None) -> Resources:
    """Parse a resource list."""
    return {name: amount(name, text) for name, text in sorted((quantities or {}).items())}


def pod_requests(spec: Obj) -> Resources:
    """Answer what a pod of *spec* occupies: the larger of its steady state and its start, plus overhead."""
    steady: Resources = {}
    for container in spec.get("containers") or []:
        _add(steady, _container_requests(container))
    start, sidecars = _initialization(spec.get("initContainers") or [])
    _add(steady, sidecars)
    total = {name: max(steady.get(name, 0), start.get(name, 0)) for name in sorted(steady.keys() | start.keys())}
    _apply_pod_level(total, spec)
    _add(total, resources(spec.get("overhead")))
    return total


def _container_requests(container: Obj) -> Resources:
    given = container.get("resources") or {}
    return resources((given.get("limits") or {}) | (given.get("requests") or {}))


def _initialization(containers: Iterable[Obj]) -> tuple[Resources, Resources]:
    start: Resources = {}
    sidecars: Resources = {}
    for container in containers:
        requests = _container_requests(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, requests)
            requests = {}
        for name in requests.keys() | sidecars.keys():
            start[name] = max(start.get(name, 0), requests.get(name, 0) + sidecars.get(name, 0))
    return start, sidecars


def _apply_pod_level(total: Resources, spec: Obj) -> None:
    given = spec.get("resources") or {}
    total.update(resources((given.get("limits") or {}) | (given.get("requests") or {})))


def _add(total: Resources, more: Resources) -> None:
    for name, count in more.items():
        total[name] = total.get(name, 0) + count


def pod_ports(spec: Obj) -> tuple[tuple[str, str, int], ...]:
    """Answer the host ports of *spec* as (ip, protocol, port), sorted."""
    found = set()
    for container in (spec.get("containers") or []) + (spec.get("initContainers") or []):
        for port in container.get("ports") or []:
            number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") else 0)
            if number:
                found.add((port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", int(number)))  # noqa: S104 - any
    return tuple(sorted(found))


class Term:
    """One pod affinity term: which pods, in which namespaces, in which domain."""

    __slots__ = ("id", "labels", "namespace_selector", "namespaces", "topology_key", "weight")

    def __init__(self, term: Obj, namespace: str, labels: Labels, weight: int = 0) -> None:
        """Read *term* of a pod in *namespace* with *labels*."""
        selector = _with_label_keys(term, labels)
        self.labels = label_selector(selector)
        self.namespace_selector = (
            None if term.get("namespaceSelector") is None else label_selector(term["namespaceSelector"])
        )
        names = term.get("namespaces") or ([] if self.namespace_selector else [namespace])
        self.namespaces = frozenset(names)
        self.topology_key: str = term["topologyKey"]
        self.weight = weight
        self.id = json.dumps([selector, sorted(names), term.get("namespaceSelector")], sort_keys=True)

    def covers(self, shape: "Shape", namespace_labels: Callable[[str], Labels]) -> bool:
        """Say whether a pod of *shape* is one of those the term speaks of."""
        inside = shape.namespace in self.namespaces or (
            self.namespace_selector is not None and self.namespace_selector(namespace_labels(shape.namespace))
        )
        return inside and self.labels(shape.labels)


def _with_label_keys(term: Obj, labels: Labels) -> Obj | None:
    """Answer the term's selector with matchLabelKeys and mismatchLabelKeys written out."""
    selector: Obj | None = term.get("labelSelector")
    keys = [(key, "In") for key in term.get("matchLabelKeys") or []]
    keys += [(key, "NotIn") for key in term.get("mismatchLabelKeys") or []]
    more = [{"key": key, "operator": operator, "values": [labels[key]]} for key, operator in keys if key in labels]
    if selector is None or not more:
        return selector
    return selector | {"matchExpressions": (selector.get("matchExpressions") or []) + more}


class Spread:
    """One topology spread constraint."""

    __slots__ = ("honors_affinity", "honors_taints", "max_skew", "min_domains", "selects", "term", "topology_key")

    def __init__(self, constraint: Obj, namespace: str, labels: Labels) -> None:
        """Read *constraint* of a pod in *namespace* with *labels*."""
        self.term = Term(constraint | {"namespaces": [namespace]}, namespace, labels)
        self.topology_key: str = constraint["topologyKey"]
        self.max_skew: int = constraint.get("maxSkew", 1)
        self.min_domains: int = constraint.get("minDomains") or 1
        self.honors_affinity = constraint.get("nodeAffinityPolicy", "Honor") == "Honor"
        self.honors_taints = constraint.get("nodeTaintsPolicy", "Ignore") == "Honor"
        self.selects: Predicate = self.term.labels


class Shape:
    """Everything that decides where a pod may go, except its claims."""

    def __init__(self, key: str, namespace: str, labels: Labels, spec: Obj) -> None:
        """Parse *spec*."""
        self.key, self.namespace, self.labels = key, namespace, labels
        self.requests = pod_requests(spec)
        self.scored = (
            self.requests.get("cpu") or _DEFAULT_CPU_MILLI,
            self.requests.get("memory") or _DEFAULT_MEMORY_BYTES,
        )
        self.needs = tuple((name, count) for name, count in self.requests.items() if count)
        self.ports = pod_ports(spec)
        self.tolerations: list[Obj] = spec.get("tolerations") or []
        self.wanted = wanted_node(spec)
        self.only_nodes = _named_nodes(spec)
        self.preferred = _preferred_nodes(spec)
        self.can_preempt = spec.get("preemptionPolicy") != "Never"
        affinity = spec.get("affinity") or {}
        self.affinity, self.soft_affinity = _pod_terms(affinity.get("podAffinity"), namespace, labels)
        self.anti_affinity, self.soft_anti_affinity = _pod_terms(affinity.get("podAntiAffinity"), namespace, labels)
        spreads = spec.get("topologySpreadConstraints") or []
        read = [
            (entry.get("whenUnsatisfiable", "DoNotSchedule"), Spread(entry, namespace, labels)) for entry in spreads
        ]
        self.spreads = tuple(spread for when, spread in read if when == "DoNotSchedule")
        self.soft_spreads = tuple(spread for when, spread in read if when != "DoNotSchedule")
        self.claims = tuple(_claims(spec))
        self.ephemeral_claims = tuple(volume["name"] for volume in spec.get("volumes") or [] if volume.get("ephemeral"))
        soft = self.soft_affinity or self.soft_anti_affinity or self.soft_spreads
        self.looks_around = bool(self.affinity or self.anti_affinity or self.spreads or soft)


def _pod_terms(affinity: Obj | None, namespace: str, labels: Labels) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    given = affinity or {}
    hard = given.get("requiredDuringSchedulingIgnoredDuringExecution") or []
    soft = given.get("preferredDuringSchedulingIgnoredDuringExecution") or []
    return (
        tuple(Term(term, namespace, labels) for term in hard),
        tuple(Term(entry["podAffinityTerm"], namespace, labels, entry["weight"]) for entry in soft),
    )


def _preferred_nodes(spec: Obj) -> tuple[tuple[int, Callable[[str, Labels], bool]], ...]:
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity")) or {}
    entries = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []
    return tuple((entry["weight"], node_selector_term(entry["preference"])) for entry in entries)


def _named_nodes(spec: Obj) -> frozenset[str] | None:
    """Answer the nodes that the required affinity names, if each of its terms names some."""
    terms = required_terms(spec)
    if not terms:
        return None
    names: set[str] = set()
    for term in terms:
        fields = [f for f in term.get("matchFields") or [] if f["key"] == "metadata.name" and f["operator"] == "In"]
        if not fields:
            return None
        names |= set(fields[0]["values"])
    return frozenset(names)


def _claims(spec: Obj) -> Iterable[str]:
    for volume in spec.get("volumes") or []:
        if volume.get("persistentVolumeClaim"):
            yield volume["persistentVolumeClaim"]["claimName"]


_SPEC_PARTS: Final = (
    "affinity",
    "hostNetwork",
    "nodeSelector",
    "overhead",
    "preemptionPolicy",
    "resources",
    "tolerations",
    "topologySpreadConstraints",
)


def _container_key(container: Obj) -> list[Any]:
    return [container.get("resources"), container.get("ports"), container.get("restartPolicy")]


class Shapes:
    """The shapes seen so far."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[str, Shape] = {}

    def of(self, pod: Obj) -> Shape:
        """Answer the shape of *pod*, the same object for pods that are alike."""
        spec, metadata = pod["spec"], pod["metadata"]
        volumes = [v for v in spec.get("volumes") or [] if v.get("persistentVolumeClaim") or v.get("ephemeral")]
        parts = [
            metadata.get("namespace", ""),
            metadata.get("labels"),
            [spec.get(part) for part in _SPEC_PARTS],
            [_container_key(container) for container in spec.get("containers") or []],
            [_container_key(container) for container in spec.get("initContainers") or []],
            volumes,
        ]
        key = json.dumps(parts, sort_keys=True)
        shape = self._known.get(key)
        if shape is None:
            shape = Shape(key, metadata.get("namespace", ""), metadata.get("labels") or {}, spec)
            self._known[key] = shape
        return shape
