"""What is on offer: the types, zone by zone, that are worth a look."""

from collections.abc import Iterable, Iterator
from math import log2
from typing import Final

import msgspec

from shared.model.labels import CAPACITY_TYPE, RESERVED
from shared.model.requirements import Requirement, requirements
from shared.model.resources import Vector
from shared.scheduling.shelf import Kind, Mask, kind_of
from shared.scheduling.simplex import Numbers
from shared.scheduling.stock import Bits, Stock, bits
from shared.scheduling.templates import Narrowed, Template
from shared.scheduling.wanted import Item, Where, in_zone

DIRECTIONS: Final = tuple(2.0**power for power in (-4, -2, -1, -0.5, 0, 0.5, 1, 2, 4))
"""Worth of memory against cpu, each per its usual amount."""
CROWDED: Final = (0.5, 1.0, 2.0, 4.0, 16.0)
"""Where pods are many and small: what a pod's slot is worth in parts of the cpu that a usual pod needs."""
SLOTS: Final = 3
"""The axis of pods: how many a node takes."""
SIZES: Final = (1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000)
"""Milli cpu up to which types are of one size."""
CORE: Final = 1000
PER_CORE: Final = 4 << 30
HANDLING: Final = 0.1
"""A node more is worth so much of a core with its usual memory."""
BOUGHT: Final = requirements((Requirement(key=CAPACITY_TYPE, complement=True, values=frozenset((RESERVED,))),))
"""What is reserved is not for sale: it is used before anything is bought."""
MOST_SCANS: Final = 40
"""So many different sets of types are looked through."""


class Row(msgspec.Struct, kw_only=True, eq=False):
    """A type in one zone, at its cheapest there."""

    template: int
    bit: Mask
    name: str
    kind: Kind
    price: float
    """With what a node costs besides the instance."""
    room: Vector
    """Of pods: daemons are taken off."""
    scaled: Numbers

    @property
    def zone(self) -> str:
        """Where it is."""
        return self.kind[3]


def scale_of(items: Iterable[Item]) -> Numbers:
    """Answer, by axis, what an amount is to be divided by; 0 where nothing is asked for."""
    totals: list[int] = []
    for item in items:
        amounts = [item.count * amount for amount in item.pods.need]
        totals = [one + other for one, other in zip(totals, amounts, strict=True)] if totals else amounts
    cores = (totals[0] or 1000) / 1000 if totals else 1.0
    usual = (CORE, PER_CORE)
    return tuple((one or (usual[axis] if axis < len(usual) else 0)) / cores for axis, one in enumerate(totals))


def scaled_by(amounts: Vector, scale: Numbers) -> Numbers:
    """Answer *amounts* on the axes that count."""
    return tuple(amount / unit for amount, unit in zip(amounts, scale, strict=True) if unit)


