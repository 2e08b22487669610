"""What other pods leave open to a pod: the domains of a label, by rule.

Pods with equal rules share a group, which counts pods by domain. A pod is counted in a domain once its node can be in
no other; where pods keep each other apart, every domain that the node may still be in is taken. Where the domain is
the host, a group knows besides, as bits, which nodes have how many: those are excluded, or sought, all at once.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final

import msgspec

from shared.model.cluster import Cluster
from shared.model.labels import HOSTNAME
from shared.model.objects import Pairs
from shared.model.pods import Pod
from shared.model.requirements import Requirement, Requirements
from shared.model.state import StateNode
from shared.scheduling.relaxation import Stage
from shared.scheduling.rules import Place, Rule, inverse_rules, is_blocked, own_rules, reads_labels
from shared.scheduling.shelf import OFFERING_KEYS, Mask
from shared.scheduling.templates import Template

DEEPEST: Final = 64
"""So many pods on a host are told apart by bits; beyond, they are counted only."""
UNBOUNDED: Final = 1 << 30
NO_LABEL: Final = ("", "")
EVERY: Final[Mask] = -1
"""All types that there are."""


class Group(msgspec.Struct, kw_only=True, eq=False):
    """A rule and its counts; a domain without pods is known by a count of 0."""

    rule: Rule
    counts: dict[str, int]
    levels: list[int]
    """Over hosts: at k, the nodes with more than k pods, as bits."""
    version: int = 0
    """It rises with every count."""
    known: tuple[int, int, bool] = (-1, 0, False)
    """A version, the least count then, and whether some domain was taken."""

    def open_to(self, mine: Requirement, own: int) -> frozenset[str]:
        """Answer the domains of *mine* where the rule lets a pod be; *own*: 1 if the pod counts itself."""
        possible = [one for one in self.counts if mine.has(one)] if mine.complement else mine.values
        kind, counts = self.rule.kind, self.counts
        if kind == "affinity":
            return self._together(possible, own)
        if kind == "spread" and self.rule.key != HOSTNAME:
            most = self.rule.max_skew + self._recall()[1] - own
            return frozenset([domain for domain in possible if domain in counts and counts[domain] <= most])
        return frozenset([domain for domain in possible if self.admits(domain, own)])

    def admits(self, domain: str, own: int) -> bool:
        """Whether a pod may be in *domain*, where its node can be nowhere else."""
        count = self.counts.get(domain, 0)
        match self.rule.kind:
            case "spread":
                is_known = domain in self.counts or self.rule.key == HOSTNAME
                return is_known and count + own <= self.rule.max_skew + self._recall()[1]
            case "affinity":
                return count > 0 or (own > 0 and not self.is_taken())
            case _:
                return not count

    def is_taken(self) -> bool:
        """Whether there is some pod to follow, wherever: kube-scheduler lets nobody begin a second domain."""
        return self._recall()[2]

    def hosts_with(self, more_than: int) -> int:
        """Answer the nodes, as bits, that have more pods; none if that is not told apart."""
        return self.levels[more_than] if more_than < len(self.levels) else 0

    def room_on(self, host: str, own: int, *, counts: bool) -> int:
        """Answer how many more pods *host* may have, before counts are looked at again; *counts*: they are counted."""
        count, rule = self.counts.get(host, 0), self.rule
        match rule.kind:
            case "spread":
                return rule.max_skew - count if own else UNBOUNDED * (count <= rule.max_skew)
            case "affinity":
                return UNBOUNDED if count else int(self.admits(host, own))
            case _:
                return 0 if count else (1 if counts else UNBOUNDED)

    def add(self, domains: Iterable[str], count: int) -> None:
        """Count *count* pods in each of *domains*."""
        for domain in domains:
            self.counts[domain] = self.counts.get(domain, 0) + count
        self.version += 1

    def add_on(self, host: str, bit: int, count: int) -> None:
        """Count *count* pods on *host*, which is the node *bit*."""
        before = self.counts.get(host, 0)
        self.counts[host] = before + count
        self.version += 1
        for more_than in range(before, min(before + count, len(self.levels))):
            self.levels[more_than] |= bit

    def _recall(self) -> tuple[int, int, bool]:
        if self.known[0] != self.version:
            kind = self.rule.kind
            taken = kind == "affinity" and any(self.counts.values())
            self.known = (self.version, self._least() if kind == "spread" else 0, taken)
        return self.known

    def _least(self) -> int:
        """Answer the count that no domain may exceed by more than the skew; a new host has none."""
        rule = self.rule
        if rule.key == HOSTNAME:
            return 0
        if rule.min_domains is None and rule.is_anywhere:
            return min(self.counts.values(), default=0)
        eligible = [count for domain, count in self.counts.items() if rule.allows(domain)]
        few = rule.min_domains is not None and len(eligible) < rule.min_domains
        return 0 if few else min(eligible, default=0)

    def _together(self, possible: Iterable[str], own: int) -> frozenset[str]:
        there = frozenset([domain for domain in possible if self.counts.get(domain, 0)])
        if there or not own or self.is_taken():
            return there
        return frozenset(possible)


class Counting(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What pods on a node count for, of which everything but its host is known."""

    hosts: tuple[int, ...]
    sure: tuple[tuple[int, str], ...]
    """Group and domain."""
    live: tuple[int, ...]
    """Groups that have to be asked each time."""
    waiting: tuple[int, ...]


