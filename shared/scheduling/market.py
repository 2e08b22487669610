"""What could be bought for which pods: demand by equal pods and zone, and the offerings that are worth a look.

Advice only. It knows room, requirements, zones that pods must share evenly, and how many equal pods may be on one node;
whatever else binds a pod is left to the packing.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import msgspec

from shared.model.labels import HOSTNAME, RESERVED, ZONE
from shared.model.requirements import ANYTHING, Requirement, Requirements
from shared.model.resources import Vector
from shared.model.taints import first_untolerated
from shared.scheduling.demand import PodClass
from shared.scheduling.pack import Packing
from shared.scheduling.rules import Rule
from shared.scheduling.shelf import Kind, Mask, kind_of
from shared.scheduling.simplex import Numbers
from shared.scheduling.templates import Narrowed, Template

DIRECTIONS: Final = tuple(2.0**power for power in (-4, -2, -1, -0.5, 0, 0.5, 1, 2, 4))
"""Worth of memory against cpu, each per its usual amount."""
SIZES: Final = (1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000)
"""Milli cpu up to which types are of one size."""
BEST: Final = 2
"""So many types of each size and direction are looked at."""
CORE: Final = 1000
PER_CORE: Final = 4 << 30
MOST_SCANS: Final = 40
"""So many different sets of types are looked through."""
UNBOUNDED: Final = 1 << 30
ALONE: Final = -1
"""The group of an item that no node has too many of."""
Host: TypeAlias = tuple[int, int]
"""How many pods of a group may be on one node, and the group's number."""
Where: TypeAlias = tuple[tuple[int, Narrowed], ...]
"""The templates, by number, that may make a node for a pod, and what is left of each."""


class Row(msgspec.Struct, kw_only=True, eq=False):
    """A type in one zone, at its cheapest there."""

    template: int
    bit: Mask
    name: str
    kind: Kind
    price: float
    room: Vector
    """Of pods: daemons are taken off."""
    scaled: Numbers

    @property
    def zone(self) -> str:
        """Where it is."""
        return self.kind[3]


class Item(msgspec.Struct, kw_only=True, eq=False):
    """Equal pods, of which *count* are wanted: in one zone, or anywhere."""

    number: int
    """Of the class."""
    pods: PodClass
    zone: str
    count: int
    most: int
    """On one node: of all items of its *group*."""
    group: int
    where: Where
    scaled: Numbers


class Market(msgspec.Struct, kw_only=True, eq=False):
    """Demand and supply; amounts are scaled so that all the pods together need as much of each resource."""

    items: list[Item]
    rows: list[Row]
    open_to: list[tuple[int, ...]]
    """By row: the items that may be there."""


def market(packing: Packing, classes: Iterable[PodClass]) -> Market:
    """Answer the market for those of *classes* of which enough is known."""
    demand = _Demand(packing)
    found = [item for number, one in enumerate(classes) if one.pods for item in demand.items(number, one)]
    scale = _scale(found)
    for item in found:
        item.scaled = _scaled(item.pods.need, scale)
    stalls = _Stalls(packing.templates, scale, found)
    rows = stalls.rows
    return Market(items=found, rows=rows, open_to=[stalls.open_to(row) for row in rows])


class _Demand:
    """Makes items of classes, one after the other: what was shared out to zones counts for those that follow."""

    def __init__(self, packing: Packing) -> None:
        self._packing = packing
        self._shared_out: dict[int, dict[str, int]] = {}

    def items(self, number: int, pods: PodClass) -> Iterator[Item]:
        rules = [(number, self._packing.topology.groups[number]) for number in pods.bound[0]]
        hosts = [(number, group.rule) for number, group in rules if group.rule.key == HOSTNAME]
        zones = [(number, group) for number, group in rules if group.rule.key == ZONE]
        simple = len(hosts) + len(zones) == len(rules) and len(pods.alternatives) == 1
        if not simple or len(zones) > 1 or any(group.rule.kind != "spread" for _, group in zones):
            return
        if any(rule.kind == "affinity" for _, rule in hosts):
            return
        host = min((_most(group, rule, pods) for group, rule in hosts), default=(UNBOUNDED, ALONE))
        where = self._where(pods)
        if not where:
            return
        if not zones:
            yield self._item(number, pods, "", len(pods.pods), host, where)
            return
        zonal, group = zones[0]
        counts = self._shared_out.setdefault(zonal, dict(group.counts))
        yield from self._shared(number, pods, host, where, counts, counts_itself=zonal in pods.selecting)

    def _shared(
        self, number: int, pods: PodClass, host: Host, where: Where, counts: dict[str, int], *, counts_itself: bool
    ) -> Iterator[Item]:
        by_zone = {zone: self._in_zone(where, zone) for zone in sorted(counts)}
        open_ = {zone: some for zone, some in by_zone.items() if some}
        if not open_:
            return
        if not counts_itself:
            yield self._item(number, pods, "", len(pods.pods), host, where)
            return
        share = dict.fromkeys(open_, 0)
        for _ in pods.pods:
            least = min(share, key=lambda zone: (counts[zone], zone))
            share[least] += 1
            counts[least] += 1
        for zone, count in share.items():
            if count:
                yield self._item(number, pods, zone, count, host, open_[zone])

    def _item(self, number: int, pods: PodClass, zone: str, count: int, host: Host, where: Where) -> Item:
        most, group = host
        return Item(number=number, pods=pods, zone=zone, count=count, most=most, group=group, where=where, scaled=())

    def _where(self, pods: PodClass) -> Where:
        """Answer the heaviest of the templates that can make a node for such a pod."""
        stage = pods.stages[0]
        found: list[tuple[int, Narrowed]] = []
        weight = None
        for number, template in enumerate(self._packing.templates):
            if weight is not None and template.pool.weight != weight:
                break
            if stage.is_contradictory or first_untolerated(template.pool.taints, stage.tolerations) is not None:
                continue
            state = template.narrow(template.start, stage.requirements)
            state = None if state is None else template.narrow(state, pods.alternatives[0])
            if state is not None and _roomy(template, state, pods.need):
                found.append((number, state))
                weight = template.pool.weight
        return tuple(found)

    def _in_zone(self, where: Where, zone: str) -> Where:
        some = ((number, self._packing.templates[number].narrow(state, in_zone(zone))) for number, state in where)
        return tuple((number, state) for number, state in some if state is not None)


