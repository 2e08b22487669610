"""Pods that are alike in shape, thrown together: few enough that a linear program over them is small."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import msgspec

from shared.scheduling.market import Market
from shared.scheduling.simplex import Numbers
from shared.scheduling.stock import Bits, bits
from shared.scheduling.wanted import ALONE, Item

SHAPES: Final = tuple(2.0 ** (power / 2) for power in range(-9, 10))
"""Of memory to cpu: lumps lie between two of these."""
MOST: Final = 48
"""Where there are more lumps those that are small join others that may go to the same places."""
FAR: Final = 3
"""Another magnitude is as far away as so many shapes."""
EXACT: Final = 80
"""Up to so many items each group of pods that few nodes hold many of is reckoned with for itself."""
OWN: Final = ALONE - 1
_SLIVER: Final = 1e-6
Key: TypeAlias = tuple[tuple[tuple[tuple[int, int], ...], tuple[bool, ...]], int, int, int]
"""Where the items may go and what they need at all, their shape, magnitude and group."""


class Lump(msgspec.Struct, kw_only=True, eq=False):
    """Items alike; *need* is per amount, and so are *pods*, of which a node holds *most* of the *group*.

    Where there are many items, those that have a group to themselves are thrown together: the lump is their group.
    """

    row: int
    """Of the linear program: what lumps of one row need is reckoned with together ..."""
    slot: int
    """... and so are, in another row, the pods of a group that has lumps in several rows; -1: there is none."""
    items: list[int]
    bits: Bits
    need: Numbers
    pods: float
    most: int
    group: int

    def rows(self) -> tuple[tuple[int, float], ...]:
        """Answer the rows, and what an amount of it counts for there."""
        return ((self.row, 1.0),) if self.slot < 0 else ((self.row, 1.0), (self.slot, self.pods))


def shape_of(item: Item) -> int:
    """Answer which of the shapes, from little memory to much, it has."""
    return bisect_left(SHAPES, item.scaled[1] / max(item.scaled[0], _SLIVER))


def lumps(market: Market) -> list[Lump]:
    """Part the items that may go somewhere at all."""
    items, owners = market.items, _owners(market.items)
    is_rough = len(items) > EXACT
    groups: dict[Key, list[int]] = {}
    for index, item in enumerate(items):
        where = (tuple((number, id(state)) for number, state in item.where), tuple(map(bool, item.scaled)))
        group = item.group
        if is_rough and group != ALONE:
            group = OWN if len(owners[group]) == 1 else ALONE
        groups.setdefault((where, shape_of(item), _magnitude(item), group), []).append(index)
    found: list[Lump] = []
    row = 0
    for (*_, group), some in _merged(groups, items).items():
        for part in _together(some, market):
            for own, mine in _by_group(part, items).items() if group == ALONE else ((group, part),):
                number = OWN - row if own == OWN else own
                found.append(_lump([items[index] for index in mine], mine, number, row))
            row += 1
    return _with_slots(found, row)


def _by_group(some: Iterable[int], items: Sequence[Item]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for index in some:
        found.setdefault(items[index].group, []).append(index)
    return found


def _with_slots(found: list[Lump], row: int) -> list[Lump]:
    """Let groups have a row, from *row* on, if their lumps share rows with others."""
    shared = Counter(lump.row for lump in found)
    groups = sorted({lump.group for lump in found if lump.group != ALONE and shared[lump.row] > 1})
    slots = {group: row + place for place, group in enumerate(groups)}
    for lump in found:
        lump.slot = slots.get(lump.group, -1)
    return found


def _together(some: list[int], market: Market) -> list[list[int]]:
    """Answer *some* as one if there is a row for all of them, else in parts of which that is true."""
    all_of = bits(some)
    if any(not all_of & ~open_ for open_ in market.open_to):
        return [some]
    if len(some) == 1:
        return []
    half = len(some) // 2
    return [*_together(some[:half], market), *_together(some[half:], market)]


def _owners(items: Iterable[Item]) -> dict[int, set[int]]:
    """Answer the classes that are in each group."""
    found: dict[int, set[int]] = {}
    for item in items:
        found.setdefault(item.group, set()).add(item.number)
    return found


def _magnitude(item: Item) -> int:
    """Answer how many times two cores and their memory have to be quadrupled to be as large."""
    return (int(item.size) // 4).bit_length() // 2


def _merged(groups: dict[Key, list[int]], items: Sequence[Item]) -> dict[Key, list[int]]:
    """Let the smallest join the nearest of those that may go to the same places, until they are few."""
    size = {key: sum(items[index].count * items[index].size for index in some) for key, some in groups.items()}
    waiting = sorted((key for key in groups if key[-1] == ALONE), key=lambda key: (-size[key], groups[key][0]))
    while len(groups) > MOST and waiting:
        key = waiting.pop()
        near = [other for other in waiting if other[0] == key[0]]
        if near:
            into = min(near, key=lambda other: (_distance(key, other), groups[other][0]))
            groups[into] = sorted(groups[into] + groups.pop(key))
            size[into] += size[key]
            waiting.sort(key=lambda key: (-size[key], groups[key][0]))
    return groups


def _distance(one: Key, other: Key) -> int:
    return abs(one[1] - other[1]) + FAR * abs(one[2] - other[2])


def _lump(items: Sequence[Item], indices: list[int], group: int, row: int) -> Lump:
    amount = sum(item.count * item.size for item in items)
    axes = range(len(items[0].scaled))
    need = tuple(sum(item.count * item.scaled[axis] for item in items) / amount for axis in axes)
    pods = sum(item.count for item in items) / amount
    most = sum({item.group: item.most for item in items}.values()) if group <= OWN else items[0].most
    return Lump(row=row, slot=-1, items=indices, bits=bits(indices), need=need, pods=pods, most=most, group=group)