class Topology(msgspec.Struct, kw_only=True, eq=False):
    """All groups of a run."""

    cluster: Cluster
    index: dict[Rule, int] = msgspec.field(default_factory=dict)
    groups: list[Group] = msgspec.field(default_factory=list)
    known: dict[tuple[str, Pairs], tuple[int, ...]] = msgspec.field(default_factory=dict)
    ruled: dict[tuple[int, str, Pairs], tuple[int, ...]] = msgspec.field(default_factory=dict)
    reading: dict[int, bool] = msgspec.field(default_factory=dict)
    countings: dict[tuple[int, tuple[int, ...]], Counting] = msgspec.field(default_factory=dict)
    by_label: dict[tuple[str, str], list[int]] = msgspec.field(default_factory=dict)
    """The groups whose selector wants this label, each under one key only; under no label: those that name none."""
    sorted_in: int = 0
    """So many groups are there already."""

    def fork(self) -> "Topology":
        """Answer the same groups, to be counted on from here."""
        groups = [
            Group(rule=one.rule, counts=dict(one.counts), levels=list(one.levels), version=one.version)
            for one in self.groups
        ]
        return msgspec.structs.replace(self, groups=groups)

    def rules(self, pod: Pod, stage: Stage) -> tuple[int, ...]:
        """Answer the groups by which *pod* is bound at *stage*: its own, and those that keep it away."""
        if id(stage) not in self.reading:
            self.reading[id(stage)] = reads_labels(pod.spec)
        key = (id(stage), pod.meta.namespace, pod.meta.labels if self.reading[id(stage)] else ())
        if key not in self.ruled:
            own = (self.index[rule] for rule in own_rules(pod, stage, self.cluster.namespaces))
            self.ruled[key] = tuple(dict.fromkeys(own))
        away = [number for number in self.selecting(pod) if self.groups[number].rule.kind == "inverse"]
        return tuple(dict.fromkeys((*self.ruled[key], *away))) if away else self.ruled[key]

    def owned(self, pod: Pod) -> tuple[int, ...]:
        """Answer the groups by which *pod* keeps others away."""
        if not pod.spec.pod_anti_affinity:
            return ()
        return tuple(self.index[rule] for rule in inverse_rules(pod, self.cluster.namespaces))

    def selecting(self, pod: Pod) -> tuple[int, ...]:
        """Answer the groups whose selector *pod* matches."""
        key = (pod.meta.namespace, pod.meta.labels)
        if key not in self.known:
            labels, namespace = dict(pod.meta.labels), pod.meta.namespace
            self.known[key] = tuple(
                number for number in self._likely(labels) if self.groups[number].rule.selects(namespace, labels)
            )
        return self.known[key]

    def _likely(self, labels: Mapping[str, str]) -> list[int]:
        """Answer the groups that may select a pod with *labels*, in order: thousands of pods are alike in none."""
        while self.sorted_in < len(self.groups):
            for label in _labels_of(self.groups[self.sorted_in].rule):
                self.by_label.setdefault(label, []).append(self.sorted_in)
            self.sorted_in += 1
        return sorted(number for label in (NO_LABEL, *labels.items()) for number in self.by_label.get(label, ()))

    def choices(self, bound: Iterable[int], selecting: Collection[int], place: Place) -> list[Requirements]:
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

    def ranked(self, group: int, mine: Requirement, own: int) -> tuple[str, ...]:
        """Answer the domains of *mine* that are open by the rule of *group*, a spread or an affinity; best first."""
        found = self.groups[group]
        domains = found.open_to(mine, own)
        if len(domains) < 2:  # noqa: PLR2004 - nothing to sort
            return tuple(domains)
        sign = 1 if found.rule.kind == "spread" else -1
        counts = found.counts
        return tuple([domain for _, domain in sorted([(sign * counts.get(one, 0), one) for one in domains])])

    def record(self, counted: Iterable[int], place: Place, count: int = 1, bit: int = 0) -> list[int]:
        """Count pods on *place* in the groups *counted*; answer those that wait for its domain to be decided.

        *bit*: of the node, 0 if it is none that pods are placed on.
        """
        waiting = []
        for number in counted:
            group = self.groups[number]
            mine = place.on(group.rule.key)
            if not place.may_have(group.rule.key) or not group.rule.counts_on(place):
                continue
            if group.rule.key == HOSTNAME and len(mine.values) == 1 and not mine.complement:
                group.add_on(min(mine.values), bit, count)
            elif group.rule.kind in ("apart", "inverse"):
                group.add([one for one in group.counts if mine.has(one)] if mine.complement else mine.values, count)
            elif not mine.complement and len(mine.values) == 1:
                group.add(mine.values, count)
            else:
                waiting.append(number)
        return waiting

    def settle(self, counted: tuple[int, ...], place: Place, host: str, bit: int, count: int) -> tuple[int, ...]:
        """Do as `record` does, quickly, for the node *bit* called *host*, of which *place* is known besides."""
        key = (id(place), counted)
        found = self.countings.get(key)
        if found is None:
            found = self.countings[key] = self._counting(counted, place)
        groups = self.groups
        for number in found.hosts:
            groups[number].add_on(host, bit, count)
        for number, domain in found.sure:
            group = groups[number]
            group.counts[domain] = group.counts.get(domain, 0) + count
            group.version += 1
        if not found.live:
            return found.waiting
        named = msgspec.structs.replace(place, by_key={**place.by_key, HOSTNAME: on_host(host)})
        return (*found.waiting, *self.record(found.live, named, count, bit))

    def counted(self, pod: Pod) -> tuple[int, ...]:
        """Answer the groups in which *pod* counts, wherever it is placed."""
        mine = (number for number in self.selecting(pod) if self.groups[number].rule.kind != "inverse")
        return (*mine, *self.owned(pod))

    def seen_on(self, hosts: Sequence[str]) -> None:
        """Tell groups over hosts which node, by its place in *hosts*, has how many pods."""
        for group in self.groups:
            if group.levels and any(group.counts.values()):
                for number, host in enumerate(hosts):
                    for more_than in range(min(group.counts.get(host, 0), len(group.levels))):
                        group.levels[more_than] |= 1 << number

    def _counting(self, counted: tuple[int, ...], place: Place) -> Counting:
        hosts, sure, live, waiting = [], [], [], []
        for number in counted:
            rule = self.groups[number].rule
            mine = place.on(rule.key)
            if any(HOSTNAME in term for term in rule.terms):
                live.append(number)
            elif not rule.counts_on(place) or (rule.key != HOSTNAME and not place.may_have(rule.key)):
                continue
            elif rule.key == HOSTNAME:
                hosts.append(number)
            elif not mine.complement and len(mine.values) == 1:
                sure.append((number, min(mine.values)))
            elif rule.kind in ("apart", "inverse"):
                live.append(number)
            else:
                waiting.append(number)
        return Counting(hosts=tuple(hosts), sure=tuple(sure), live=tuple(live), waiting=tuple(waiting))

    def _options(self, key: str, some: list[int], selecting: Collection[int], place: Place) -> list[Requirement]:
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


