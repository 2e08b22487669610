"""The nodes of a run as bits of integers: first those that stand, in their order, then those that were opened.

So "which nodes may take such a pod" is a handful of ANDs. Nodes that stand are tried in their order; of those that were
opened the one with the fewest pods, then the oldest: ranks are sets of nodes, too. Nodes of which the same is known,
hosts aside, are at one site: what a pod asks for is compared with sites, not with nodes. A node that had no room for a
shape of pod never will: nodes only fill up.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from shared.model.labels import HOSTNAME
from shared.model.requirements import Requirements
from shared.model.taints import first_untolerated
from shared.scheduling.rules import Place
from shared.scheduling.standing import Standing
from shared.scheduling.templates import Narrowed, Template, Wish

LEVELS: Final = 128
"""Enough for every amount of memory below 16 EiB."""
Nodes: TypeAlias = int
"""A set of nodes."""


class Site(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What some nodes have in common: all but the host."""

    place: Place
    single: dict[str, str]
    """Labels of which the value is known."""
    example: Standing | None = None
    template: Template | None = None
    state: Narrowed | None = None

    def grants(self, wish: Wish) -> bool:
        """Whether nodes here are, or can be, what *wish* asks, hosts aside."""
        if self.template is not None and self.state is not None:
            return bool(self.template.narrow_to(self.state, wish))
        example = self.example
        if example is None or first_untolerated(self.place.taints, wish.tolerations) is not None:
            return False
        return example.satisfies(wish.requirements.without((HOSTNAME,))) and any(
            example.satisfies(one.without((HOSTNAME,))) for one in wish.alternatives
        )


