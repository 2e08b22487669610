"""Pods that wait, in the order in which kube-scheduler takes them up, and what is alike about them."""

from collections.abc import Iterable, Sequence

import msgspec

from shared.model.cluster import Namespace
from shared.model.pods import Pod, PodSpec
from shared.model.requirements import Requirements, requirements_from_labels
from shared.model.resources import CPU, MEMORY, Axes, Vector, axes_of
from shared.scheduling.relaxation import stages
from shared.scheduling.rules import Rule, inverse_rules, own_rules


class Kin(msgspec.Struct, kw_only=True, eq=False):
    """Pods that are alike."""

    number: int
    spec: PodSpec
    need: Vector
    asked: tuple[int, int]
    """Of cpu and memory."""
    terms: tuple[Requirements, ...]
    hard: tuple[Rule, ...]
    soft: tuple[Rule, ...]
    counts_in: tuple[Rule, ...]
    selects_itself: frozenset[Rule]

    @property
    def is_plain(self) -> bool:
        """Whether it minds no other pods."""
        return not self.hard and not self.soft


Runs = tuple[tuple[Kin, tuple[str, ...]], ...]
"""Pods by name, those of one kind that stand one behind the other together."""


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that wait, the first first."""

    axes: Axes
    runs: Runs


def queue_of(pods: Iterable[Pod], namespaces: Iterable[Namespace] = ()) -> Queue:
    """Answer *pods* in the order in which kube-scheduler takes them up: by priority, then by age.

    Of equally old ones the smallest come first, which is the worst case.
    """
    ordered = sorted(pods, key=_turn)
    axes = axes_of({id(pod.spec): pod.spec.requests for pod in ordered}.values())
    known: dict[tuple[object, ...], int] = {}
    specs: dict[int, int] = {}
    by_value: dict[PodSpec, int] = {}
    firsts: list[Pod] = []
    runs: list[tuple[int, list[str]]] = []
    for pod in ordered:
        spec = specs.get(id(pod.spec))
        if spec is None:
            spec = specs[id(pod.spec)] = by_value.setdefault(pod.spec, len(by_value))
        number = known.setdefault((spec, pod.meta.labels, pod.meta.namespace), len(known))
        if number == len(firsts):
            firsts.append(pod)
        if not runs or runs[-1][0] != number:
            runs.append((number, []))
        runs[-1][1].append(pod.name)
    classes = _classes(firsts, axes, tuple(namespaces))
    return Queue(axes=axes, runs=tuple((classes[number], tuple(names)) for number, names in runs))


def _turn(pod: Pod) -> tuple[int, float, int, int, str]:
    created = pod.meta.created_at.timestamp() if pod.meta.created_at is not None else 0.0
    requests = pod.spec.requests
    return -pod.priority, created, requests[MEMORY], requests[CPU], pod.name


def _classes(firsts: Sequence[Pod], axes: Axes, namespaces: tuple[Namespace, ...]) -> list[Kin]:
    """Answer the kinds that *firsts* are the first of; their rules know all who are counted."""
    tried = [stages(pod.spec, "Respect", discouraged=False) for pod in firsts]
    hard = [tuple(own_rules(pod, some[-1], namespaces)) for pod, some in zip(firsts, tried, strict=True)]
    wished = [tuple(own_rules(pod, some[0], namespaces)) for pod, some in zip(firsts, tried, strict=True)]
    away = [tuple(inverse_rules(pod, namespaces)) for pod in firsts]
    counting = dict.fromkeys(rule for some in (*hard, *wished) for rule in some)
    keeping = dict.fromkeys(rule for some in away for rule in some)
    found = []
    for number, pod in enumerate(firsts):
        labels = dict(pod.meta.labels)
        matching = tuple(rule for rule in counting if rule.selects(pod.meta.namespace, labels))
        kept_away = (rule for rule in keeping if rule.selects(pod.meta.namespace, labels))
        found.append(
            Kin(
                number=number,
                spec=pod.spec,
                need=axes.vector(pod.spec.requests),
                asked=(pod.spec.requests[CPU], pod.spec.requests[MEMORY]),
                terms=_terms(pod.spec),
                hard=(*hard[number], *kept_away),
                soft=tuple(rule for rule in wished[number] if rule not in hard[number]),
                counts_in=(*matching, *away[number]),
                selects_itself=frozenset(matching),
            )
        )
    return found


def _terms(spec: PodSpec) -> tuple[Requirements, ...]:
    own = requirements_from_labels(spec.node_selector)
    return tuple(own & term for term in spec.required_terms) or (own,)