def _labels_of(rule: Rule) -> Iterable[tuple[str, str]]:
    """Answer labels of which a pod has exactly one if *rule* selects it."""
    if rule.selector is None:
        return ()
    one = next((one for one in rule.selector.expressions if one.operator == "In"), None)
    return (NO_LABEL,) if one is None else [(one.key, value) for value in dict.fromkeys(one.values)]


def on_host(host: str) -> Requirement:
    """Answer that the node is *host*."""
    return Requirement(key=HOSTNAME, values=frozenset((host,)))


def topology(
    cluster: Cluster,
    batch: Iterable[tuple[Pod, Stage]],
    names: Collection[str],
    places: Mapping[str, Place],
    states: tuple[StateNode, ...],
    staying: frozenset[str],
    templates: tuple[Template, ...],
) -> Topology:
    """Make the groups of the pods in *batch*, and of those that run and keep others away; count who runs already.

    *batch*: one pod of each kind; *names*: all pods that are to be placed. *places*: the nodes of *states* by name;
    only those that are *staying* are domains for more pods.
    """
    found = Topology(cluster=cluster)
    running = [(pod, state) for state in states for pod in state.pods if pod.is_active() and pod.name not in names]
    seen: set[tuple[int, str, Pairs]] = set()
    for pod, stage in batch:
        key = (id(stage), pod.meta.namespace, pod.meta.labels if reads_labels(pod.spec) else ())
        if key not in seen:
            seen.add(key)
            _make(found, (*own_rules(pod, stage, cluster.namespaces), *inverse_rules(pod, cluster.namespaces)))
    for pod, _ in running:
        if pod.spec.pod_anti_affinity:
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
            levels = 0
            if rule.key == HOSTNAME:
                levels = min(rule.max_skew + 1, DEEPEST) if rule.kind == "spread" else 1
            found.groups.append(Group(rule=rule, counts={}, levels=[0] * levels))