class NodeSet(msgspec.Struct, kw_only=True, eq=False):
    """Which nodes there are, and what is known of them together."""

    hosts: list[str] = msgspec.field(default_factory=list)
    at: list[int] = msgspec.field(default_factory=list)
    """By node, its site."""
    sites: list[Site] = msgspec.field(default_factory=list)
    members: list[Nodes] = msgspec.field(default_factory=list)
    """By site."""
    numbers: dict[int, int] = msgspec.field(default_factory=dict)
    """By the id of a state, its site."""
    granting: dict[int, tuple[int, list[int]]] = msgspec.field(default_factory=dict)
    """By wish: how many sites were looked at, and those that grant it."""
    refused: dict[int, Nodes] = msgspec.field(default_factory=dict)
    """By shape of pod: nodes that will never hold it."""
    scarce: tuple[list[Nodes], ...] = msgspec.field(default_factory=lambda: ([0] * LEVELS, [0] * LEVELS))
    """Of cpu and of memory, by level: nodes that were seen to have less left; up to the highest asked for."""
    highest: list[int] = msgspec.field(default_factory=lambda: [0, 0])
    levels: dict[tuple[int, int], int] = msgspec.field(default_factory=dict)
    """By axis and node: the least level that it has not."""
    standing: Nodes = 0
    ranks: dict[int, Nodes] = msgspec.field(default_factory=dict)
    """By number of pods: the opened nodes that have so many."""
    order: list[int] = msgspec.field(default_factory=list)
    """The ranks that there are, rising."""

    def fork(self) -> "NodeSet":
        """Answer the same nodes, to be filled from here."""
        return NodeSet(
            hosts=list(self.hosts),
            at=list(self.at),
            sites=list(self.sites),
            members=list(self.members),
            numbers=dict(self.numbers),
            granting={wish: (count, list(some)) for wish, (count, some) in self.granting.items()},
            refused=dict(self.refused),
            scarce=tuple(list(some) for some in self.scarce),
            highest=list(self.highest),
            levels=dict(self.levels),
            standing=self.standing,
            ranks=dict(self.ranks),
            order=list(self.order),
        )

    def granted(self, wish: Wish) -> list[int]:
        """Answer the sites that grant *wish*."""
        count, found = self.granting.get(wish.number, (0, []))
        if count < len(self.sites):
            found += [number for number in range(count, len(self.sites)) if self.sites[number].grants(wish)]
            self.granting[wish.number] = (len(self.sites), found)
        return found

    def stand(self, nodes: Iterable[Standing]) -> None:
        """Take in nodes that stand."""
        known: dict[object, int] = {}
        for node in nodes:
            key = _likeness(node)
            if key not in known:
                known[key] = self._found(Site(place=node.place, single=node.place.single(), example=node))
            self._join(node.host, known[key])
        self.standing = (1 << len(self.hosts)) - 1

    def open(self, host: str, template: Template, state: Narrowed) -> int:
        """Take in a node that was opened, still empty; answer its place."""
        number = self._join(host, self._site(template, state))
        self._enter(1 << number, 0)
        return number

    def rise(self, bit: Nodes, before: int, after: int) -> None:
        """Let the opened node *bit* have *after* pods, where it had *before*."""
        left = self.ranks[before] ^ bit
        self.ranks[before] = left
        if not left:
            del self.ranks[before]
            del self.order[bisect_left(self.order, before)]
        self._enter(bit, after)

    def move(self, number: int, template: Template, state: Narrowed) -> None:
        """Let node *number* be in *state*."""
        bit = 1 << number
        self.members[self.at[number]] ^= bit
        self.at[number] = self._site(template, state)
        self.members[self.at[number]] |= bit

    def refuse(self, shape: int, number: int, free: Iterable[int]) -> None:
        """Remember that node *number* has no room for *shape*; *free*: no more than so much cpu and memory are left."""
        bit = 1 << number
        self.refused[shape] = self.refused.get(shape, 0) | bit
        for axis, amount in enumerate(free):
            known = self.levels.get((axis, number), LEVELS)
            level = level_of(amount) + 1
            if level < known:
                levels = self.scarce[axis]
                for one in range(level, min(known, self.highest[axis] + 1)):
                    levels[one] |= bit
                self.levels[axis, number] = level

    def too_full(self, shape: int, need: Sequence[int]) -> Nodes:
        """Answer nodes that have no room for *shape*, or were seen to have less cpu or memory left than *need*."""
        cpu, memory = level_of(need[0]), level_of(need[1])
        if cpu > self.highest[0]:
            self._raise(0, cpu)
        if memory > self.highest[1]:
            self._raise(1, memory)
        return self.refused.get(shape, 0) | self.scarce[0][cpu] | self.scarce[1][memory]

    def _raise(self, axis: int, level: int) -> None:
        """Let it be known, up to *level*, which nodes have less."""
        levels, before = self.scarce[axis], self.highest[axis]
        for one in range(before + 1, level + 1):
            levels[one] = levels[before]
        for (of, number), least in self.levels.items():
            if of == axis:
                for one in range(max(least, before + 1), level + 1):
                    levels[one] |= 1 << number
        self.highest[axis] = level

    def _enter(self, bit: Nodes, rank: int) -> None:
        if rank in self.ranks:
            self.ranks[rank] |= bit
        else:
            self.ranks[rank] = bit
            insort(self.order, rank)

    def _site(self, template: Template, state: Narrowed) -> int:
        if id(state) not in self.numbers:
            place = template.place(state)
            self.numbers[id(state)] = self._found(
                Site(place=place, single=template.single(state), template=template, state=state)
            )
        return self.numbers[id(state)]

    def _found(self, site: Site) -> int:
        self.sites.append(site)
        self.members.append(0)
        return len(self.sites) - 1

    def _join(self, host: str, site: int) -> int:
        number = len(self.hosts)
        self.hosts.append(host)
        self.at.append(site)
        self.members[site] |= 1 << number
        return number


def level_of(amount: int) -> int:
    """Answer the number of the greatest power of the square root of two that *amount* reaches; 0 for 1 and less."""
    return min((amount * amount).bit_length() - 1, LEVELS - 1) if amount > 0 else 0


def _likeness(node: Standing) -> object:
    labels = Requirements(items=tuple(item for key, item in sorted(node.place.by_key.items()) if key != HOSTNAME))
    return (labels, node.place.taints, node.place.is_fixed, node.place.defined, id(node.shelf), node.mask)
