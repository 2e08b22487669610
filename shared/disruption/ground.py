"""The cluster as a standing state: pods of some nodes are taken out, placed elsewhere on trial, and put back.

It is built once in a sweep. A trial costs what its own pods cost, not what the cluster does: what it changes is noted
in a frame, and undone from there. Frames nest, so that a set of nodes can grow one by one.

Nodes are in the order in which they are filled: those that stay first. Between two commits they only fill up, so a node
that had no room for a pod, and was not touched since, has none.
"""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Final

import msgspec

from shared.model.pods import Pod
from shared.model.resources import Vector
from shared.scheduling.advice import advise
from shared.scheduling.aims import Aim
from shared.scheduling.demand import PodClass
from shared.scheduling.guided import Guide
from shared.scheduling.market import market
from shared.scheduling.nodeset import Nodes
from shared.scheduling.opened import Offer, Opened
from shared.scheduling.outset import finish
from shared.scheduling.pack import Packing, Part
from shared.scheduling.shelf import Mask, union
from shared.scheduling.templates import Narrowed, Template
from shared.scheduling.wanted import at_stage, possible

EFFORT: Final = 1000
"""The usual effort for advice, in a large cluster."""


class Stand(msgspec.Struct, frozen=True, kw_only=True):
    """What a node that stands was before it was touched."""

    free: Vector
    ports: int
    attached: dict[str, set[str]]
    pods: int


class Frame(msgspec.Struct, kw_only=True, eq=False):
    """What has to be known to undo a trial."""

    sealed: Nodes
    may_open: int
    limits: dict[str, dict[str, int]]
    refused: dict[int, Nodes]
    ranks: dict[int, Nodes]
    order: list[int]
    at: list[int]
    """Of opened nodes: their sites."""
    opened: int
    groups: dict[int, tuple[dict[str, int], list[int]]] = msgspec.field(default_factory=dict)
    stands: dict[int, Stand] = msgspec.field(default_factory=dict)
    opens: dict[int, Opened] = msgspec.field(default_factory=dict)
    gone: dict[int, dict[str, Pod]] = msgspec.field(default_factory=dict)
    """Nodes that were cleared, with the movable pods that were there."""
    moves: list[tuple[Pod, int]] = msgspec.field(default_factory=list)
    """In the order in which they were placed."""


