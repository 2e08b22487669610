"""In which zone pods have to be, as far as is known before any of them has a place."""

from collections import Counter
from collections.abc import Iterable

from shared.model.labels import ZONE
from shared.scheduling.demand import ANYWHERE, PodClass
from shared.scheduling.topology import Topology


def pods_by_zone(classes: Iterable[PodClass], found: Topology) -> tuple[tuple[str, int], ...]:
    """Count pods by their one zone, sorted; `flexible`: several are open, or all; `none`: what they ask contradicts.

    Headroom is no pod.
    """
    spread = {number for number, one in enumerate(found.groups) if one.rule.kind == "spread" and one.rule.key == ZONE}
    counts: Counter[str] = Counter()
    for one in (one for one in classes if not one.pods[0].is_headroom()):
        is_free = one.alternatives is ANYWHERE and spread.isdisjoint(one.bound[0])
        counts[_flexible(one) if is_free else _zone(one, found, spread)] += len(one.pods)
    return tuple(sorted(counts.items()))


def _flexible(pods: PodClass) -> str:
    strict = pods.stages[0].strict
    return _one_of(None if strict[ZONE].complement else strict[ZONE].values) if ZONE in strict else "flexible"


def _zone(pods: PodClass, found: Topology, spread: set[int]) -> str:
    mine = pods.stages[0].strict[ZONE]
    volumes = [one[ZONE] for one in pods.alternatives]
    open_ = [None if mine.complement else mine.values]
    if not any(item.complement for item in volumes):
        open_.append(frozenset(value for item in volumes for value in item.values if mine.has(value)))
    rules = sorted(spread.intersection(pods.bound[0]))
    open_ += (found.groups[number].open_to(mine, int(number in pods.selecting)) for number in rules)
    known = [one for one in open_ if one is not None]
    return _one_of(frozenset.intersection(*known) if known else None)


def _one_of(zones: frozenset[str] | None) -> str:
    if zones is None or len(zones) > 1:
        return "flexible"
    return next(iter(zones), "none")
