"""What is wanted: equal pods, and the zone that they must be in where pods have to share zones evenly."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from shared.model.labels import HOSTNAME, ZONE
from shared.model.requirements import ANYTHING, Requirement, Requirements
from shared.model.resources import Vector
from shared.model.taints import first_untolerated
from shared.scheduling.demand import PodClass
from shared.scheduling.pack import Packing
from shared.scheduling.rules import Rule
from shared.scheduling.simplex import Numbers
from shared.scheduling.templates import Narrowed, Template

_SLIVER: Final = 1e-6
UNBOUNDED: Final = 1 << 30
ALONE: Final = -1
"""The group of an item that no node has too many of."""
Host: TypeAlias = tuple[int, int]
"""How many pods of a group may be on one node, and the group's number."""
Where: TypeAlias = tuple[tuple[int, Narrowed], ...]
"""The templates, by number, that may make a node for a pod, and what is left of each."""


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

    @property
    def size(self) -> float:
        """How large one pod is: usual amounts of cpu and memory; never nothing, also where it asks for neither."""
        return max(self.scaled[0] + self.scaled[1], _SLIVER)


def wanted(
    packing: Packing, classes: Iterable[PodClass], closed: frozenset[int] = frozenset(), *, everywhere: bool = False
) -> list[Item]:
    """Answer what is wanted by those of *classes* of which enough is known, not scaled yet.

    *closed*: numbers of templates that make no nodes any more. *everywhere*: where zones are shared, at least one pod
    in each, whoever is there already.
    """
    demand = _Demand(packing, closed, int(everywhere))
    classes = (at_stage(one, possible(packing, one)) for one in classes)
    return [item for number, one in enumerate(classes) if one.pods for item in demand.items(number, one)]


def possible(packing: Packing, pods: PodClass) -> int:
    """Answer the first stage at which some template makes a node for such pods; 0 if none does at any."""
    return next((stage for stage in range(len(pods.stages)) if where(packing, at_stage(pods, stage))), 0)


def at_stage(pods: PodClass, stage: int) -> PodClass:
    """Answer *pods* without what was tried before *stage*."""
    if not stage:
        return pods
    aims, stages, bound = pods.aims[stage:], pods.stages[stage:], pods.bound[stage:]
    return replace(pods, aims=aims, stages=stages, bound=bound)


def where(packing: Packing, pods: PodClass, closed: frozenset[int] = frozenset()) -> Where:
    """Answer the heaviest of the templates, without those *closed*, that can make a node for such a pod."""
    if pods.stages[0].is_contradictory:
        return ()
    key = (pods.aims[0].shape, closed)
    if key not in packing.wheres:
        packing.wheres[key] = _where(packing, pods, closed)
    return packing.wheres[key]


def _where(packing: Packing, pods: PodClass, closed: frozenset[int]) -> Where:
    stage = pods.stages[0]
    found: list[tuple[int, Narrowed]] = []
    weight = None
    for number, template in enumerate(packing.templates):
        if weight is not None and template.pool.weight != weight:
            break
        if number in closed or first_untolerated(template.pool.taints, stage.tolerations) is not None:
            continue
        state = template.narrow(template.start, stage.requirements)
        state = None if state is None or not pods.alternatives else template.narrow(state, pods.alternatives[0])
        if state is not None and _roomy(template, state, pods.need):
            found.append((number, state))
            weight = template.pool.weight
    return tuple(found)


class _Demand:
    """Makes items of classes, one after the other: what was shared out to zones counts for those that follow."""

    def __init__(self, packing: Packing, closed: frozenset[int], least: int) -> None:
        self._packing, self._closed, self._least = packing, closed, least
        groups = enumerate(packing.topology.groups)
        self._shared_out = {
            number: dict(group.counts)
            for number, group in groups
            if group.rule.kind == "spread" and group.rule.key == ZONE
        }

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
        yield from self._shared(number, pods, host, where, zones[0][0])

    def _shared(self, number: int, pods: PodClass, host: Host, where: Where, zonal: int) -> Iterator[Item]:
        counts = self._shared_out[zonal]
        by_zone = {zone: self._in_zone(where, zone) for zone in sorted(counts)}
        open_ = {zone: some for zone, some in by_zone.items() if some}
        if not open_:
            return
        if zonal not in pods.selecting:
            yield self._item(number, pods, "", len(pods.pods), host, where)
            return
        share = dict.fromkeys(open_, 0)
        for _ in pods.pods:
            least = min(share, key=lambda zone: (counts[zone], zone))
            share[least] += 1
            counts[least] += 1
        for other in self._counting(pods, zonal):
            for zone, count in share.items():
                other[zone] = other.get(zone, 0) + count
        for zone, count in share.items():
            if count := max(count, self._least):
                yield self._item(number, pods, zone, count, host, open_[zone])

    def _counting(self, pods: PodClass, zonal: int) -> Iterator[dict[str, int]]:
        """Answer what other groups have counted, of those in which such pods are sure to count."""
        for number in pods.counted:
            rule = self._packing.topology.groups[number].rule
            is_sure = rule.counts_elsewhere or ANYTHING in rule.terms or number in pods.bound[0]
            if number != zonal and number in self._shared_out and is_sure:
                yield self._shared_out[number]

    def _item(self, number: int, pods: PodClass, zone: str, count: int, host: Host, where: Where) -> Item:
        most, group = host
        return Item(number=number, pods=pods, zone=zone, count=count, most=most, group=group, where=where, scaled=())

    def _where(self, pods: PodClass) -> Where:
        return where(self._packing, pods, self._closed)

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