class Reach(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The nodes that stand and grant a wish."""

    sites: int
    """How many of the granting sites are those of nodes that stand."""
    all: Nodes
    by_key: dict[str, tuple[dict[str, Nodes], tuple[int, ...]]] = msgspec.field(default_factory=dict)
    """By label: nodes by its value; and the sites where that is not known."""


class Ground(Packing, kw_only=True, eq=False):
    """A packing of what runs, which can be tried out and put back."""

    numbers: dict[str, int] = msgspec.field(default_factory=dict)
    """Of nodes that stand, by name."""
    kinds: dict[str, tuple[int, PodClass]] = msgspec.field(default_factory=dict)
    """By movable pod: place in the queue, and class."""
    everybody: Mapping[str, Pod] = msgspec.field(default_factory=dict)
    """The movable pods, by name."""
    residents: dict[int, dict[str, Pod]] = msgspec.field(default_factory=dict)
    """By node: the movable pods that are there now, by name."""
    fixtures: dict[int, list[tuple[int, ...]]] = msgspec.field(default_factory=dict)
    """By node: the groups in which pods count that go with it."""
    reaches: dict[int, Reach] = msgspec.field(default_factory=dict)
    """By wish: the nodes that stand and grant it."""
    effort: int = EFFORT
    """So many steps are spent on advice for the pods of one trial."""
    may_open: int = 0
    """So many more new nodes a trial may have."""
    frames: list[Frame] = msgspec.field(default_factory=list)

    def begin(self, *, may_open: int = 0) -> Frame:
        """Begin a trial."""
        nodes = self.nodes
        self.trail.clear()
        frame = Frame(
            sealed=self.sealed,
            may_open=self.may_open,
            limits={name: dict(left) for name, left in self.limits.items()},
            refused=dict(nodes.refused),
            ranks=dict(nodes.ranks),
            order=list(nodes.order),
            at=nodes.at[len(self.standing) :],
            opened=len(self.opened),
        )
        self.frames.append(frame)
        self.may_open = may_open
        return frame

    def clear(self, number: int) -> list[Pod]:
        """Take node *number* away; answer the movable pods that are homeless now."""
        frame = self.frames[-1]
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

    def house_advised(self, pods: Iterable[Pod], most: float = inf) -> list[PodClass]:
        """Place *pods* where there is room, the others on new nodes as the market advises; answer those without.

        Where the advice costs more than *most* USD per hour, none of these is placed.
        """
        parts = self.parts(pods)
        for one in parts:
            self._save(one.counted)
            stage = possible(self, one)
            one.pods = self.place_on_standing(at_stage(one, stage))
        some = [one for one in parts if one.pods]
        if some:
            known = market(self, some)
            advice = advise(known, self.effort, most)[0]
            if advice.price > most:
                return some
            guide = Guide(self)
            guide.follow(some, known, advice)
            some = finish(self, some).left
            guide.widen()
        return some

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

    def undo(self) -> None:
        """Let everything be as it was before the last frame."""
        frame = self.frames.pop()
        touched = self._close(frame)
        self._restore_nodes(frame, touched)
        for number, (counts, levels) in frame.groups.items():
            group = self.topology.groups[number]
            group.counts, group.levels = counts, levels
            group.version += 1
        self.residents.update(frame.gone)
        for pod, number in frame.moves:
            if number in self.residents:
                self.residents[number].pop(pod.name, None)
        self.sealed, self.may_open, self.limits = frame.sealed, frame.may_open, frame.limits

    def keep(self) -> None:
        """Let the last trial be part of the one around it, or of what is so."""
        frame = self.frames.pop()
        self.may_open = frame.may_open
        if self.frames:
            outer = self.frames[-1]
            outer.groups = frame.groups | outer.groups
            outer.stands = frame.stands | outer.stands
            opens = {number: one for number, one in frame.opens.items() if number < outer.opened}
            outer.opens = opens | outer.opens
            outer.gone = frame.gone | outer.gone
            outer.moves.extend(frame.moves)

    def seal_opened(self) -> None:
        """Let nodes that were opened so far take no more pods in any trial to come."""
        self.sealed |= ((1 << len(self.opened)) - 1) << len(self.standing)

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

    def _save(self, groups: Iterable[int]) -> None:
        saved = self.frames[-1].groups if self.frames else None
        for number in groups if saved is not None else ():
            if saved is not None and number not in saved:
                group = self.topology.groups[number]
                saved[number] = (dict(group.counts), list(group.levels))

    def _settle(self, number: int, pods: PodClass, some: list[Pod]) -> None:
        if self.frames:
            self._note(number)
        super()._settle(number, pods, some)
        self._moved(number, some)

    def _take(self, number: int, node: Opened, pods: PodClass, found: Offer, some: list[Pod]) -> None:
        if self.frames:
            frame, index = self.frames[-1], number - len(self.standing)
            if index < frame.opened and index not in frame.opens:
                frame.opens[index] = msgspec.structs.replace(
                    node, ports=list(node.ports), pods=list(node.pods), waiting=list(node.waiting)
                )
        super()._take(number, node, pods, found, some)
        self._moved(number, some[: found.count])

    def _able(self, pods: PodClass, aim: Aim) -> Nodes:
        return super()._able(pods, aim) & ~self.sealed

    def _on_new(self, pods: PodClass, aim: Aim, part: Part) -> int:
        if self.may_open <= 0:
            return 0
        count = super()._on_new(pods, aim, part)
        self.may_open -= bool(count)
        return count

    def _moved(self, number: int, some: list[Pod]) -> None:
        home = self.residents.setdefault(number, {})
        for pod in some:
            home[pod.name] = pod
        if self.frames:
            self.frames[-1].moves.extend((pod, number) for pod in some)

    def _note(self, number: int) -> None:
        stands = self.frames[-1].stands
        if number not in stands:
            node = self.standing[number]
            stands[number] = Stand(
                free=node.free,
                ports=len(node.ports),
                attached={driver: set(keys) for driver, keys in node.attached.items()} if node.attached else {},
                pods=len(node.pods),
            )

    def _close(self, frame: Frame) -> Nodes:
        """Close what was opened in *frame*; answer the opened nodes that it touched, as bits."""
        nodes, base, touched = self.nodes, len(self.standing), 0
        for index in range(len(self.opened)):
            number = base + index
            bit = 1 << number
            nodes.members[nodes.at[number]] &= ~bit
            if index < frame.opened:
                nodes.at[number] = frame.at[index]
                nodes.members[frame.at[index]] |= bit
            if index >= frame.opened or index in frame.opens:
                touched |= bit
        for index, one in frame.opens.items():
            self.opened[index] = one
        for index in range(frame.opened, len(self.opened)):
            self.residents.pop(base + index, None)
        del nodes.hosts[base + frame.opened :], nodes.at[base + frame.opened :], self.opened[frame.opened :]
        nodes.ranks, nodes.order = frame.ranks, frame.order
        return touched

    def _restore_nodes(self, frame: Frame, touched: Nodes) -> None:
        nodes = self.nodes
        for number, was in frame.stands.items():
            node = self.standing[number]
            node.free, node.attached = was.free, was.attached
            del node.ports[was.ports :], node.pods[was.pods :]
            touched |= 1 << number
        for shape, bits in nodes.refused.items():
            if bits & touched:
                nodes.refused[shape] = (bits & ~touched) | (frame.refused.get(shape, 0) & touched)
        self._forget(touched)

    def _forget(self, touched: Nodes) -> None:
        """Forget how little was left on the nodes *touched*: it will be seen again."""
        nodes = self.nodes
        for masks in nodes.scarce:
            for level, bits in enumerate(masks):
                if bits & touched:
                    masks[level] = bits & ~touched
        while touched:
            bit = touched & -touched
            touched ^= bit
            number = bit.bit_length() - 1
            nodes.levels.pop((0, number), None)
            nodes.levels.pop((1, number), None)
