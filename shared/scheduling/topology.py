"""What other pods leave open to a pod: the domains of a label, by rule.

Pods with equal rules share a group, which counts pods by domain. A pod is counted in a domain once its node can be in
no other; where pods keep each other apart, every domain that the node may still be in is taken.
"""

from collections.abc import Iterable, Mapping
from itertools import product

import msgspec

from shared.model.cluster import Cluster
from shared.model.labels import HOSTNAME
from shared.model.pods import Pod
from shared.model.requirements import Requirement, Requirements
from shared.model.state import StateNode
from shared.scheduling.relaxation import Stage
from shared.scheduling.rules import Place, Rule, inverse_rules, is_blocked, own_rules
from shared.scheduling.templates import Template


class Group(msgspec.Struct, kw_only=True, eq=False):
    """A rule and its counts; a domain without pods is known by a count of 0."""

    rule: Rule
    counts: dict[str, int]

    def open_to(self, mine: Requirement, own: int) -> frozenset[str]:
        """Answer the domains of *mine* where the rule lets a pod be; *own*: 1 if the pod counts itself."""
        possible = [one for one in self.counts if mine.has(one)] if mine.complement else mine.values
        match self.rule.kind:
            case "spread":
                return self._even(possible, own)
            case "affinity":
                return self._together(possible, own)
            case _:
                return frozenset(domain for domain in possible if not self.counts.get(domain, 0))

    def _even(self, possible: Iterable[str], own: int) -> frozenset[str]:
        most = self.rule.max_skew + self._least() - own
        return frozenset(
            domain
            for domain in possible
            if self.counts.get(domain, 0) <= most and (domain in self.counts or self.rule.key == HOSTNAME)
        )

    def _least(self) -> int:
        """Answer the count that no domain may exceed by more than the skew; a new host has none."""
        rule = self.rule
        if rule.key == HOSTNAME:
            return 0
        eligible = [count for domain, count in self.counts.items() if rule.allows(domain)]
        few = rule.min_domains is not None and len(eligible) < rule.min_domains
        return 0 if few else min(eligible, default=0)

    def _together(self, possible: Iterable[str], own: int) -> frozenset[str]:
        there = frozenset(domain for domain in possible if self.counts.get(domain, 0))
        if there or not own:
            return there
        taken = any(count and self.rule.allows(domain) for domain, count in self.counts.items())
        return frozenset() if taken else frozenset(possible)

    def add(self, domains: Iterable[str], count: int) -> None:
        """Count *count* pods in each of *domains*."""
        for domain in domains:
            self.counts[domain] = self.counts.get(domain, 0) + count


