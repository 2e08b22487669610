"""The cluster as a standing state: pods of some nodes are taken out, placed elsewhere on trial, and put back.

It is built once in a sweep. Nodes are in the order in which they are filled: those that stay first. Between two commits
they only fill up, so a node that had no room for a pod, and was not touched since, has none.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from shared.disruption.trials import Trials
from shared.model.pods import Pod
from shared.scheduling.aims import Aim
from shared.scheduling.demand import PodClass
from shared.scheduling.guided import Guide
from shared.scheduling.market import market
from shared.scheduling.nodeset import Nodes
from shared.scheduling.outset import finish
from shared.scheduling.pack import Part
from shared.scheduling.shelf import Mask, union
from shared.scheduling.templates import Narrowed, Template
from shared.scheduling.valued import Valued, valued
from shared.scheduling.wanted import at_stage, possible

EFFORT: Final = 3000
"""So many steps are spent on advice for the pods of one trial."""


class Reach(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The nodes that stand and grant a wish."""

    sites: int
    """How many of the granting sites are those of nodes that stand."""
    all: Nodes
    by_key: dict[str, tuple[dict[str, Nodes], tuple[int, ...]]] = msgspec.field(default_factory=dict)
    """By label: nodes by its value; and the sites where that is not known."""


class Ground(Trials, kw_only=True, eq=False):
    """A packing of what runs, which can be tried out and put back."""

    numbers: dict[str, int] = msgspec.field(default_factory=dict)
    """Of nodes that stand, by name."""
    kinds: dict[str, tuple[int, PodClass]] = msgspec.field(default_factory=dict)
    """By movable pod: place in the queue, and class."""
    everybody: Mapping[str, Pod] = msgspec.field(default_factory=dict)
    """The movable pods, by name."""
    fixtures: dict[int, list[tuple[int, ...]]] = msgspec.field(default_factory=dict)
    """By node: the groups in which pods count that go with it."""
    reaches: dict[int, Reach] = msgspec.field(default_factory=dict)
    """By wish: the nodes that stand and grant it."""
    frees: Mapping[int, tuple[str, Mapping[str, int]]] = msgspec.field(default_factory=dict)
    """By node: its NodePool, and what that may have again of its limits once the node is cleared."""
    valued: Valued | None = None
    """What pods are worth for which advice is asked."""

    def clear(self, number: int) -> list[Pod]:
        """Take node *number* away; answer the movable pods that are homeless now."""
        frame = self.frames[-1]
        if number in self.frees and not any(number in one.gone for one in self.frames):
            pool, room = self.frees[number]
            self.limits[pool] = {name: left + room.get(name, 0) for name, left in self.limits[pool].items()}
        before = self.residents.get(number, {})
        frame.gone.setdefault(number, before)
        self.residents[number] = {}
        self.sealed |= 1 << number
        for pod in before.values():
            if pod.is_active() and pod.name in self.kinds:
                self._uncount(self.kinds[pod.name][1].counted, number)
        for counted in self.fixtures.get(number, ()):
            self._uncount(counted, number)
        return list(before.values())

    def house(self, pods: Iterable[Pod]) -> list[PodClass]:
        """Place *pods*, first those that are first in the queue; answer those without a place, by class.

        It stops at the first class that can have none, unless other pods may make room for it.
        """
        waiting = self.parts(pods)
        for one in waiting:
            self._save(one.counted)
        is_patient = any(any(one.bound) for one in waiting)
        while waiting:
            before = sum(len(one.pods) for one in waiting)
            for one in waiting:
                one.pods = self.place(one)
                if one.pods and not is_patient:
                    return [one for one in waiting if one.pods]
            waiting = [one for one in waiting if one.pods]
            if not is_patient or sum(len(one.pods) for one in waiting) == before:
                break
        return waiting

    def house_at(self, pods: Iterable[Pod], homes: Mapping[str, int]) -> list[PodClass]:
        """Place *pods*, at home where they may be; answer those without a place. *homes*: numbers of nodes."""
        waiting = sorted(pods, key=lambda pod: (self.kinds[pod.name][0], pod.name))
        while waiting:
            left = [pod for pod in waiting if pod.name not in homes or not self.put_at(homes[pod.name], pod)]
            if len(left) == len(waiting):
                break
            waiting = left
        return self.house(waiting)

    def house_advised(self, pods: Iterable[Pod], most: float) -> list[PodClass]:
        """Place *pods* where there is room, the others, which are valued, on new nodes as advised; answer who has none.

        Where the advice costs more than *most* USD per hour, none of these is placed.
        """
        parts = self.parts(pods)
        for one in parts:
            self._save(one.counted)
            stage = possible(self, one)
            one.pods = self.place_on_standing(at_stage(one, stage))
        some = [one for one in parts if one.pods]
        known = self.valued
        if not some or known is None:
            return some
        some = known.in_turn({self.kinds[one.pods[0].name][0]: one for one in some})
        advice = known.advise(known.counts(self, some), EFFORT, most)
        if advice.price <= most:
            guide = Guide(self)
            guide.follow(some, known.market, advice)
            some = finish(self, [one for one in some if one.pods]).left
            guide.widen()
        return [one for one in some if one.pods]

    def on(self, nodes: Iterable[str]) -> list[Pod]:
        """Answer the movable pods that are on *nodes* now."""
        return [pod for name in nodes for pod in self.residents[self.numbers[name]].values() if pod.name in self.kinds]

    def value(self, pods: Iterable[Pod]) -> None:
        """Value *pods*: some of them are to be placed as is advised, on trial."""
        some = [(self.kinds[one.pods[0].name][0], one) for one in self.parts(pods)]
        self.valued = valued(market(self, [one for _, one in some], everywhere=True), some) if some else None

    def open(self, template: Template, state: Narrowed, mask: Mask) -> int | None:
        """Open a node, if one more may be."""
        number = super().open(template, state, mask) if self.may_open > 0 else None
        self.may_open -= number is not None
        return number

    def put_at(self, number: int, pod: Pod) -> bool:
        """Place *pod* on node *number*, if it may be there, giving up what it has to; answer whether it is."""
        one = msgspec.structs.replace(self.kinds[pod.name][1], pods=[pod])
        self._save(one.counted)
        stages = (aim for aim in one.aims if not aim.stage.is_contradictory)
        return any(self.put((number, one, aim, one.pods)) for aim in stages)

    def parts(self, pods: Iterable[Pod]) -> list[PodClass]:
        """Answer *pods* by class, in the order of the queue."""
        found: dict[int, tuple[PodClass, list[tuple[int, Pod]]]] = {}
        for pod in pods:
            place, one = self.kinds[pod.name]
            found.setdefault(id(one), (one, []))[1].append((place, pod))
        some = sorted(found.values(), key=lambda pair: min(place for place, _ in pair[1]))
        return [
            msgspec.structs.replace(one, pods=[pod for _, pod in sorted(placed, key=lambda pair: pair[0])])
            for one, placed in some
        ]

    def _granting(self, pods: PodClass, aim: Aim) -> Nodes:
        """Answer as a packing does; of nodes that stand it is known by wish, or by wish and domain."""
        granted, keys = self.nodes.granted(aim.wish), {bond.key for bond in aim.bonds.domains}
        if len(keys) > 1:
            return super()._granting(pods, aim)
        reach = self._reach(aim, granted)
        if keys:
            found, odd = self._in_domains(reach, granted, keys.pop(), aim)
        else:
            found, odd = reach.all, ()
        members = self.nodes.members
        for site in (*odd, *granted[reach.sites :]):
            if members[site] and (not aim.bonds.domains or self._is_open(site, pods, aim)):
                found |= members[site]
        return found

    def _reach(self, aim: Aim, granted: list[int]) -> Reach:
        number = aim.wish.number
        if number not in self.reaches:
            stand = [site for site in granted if self.nodes.sites[site].example is not None]
            bits = union(self.nodes.members[site] for site in stand)
            self.reaches[number] = Reach(sites=len(stand), all=bits)
        return self.reaches[number]

    def _in_domains(self, reach: Reach, granted: list[int], key: str, aim: Aim) -> tuple[Nodes, tuple[int, ...]]:
        """Answer the nodes in domains that are open by all of the aim's bonds, and sites that are to be asked."""
        if key not in reach.by_key:
            by_domain: dict[str, Nodes] = {}
            odd: list[int] = []
            for site in granted[: reach.sites]:
                domain = self.nodes.sites[site].single.get(key)
                if domain is None:
                    odd.append(site)
                else:
                    by_domain[domain] = by_domain.get(domain, 0) | self.nodes.members[site]
            reach.by_key[key] = (by_domain, tuple(odd))
        by_domain, rest = reach.by_key[key]
        bonds = [(self.topology.groups[bond.group], bond.own) for bond in aim.bonds.domains]
        open_ = (bits for domain, bits in by_domain.items() if all(group.admits(domain, own) for group, own in bonds))
        return union(open_), rest

    def _uncount(self, counted: tuple[int, ...], number: int) -> None:
        if counted:
            self._save(counted)
            self.topology.record(counted, self.standing[number].place, -1)

    def _able(self, pods: PodClass, aim: Aim) -> Nodes:
        return super()._able(pods, aim) & ~self.sealed

    def _on_new(self, pods: PodClass, aim: Aim, part: Part) -> int:
        if self.may_open <= 0:
            return 0
        count = super()._on_new(pods, aim, part)
        self.may_open -= bool(count)
        return count
