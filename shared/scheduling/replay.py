"""What kube-scheduler would make of nodes if nobody told it: pods in the order of its queue, nodes by its scores.

It is kube-scheduler in small: the filters that a plan can break (room, taints, labels, ports, hard spread and affinity)
and the scores that decide where equal pods go (least and balanced allocation, preferred labels, taints to avoid, soft
rules). A class of pods that minds no others costs a look at a heap for each pod; one that does costs a look at every
node, as long as there are steps left.

Known differences: ties go to the first name instead of to chance; no default spreading; volumes are not looked at.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import Final

import msgspec

from shared.model.labels import HOSTNAME
from shared.model.pods import HostPort
from shared.model.requirements import requirements_from_labels
from shared.model.resources import CPU, MEMORY, Axes, Resources
from shared.model.taints import Taint
from shared.scheduling.ports import conflict
from shared.scheduling.rules import Place, Rule
from shared.scheduling.scores import FULL, UNASKED, Pair, liking, score
from shared.scheduling.turns import Kin, Queue, Runs

STEPS: Final = 400_000
"""Looks at one node for one pod that minds others; when they are used up, it minds them no longer."""


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """One node, as it is when pods first look at it."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    allocatable: Resources
    used: Resources = Resources()
    """By what runs there already: daemons."""


def realise(waves: Sequence[Sequence[Room]], queue: Queue, *, steps: int = STEPS) -> tuple[str, ...]:
    """Answer the pods of *queue*, in its order, that find no place on *waves* of rooms, which open one by one."""
    sites = [_site(room, queue.axes) for wave in waves for room in wave]
    replay = _Replay((pods for pods, _ in queue.runs), sites, steps)
    waiting: Runs = queue.runs
    end = 0
    for wave in waves:
        start, end = end, end + len(wave)
        waiting = replay.settle(waiting, start, end)
    return tuple(name for _, names in waiting for name in names)


class _Site(msgspec.Struct, kw_only=True, eq=False):
    """A room, and what is left of it."""

    name: str
    place: Place
    total: Pair
    free: list[int]
    used: Pair
    counted: Pair
    """As *used*, with something for those who ask for nothing."""
    ports: list[HostPort]

    def score(self, pods: Kin) -> int:
        """Answer how much kube-scheduler likes what is free here."""
        return score(pods.asked, self.total, self.used, self.counted)

    def holds(self, pods: Kin) -> bool:
        """Whether there is room for one more."""
        fits = all(have >= need or need <= 0 for have, need in zip(self.free, pods.need, strict=True))
        return fits and not (pods.spec.host_ports and conflict(self.ports, pods.spec.host_ports))


def _site(room: Room, axes: Axes) -> _Site:
    known = requirements_from_labels(dict(room.labels) | {HOSTNAME: room.labels.get(HOSTNAME, room.name)})
    used = (room.used[CPU], room.used[MEMORY])
    return _Site(
        name=room.name,
        place=Place(by_key={item.key: item for item in known}, taints=room.taints, is_fixed=True),
        total=(room.allocatable[CPU], room.allocatable[MEMORY]),
        free=list(axes.vector(room.allocatable - room.used)),
        used=used,
        counted=used,
        ports=[],
    )