def _most(group: int, rule: Rule, pods: PodClass) -> Host:
    """Answer how many pods like these *rule* lets a new node have."""
    if rule.kind == "spread":
        return (rule.max_skew, group) if group in pods.selecting else (UNBOUNDED, ALONE)
    return (1, group) if group in pods.counted or group in pods.selecting else (UNBOUNDED, ALONE)


def in_zone(zone: str) -> Requirements:
    """Answer what ties a node to *zone*."""
    return Requirements(items=(Requirement(key=ZONE, values=frozenset((zone,))),)) if zone else ANYTHING


def _roomy(template: Template, state: Narrowed, need: Vector) -> bool:
    for group in template.overheads:
        part = group.mask & state.mask
        wanted = tuple(one + other for one, other in zip(need, group.needs, strict=True))
        if part and template.shelf.fitting(part, wanted):
            return True
    return False


def _scale(items: Iterable[Item]) -> Numbers:
    """Answer, by axis, what an amount is to be divided by; 0 where nothing is asked for."""
    totals: list[int] = []
    for item in items:
        amounts = [item.count * amount for amount in item.pods.need]
        totals = [one + other for one, other in zip(totals, amounts, strict=True)] if totals else amounts
    cores = (totals[0] or 1000) / 1000 if totals else 1.0
    usual = (CORE, PER_CORE)
    return tuple((one or (usual[axis] if axis < len(usual) else 0)) / cores for axis, one in enumerate(totals))


def _scaled(amounts: Vector, scale: Numbers) -> Numbers:
    return tuple(amount / unit for amount, unit in zip(amounts, scale, strict=True) if unit)


class _Stalls:
    """Looks through the types that are open to pods."""

    def __init__(self, templates: tuple[Template, ...], scale: Numbers, items: list[Item]) -> None:
        self._templates, self._scale = templates, scale
        self._states: dict[int, Narrowed] = {}
        self._items: dict[Where, list[int]] = {}
        self._kinds: dict[int, frozenset[Kind]] = {}
        self._rooms: dict[tuple[int, Mask], tuple[Vector, Numbers] | None] = {}
        by_states: dict[tuple[tuple[int, int], ...], list[int]] = {}
        self._wheres: dict[tuple[tuple[int, int], ...], Where] = {}
        for index, item in enumerate(items):
            key = tuple((number, id(state)) for number, state in item.where)
            by_states.setdefault(key, []).append(index)
            self._wheres[key] = item.where
        self._by_states = by_states
        self._all = items
        self.rows = list(self._rows())

    def open_to(self, row: Row) -> tuple[int, ...]:
        """Answer the items that may be on *row*, and have room there."""
        found: list[int] = []
        for key, indices in self._by_states.items():
            if any(number == row.template and self._is_open(row, state) for number, state in self._wheres[key]):
                found.extend(
                    index
                    for index in indices
                    if all(need <= room for need, room in zip(self._all[index].pods.need, row.room, strict=True))
                )
        return tuple(sorted(found))

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
            for direction in DIRECTIONS:
                priced = sorted(
                    (row.price / (row.scaled[0] + direction * row.scaled[1]), row.name, row) for row in some
                )
                chosen |= {row.name: row for _, _, row in priced[:BEST]}
            yield from chosen.values()

    def _sold(self, number: int, state: Narrowed) -> Iterator[Row]:
        for priced in self._templates[number].shelf.cheapest_first(state.requirements, state.mask):
            key = (number, priced.bit)
            if key not in self._rooms:
                self._rooms[key] = self._room(number, priced.bit)
            found = self._rooms[key]
            if found is not None and priced.offering.capacity_type != RESERVED:
                yield Row(
                    template=number,
                    bit=priced.bit,
                    name=priced.name,
                    kind=kind_of(priced.offering),
                    price=priced.offering.price_usd_per_hour,
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
        return (room, _scaled(room, self._scale)) if is_room else None