class Topology(msgspec.Struct, kw_only=True, eq=False):
    """All groups of a run."""

    cluster: Cluster
    index: dict[Rule, int] = msgspec.field(default_factory=dict)
    groups: list[Group] = msgspec.field(default_factory=list)
    known: dict[tuple[str, object], tuple[int, ...]] = msgspec.field(default_factory=dict)

    def fork(self) -> "Topology":
        """Answer the same groups, to be counted on from here."""
        groups = [Group(rule=group.rule, counts=dict(group.counts)) for group in self.groups]
        return msgspec.structs.replace(self, groups=groups)

    def rules(self, pod: Pod, stage: Stage) -> tuple[int, ...]:
        """Answer the groups by which *pod* is bound at *stage*: its own, and those that keep it away."""
        own = (self.index[rule] for rule in own_rules(pod, stage, self.cluster.namespaces))
        away = (number for number in self.selecting(pod) if self.groups[number].rule.kind == "inverse")
        return tuple(dict.fromkeys((*own, *away)))

    def owned(self, pod: Pod) -> tuple[int, ...]:
        """Answer the groups by which *pod* keeps others away."""
        return tuple(self.index[rule] for rule in inverse_rules(pod, self.cluster.namespaces))

    def selecting(self, pod: Pod) -> tuple[int, ...]:
        """Answer the groups whose selector *pod* matches."""
        key = (pod.meta.namespace, pod.meta.labels)
        if key not in self.known:
            labels = dict(pod.meta.labels)
            self.known[key] = tuple(
                number for number, one in enumerate(self.groups) if one.rule.selects(pod.meta.namespace, labels)
            )
        return self.known[key]

    def choices(self, bound: tuple[int, ...], selecting: tuple[int, ...], place: Place) -> list[Requirements]:
        """Answer what may be required of *place* so that all groups in *bound* are content, the best first."""
        by_key: dict[str, list[int]] = {}
        for number in bound:
            rule = self.groups[number].rule
            if place.may_have(rule.key):
                by_key.setdefault(rule.key, []).append(number)
            elif rule.kind != "inverse":
                return []
        options = [self._options(key, some, selecting, place) for key, some in sorted(by_key.items())]
        return [Requirements(items=tuple(item for item in some if item.key != HOSTNAME)) for some in product(*options)]

    def record(self, counted: Iterable[int], place: Place, count: int = 1) -> list[int]:
        """Count pods on *place* in the groups *counted*; answer those that wait for its domain to be decided."""
        waiting = []
        for number in counted:
            group = self.groups[number]
            mine = place.on(group.rule.key)
            if not place.may_have(group.rule.key) or not group.rule.counts_on(place):
                continue
            if group.rule.kind in ("apart", "inverse"):
                group.add([one for one in group.counts if mine.has(one)] if mine.complement else mine.values, count)
            elif not mine.complement and len(mine.values) == 1:
                group.add(mine.values, count)
            else:
                waiting.append(number)
        return waiting

    def counted(self, pod: Pod) -> tuple[int, ...]:
        """Answer the groups in which *pod* counts, wherever it is placed."""
        mine = (number for number in self.selecting(pod) if self.groups[number].rule.kind != "inverse")
        return (*mine, *self.owned(pod))

    def _options(self, key: str, some: list[int], selecting: tuple[int, ...], place: Place) -> list[Requirement]:
        groups = [self.groups[number] for number in some]
        mine = place.on(key)
        open_ = [one.open_to(mine, int(number in selecting)) for one, number in zip(groups, some, strict=True)]
        domains = frozenset.intersection(*open_)
        if not domains:
            return []
        if key == HOSTNAME or all(one.rule.kind in ("apart", "inverse") for one in groups):
            return [Requirement(key=key, values=domains)]

        def load(domain: str) -> tuple[int, str]:
            signs = ((1 if one.rule.kind == "spread" else -1, one) for one in groups if one.rule.kind != "inverse")
            return sum(sign * one.counts.get(domain, 0) for sign, one in signs), domain

        return [Requirement(key=key, values=frozenset((domain,))) for domain in sorted(domains, key=load)]


def topology(
    cluster: Cluster,
    batch: Iterable[tuple[Pod, Stage]],
    places: Mapping[str, Place],
    states: tuple[StateNode, ...],
    staying: frozenset[str],
    templates: tuple[Template, ...],
) -> Topology:
    """Make the groups of the pods in *batch*, and of those that run and keep others away; count who runs already.

    *places*: the nodes of *states* by name; only those that are *staying* are domains for more pods.
    """
    found = Topology(cluster=cluster)
    mine = list(batch)
    names = {pod.name for pod, _ in mine}
    running = [(pod, state) for state in states for pod in state.pods if pod.is_active() and pod.name not in names]
    for pod, stage in mine:
        _make(found, (*own_rules(pod, stage, cluster.namespaces), *inverse_rules(pod, cluster.namespaces)))
    for pod, _ in running:
        _make(found, inverse_rules(pod, cluster.namespaces))
    if found.groups:
        _register(found, [places[name] for name in sorted(staying)], templates)
        for pod, state in running:
            found.record(found.counted(pod), places[state.name])
    return found


def _make(found: Topology, rules: Iterable[Rule]) -> None:
    for rule in rules:
        if rule not in found.index:
            found.index[rule] = len(found.groups)
            found.groups.append(Group(rule=rule, counts={}))


def _register(found: Topology, places: list[Place], templates: tuple[Template, ...]) -> None:
    """Let the groups know the domains that there are, and those that pools could make."""
    for group in found.groups:
        rule = group.rule
        for one in templates:
            if rule.tolerations is None or not is_blocked(one.pool.taints, rule.tolerations):
                group.counts |= dict.fromkeys(_domains(one, rule.key), 0)
        for place in places:
            values = place.on(rule.key).values
            if rule.key in place.by_key and len(values) == 1 and rule.counts_on(place):
                group.counts |= dict.fromkeys(values, 0)


def _domains(one: Template, key: str) -> Iterable[str]:
    mine = one.start.requirements[key]
    if key == HOSTNAME:
        return ()
    if one.shelf.speaks_of(key):
        return one.shelf.values(mine, one.shelf.compatible(one.start.requirements))
    return () if mine.complement else mine.values