class _Replay:
    """One replay: its sites, the counts of all rules by domain, and the steps that are left."""

    def __init__(self, classes: Iterable[Kin], sites: list[_Site], steps: int) -> None:
        self._sites, self._steps = sites, steps
        self._counts: dict[Rule, dict[str, int]] = {
            rule: {} for one in classes for rule in (*one.hard, *one.soft, *one.counts_in)
        }
        self._likings: dict[tuple[int, str], int | None] = {}

    def settle(self, waiting: Runs, start: int, end: int) -> Runs:
        """Place what can be placed while the sites up to *end* are open, those from *start* on since now.

        Who minds others is tried again as long as that helps: what it waits for may have come behind it.
        """
        fresh, there = self._sites[start:end], self._sites[:end]
        left = self._pass(waiting, fresh, there)
        while any(not one.is_plain for one, _ in left) and _count(left) < _count(waiting):
            waiting, left = left, self._pass(left, (), there)
        return left

    def _pass(self, waiting: Runs, fresh: Sequence[_Site], there: Sequence[_Site]) -> Runs:
        """Who minds nobody has looked at all but the *fresh* sites before, and nothing has become free there."""
        left: list[tuple[Kin, tuple[str, ...]]] = []
        for pods, names in waiting:
            is_plain = pods.is_plain or self._steps <= 0
            taken = self._by_score(pods, len(names), fresh) if is_plain else self._by_rules(pods, len(names), there)
            if taken < len(names):
                left.append((pods, names[taken:]))
        return tuple(left)

    def _by_score(self, pods: Kin, count: int, sites: Sequence[_Site]) -> int:
        admitting = ((site, self._liking(pods, site)) for site in sites if site.holds(pods))
        heap = [
            (-site.score(pods) - liking, site.name, liking, site) for site, liking in admitting if liking is not None
        ]
        heapify(heap)
        taken = 0
        while heap and taken < count:
            _, name, liking, site = heap[0]
            self._put(pods, site)
            taken += 1
            if site.holds(pods):
                heapreplace(heap, (-site.score(pods) - liking, name, liking, site))
            else:
                heappop(heap)
        return taken

    def _by_rules(self, pods: Kin, count: int, sites: Sequence[_Site]) -> int:
        admitting = [site for site in sites if self._liking(pods, site) is not None]
        domains = {rule: _domains(rule, sites) for rule in pods.hard if rule.kind == "spread"}
        for taken in range(count):
            self._steps -= len(admitting)
            fits = [site for site in admitting if site.holds(pods) and self._agrees(pods, site, domains)]
            if not fits:
                return taken
            wishes = self._wishes(pods, fits)
            scores = ((-site.score(pods) - (self._liking(pods, site) or 0), site) for site in fits)
            best = min(scores, key=lambda one: (one[0] - wishes.get(one[1].name, 0), one[1].name))
            self._put(pods, best[1])
        return count

    def _put(self, pods: Kin, site: _Site) -> None:
        cpu, memory = pods.asked
        site.free = [have - need for have, need in zip(site.free, pods.need, strict=True)]
        site.used = (site.used[0] + cpu, site.used[1] + memory)
        site.counted = (site.counted[0] + (cpu or UNASKED[0]), site.counted[1] + (memory or UNASKED[1]))
        site.ports.extend(pods.spec.host_ports)
        for rule in pods.counts_in:
            domain = _domain(rule, site)
            if domain is not None and rule.counts_on(site.place):
                self._counts[rule][domain] = self._counts[rule].get(domain, 0) + 1

    def _liking(self, pods: Kin, site: _Site) -> int | None:
        """Answer what does not change about *site* for such pods: its labels and taints; None: they keep them out."""
        key = (pods.number, site.name)
        if key not in self._likings:
            self._likings[key] = liking(pods.spec, pods.terms, site.place)
        return self._likings[key]

    def _agrees(self, pods: Kin, site: _Site, domains: Mapping[Rule, frozenset[str]]) -> bool:
        """Whether all hard rules let one more pod onto *site*."""
        for rule in pods.hard:
            domain, counts = _domain(rule, site), self._counts[rule]
            if domain is None:
                if rule.kind in ("spread", "affinity"):
                    return False
                continue
            count, own = counts.get(domain, 0), int(rule in pods.selects_itself)
            if rule.kind == "affinity":
                agreed = count > 0 or bool(own and not any(counts.values()))
            elif rule.kind == "spread":
                agreed = count + own - _least(rule, counts, domains[rule]) <= rule.max_skew
            else:
                agreed = count == 0
            if not agreed:
                return False
        return True

    def _wishes(self, pods: Kin, sites: Sequence[_Site]) -> Mapping[str, int]:
        """Answer, by site, what soft rules add to its score: from -200 to 200 each."""
        total: dict[str, int] = {}
        for rule in pods.soft:
            counts = {site.name: self._counts[rule].get(_domain(rule, site) or "", 0) for site in sites}
            most = max(counts.values(), default=0) or 1
            sign = 2 if rule.kind == "affinity" else -2
            for name, count in counts.items():
                total[name] = total.get(name, 0) + sign * (count * FULL // most)
        return total


def _count(runs: Runs) -> int:
    return sum(len(names) for _, names in runs)


def _domain(rule: Rule, site: _Site) -> str | None:
    """Answer the domain of *rule* that *site* is in, None if it is in none."""
    own = site.place.by_key.get(rule.key)
    return next(iter(own.values)) if own is not None else None


def _domains(rule: Rule, sites: Iterable[_Site]) -> frozenset[str]:
    """Answer the domains that nodes are in, of those nodes that count."""
    found = (_domain(rule, site) for site in sites if rule.counts_on(site.place))
    return frozenset(domain for domain in found if domain is not None)


def _least(rule: Rule, counts: Mapping[str, int], domains: frozenset[str]) -> int:
    few = rule.min_domains is not None and len(domains) < rule.min_domains
    return 0 if few else min((counts.get(domain, 0) for domain in domains), default=0)