class Stalls:
    """Looks through the types that are open to pods."""

    def __init__(
        self, templates: tuple[Template, ...], extras: Numbers, scale: Numbers, items: list[Item], masks: list[Mask]
    ) -> None:
        """Look; by template: what a node costs besides the instance, in *extras*, and types it may be, in *masks*.

        *items* are in the order of bits.
        """
        self._templates, self._extras, self._scale, self._masks = templates, extras, scale, masks
        self._kinds: dict[int, frozenset[Kind]] = {}
        self._rooms: dict[tuple[int, Mask], tuple[Vector, Numbers] | None] = {}
        self._slot = sum(item.count * item.scaled[0] for item in items) / max(1, sum(item.count for item in items))
        self._stock = Stock([item.pods.need for item in items])
        self._wheres: dict[tuple[tuple[int, int], ...], Where] = {}
        by_states: dict[tuple[tuple[int, int], ...], list[int]] = {}
        for index, item in enumerate(items):
            key = tuple((number, id(state)) for number, state in item.where)
            by_states.setdefault(key, []).append(index)
            self._wheres[key] = item.where
        self._by_states = {key: bits(some) for key, some in by_states.items()}
        self.rows = list(self._rows())
        self._handle()

    @property
    def stock(self) -> Stock:
        """The needs of the items."""
        return self._stock

    def open_to(self, row: Row) -> Bits:
        """Answer the items that may be on *row*, and have room there."""
        found = 0
        for key, some in self._by_states.items():
            if any(number == row.template and self._is_open(row, state) for number, state in self._wheres[key]):
                found |= self._stock.fitting(row.room, some)
        return found

    def _handle(self) -> None:
        """Let each node cost a little more than it does: of two plans that cost the same, fewer nodes are better."""
        unit = min((row.price / (row.scaled[0] + row.scaled[1]) for row in self.rows), default=0.0)
        for row in self.rows:
            row.price += HANDLING * 2 * unit

    def _is_open(self, row: Row, state: Narrowed) -> bool:
        if not state.mask & row.bit:
            return False
        if id(state) not in self._kinds:
            self._kinds[id(state)] = frozenset(self._templates[row.template].shelf.kinds(state.requirements))
        return row.kind in self._kinds[id(state)]

    def _rows(self) -> Iterator[Row]:
        seen: set[tuple[int, Mask, Kind]] = set()
        scanned: set[tuple[int, tuple[Kind, ...], Mask]] = set()
        for where in self._wheres.values():
            for number, state in where:
                for row in self._scan(number, state, scanned):
                    key = (row.template, row.bit, row.kind)
                    if key not in seen:
                        seen.add(key)
                        yield row

    def _scan(self, number: int, state: Narrowed, scanned: set[tuple[int, tuple[Kind, ...], Mask]]) -> Iterator[Row]:
        template = self._templates[number]
        kinds = template.shelf.kinds(state.requirements)
        if (number, kinds, state.mask) in scanned or len(scanned) >= MOST_SCANS:
            return
        scanned.add((number, kinds, state.mask))
        for zone in sorted({kind[3] for kind in kinds}):
            here = template.narrow(state, in_zone(zone))
            if here is not None:
                yield from self._best(number, here)

    def _best(self, number: int, state: Narrowed) -> Iterator[Row]:
        """Answer the types that cost least for what they hold: of each size, whatever is worth how much."""
        groups: dict[int, list[Row]] = {}
        for row in self._sold(number, state):
            size = next((index for index, most in enumerate(SIZES) if row.room[0] <= most), len(SIZES))
            groups.setdefault(size, []).append(row)
        for _, some in sorted(groups.items()):
            chosen: dict[str, Row] = {}
            for best in self._cheapest(some):
                chosen[best.name] = best
            shapes: dict[int, list[Row]] = {}
            for row in some:
                shapes.setdefault(round(2 * log2(row.scaled[1] / row.scaled[0])), []).append(row)
            for _, alike in sorted(shapes.items()):
                best = min(alike, key=lambda row: (row.price / (row.scaled[0] + row.scaled[1]), row.name))
                chosen[best.name] = best
            yield from chosen.values()

    def _cheapest(self, some: list[Row]) -> Iterator[Row]:
        """Answer the rows that cost least, whatever memory, and a slot where slots are few, is worth against cpu."""
        slots = [part * self._slot for part in CROWDED]
        if not any(row.room[SLOTS] * self._slot < min(row.scaled[:2]) for row in some):
            slots = []
        for direction in DIRECTIONS:
            plain = {row.name: row.scaled[0] + direction * row.scaled[1] for row in some}
            for slot in (0.0, *slots):
                yield min(some, key=lambda row: (row.price / (plain[row.name] + slot * row.room[SLOTS]), row.name))

    def _sold(self, number: int, state: Narrowed) -> Iterator[Row]:
        mask = state.mask & self._masks[number]
        for priced in self._templates[number].shelf.cheapest_first(state.requirements & BOUGHT, mask):
            key = (number, priced.bit)
            if key not in self._rooms:
                self._rooms[key] = self._room(number, priced.bit)
            found = self._rooms[key]
            if found is not None:
                yield Row(
                    template=number,
                    bit=priced.bit,
                    name=priced.name,
                    kind=kind_of(priced.offering),
                    price=priced.offering.price_usd_per_hour + self._extras[number],
                    room=found[0],
                    scaled=found[1],
                )

    def _room(self, number: int, bit: Mask) -> tuple[Vector, Numbers] | None:
        template = self._templates[number]
        group = next((one for one in template.overheads if one.mask & bit), None)
        if group is None:
            return None
        have = template.shelf.rooms[bit.bit_length() - 1]
        room = tuple(one - took for one, took in zip(have, group.needs, strict=True))
        is_room = all(amount >= 0 for amount in room) and room[0] > 0 and room[1] > 0
        return (room, scaled_by(room, self._scale)) if is_room else None