def _register(found: Topology, places: list[Place], templates: tuple[Template, ...]) -> None:
    """Let the groups know the domains that there are, and those that pools could make."""
    single = {key: list(_single(places, key)) for key in {group.rule.key for group in found.groups}}
    for group in found.groups:
        rule = group.rule
        for one in templates:
            if rule.tolerations is None or not is_blocked(one.pool.taints, rule.tolerations):
                group.counts |= dict.fromkeys(_domains(one, rule.key), 0)
        some = single[rule.key]
        if rule.kind != "spread" or (rule.is_anywhere and rule.tolerations is None):
            group.counts |= dict.fromkeys([domain for domain, _ in some], 0)
        else:
            group.counts |= dict.fromkeys([domain for domain, place in some if rule.counts_on(place)], 0)


def _single(places: Iterable[Place], key: str) -> Iterator[tuple[str, Place]]:
    """Iterate over the places of which the domain of *key* is known, with that."""
    for place in places:
        known = place.by_key.get(key)
        if known is not None and len(known.values) == 1:
            yield min(known.values), place


def _domains(one: Template, key: str) -> Iterable[str]:
    """Answer the values that nodes of a pool can have.

    Of a label of types, types that the pool excludes count too, as with Karpenter. A zone that none of its own types is
    sold in does not: pods would wait for it for good.
    """
    mine = one.start.requirements[key]
    if key == HOSTNAME:
        return ()
    if one.shelf.speaks_of(key):
        among = one.shelf.compatible(one.start.requirements) if key in OFFERING_KEYS else EVERY
        return one.shelf.values(mine, among)
    return () if mine.complement else mine.values
