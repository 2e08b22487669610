"""NodeOverlays over the catalogue: prices and extended resources as an operator knows them, by NodePool.

An overlay speaks of a pool's type if pool and type define all that it requires; of its offerings it changes those that
can be what it requires. The heaviest overlay comes first, of equal weight the last name. The first price of an offering
and the first amount of a resource count. Two of equal weight that touch the same thing contradict each other, also
where they agree: the later one is not used at all, anywhere.

Known difference: Karpenter forgets which overlay set a resource once another one, of other resources, was applied to
the type; here every resource remembers.
"""

from collections.abc import Iterable, Mapping

import msgspec

from shared.model.catalogue import Catalogue, InstanceType, Offering
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, ZONE, ZONE_ID
from shared.model.nodepools import NodePool
from shared.model.objects import Problem
from shared.model.overlays import NodeOverlay, Verdict
from shared.model.requirements import Requirement, Requirements, requirements, requirements_from_labels
from shared.model.resources import resources
from shared.scheduling.shelf import RESERVATION_ID
from shared.scheduling.templates import template_labels

Spot = tuple[str, int]
"""A NodePool, and a type by its place in the pool's list."""


class Overlaid(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it."""

    catalogue: Catalogue | None
    verdicts: Mapping[str, Verdict]
    """By overlay; of what cannot be judged without a catalogue there is none."""


class _Ledger(msgspec.Struct, kw_only=True, eq=False):
    """Who set what: the price of an offering, by its place, or an amount of a resource, by its name."""

    prices: dict[Spot, dict[int, NodeOverlay]] = msgspec.field(default_factory=dict)
    amounts: dict[Spot, dict[str, NodeOverlay]] = msgspec.field(default_factory=dict)


def overlaid(cluster: Cluster) -> Cluster:
    """Answer *cluster* with the catalogue that its overlays make of its own; those that take no part are problems."""
    if not cluster.node_overlays:
        return cluster
    found = evaluate(cluster)
    bad = [
        Problem(kind="NodeOverlay", name=name, message=message)
        for name, (reason, message) in sorted(found.verdicts.items())
        if reason
    ]
    problems = tuple(sorted({*cluster.problems, *bad}))
    return msgspec.structs.replace(cluster, catalogue=found.catalogue, problems=problems)


def evaluate(cluster: Cluster) -> Overlaid:
    """Answer the catalogue with all overlays applied, and a verdict on each overlay."""
    verdicts: dict[str, Verdict] = {}
    ledger = _Ledger()
    sold = _sold(cluster)
    for overlay in by_weight(cluster.node_overlays):
        if overlay.refused:
            verdicts[overlay.name] = ("RuntimeValidation", overlay.refused)
            continue
        if cluster.catalogue is None:
            continue
        touched = [(spot, places) for spot, places in _touched(overlay, cluster.node_pools, sold) if places]
        rival = next((one for spot, places in touched if (one := _rival(overlay, spot, places, ledger))), None)
        if rival is not None:
            verdicts[overlay.name] = ("Conflict", _words(overlay, rival))
            continue
        verdicts[overlay.name] = ("", "")
        for spot, places in touched:
            _enter(overlay, spot, places, ledger)
    if cluster.catalogue is None:
        return Overlaid(catalogue=None, verdicts=verdicts)
    return Overlaid(catalogue=_written(cluster.catalogue, sold, ledger), verdicts=verdicts)


def by_weight(overlays: Iterable[NodeOverlay]) -> list[NodeOverlay]:
    """Sort by weight, heaviest first, then by name, last first."""
    some = sorted(overlays, key=lambda overlay: overlay.name, reverse=True)
    return sorted(some, key=lambda overlay: -overlay.weight)


def _sold(cluster: Cluster) -> dict[str, tuple[InstanceType, ...]]:
    if cluster.catalogue is None:
        return {}
    return {pool.name: cluster.catalogue.types_for(pool.node_class.name) for pool in cluster.node_pools}


def _touched(
    overlay: NodeOverlay, pools: Iterable[NodePool], sold: Mapping[str, tuple[InstanceType, ...]]
) -> Iterable[tuple[Spot, tuple[int, ...]]]:
    """Answer the types it speaks of, each with the places of the offerings that it changes."""
    wanted = overlay.requirements
    for pool in sorted(pools, key=lambda pool: pool.name):
        fixed = requirements_from_labels(template_labels(pool))
        for number, one in enumerate(sold.get(pool.name, ())):
            if (fixed & one.requirements).is_compatible(wanted):
                places = (place for place, some in enumerate(one.offerings) if not wanted.conflict(_described(some)))
                yield (pool.name, number), tuple(places)


def _described(one: Offering) -> Requirements:
    known = {
        CAPACITY_TYPE: one.capacity_type,
        RESERVATION_ID: one.reservation_id,
        ZONE: one.zone,
        ZONE_ID: one.zone_id,
    }
    return requirements(
        Requirement(key=key, values=frozenset((value,) if value else ())) for key, value in known.items()
    )


def _rival(overlay: NodeOverlay, spot: Spot, places: Iterable[int], ledger: _Ledger) -> NodeOverlay | None:
    """Answer the overlay of the same weight that was there first."""
    prices, amounts = ledger.prices.get(spot, {}), ledger.amounts.get(spot, {})
    before = [prices.get(place) for place in places] if overlay.adjustment is not None else []
    before += [amounts.get(name) for name in overlay.capacity.names()]
    return next((one for one in before if one is not None and one.weight == overlay.weight), None)


def _enter(overlay: NodeOverlay, spot: Spot, places: Iterable[int], ledger: _Ledger) -> None:
    for place in places if overlay.adjustment is not None else ():
        ledger.prices.setdefault(spot, {}).setdefault(place, overlay)
    for name in overlay.capacity.names():
        ledger.amounts.setdefault(spot, {}).setdefault(name, overlay)


def _words(overlay: NodeOverlay, rival: NodeOverlay) -> str:
    return (
        f"conflicts with NodeOverlay {rival.name}: {overlay.name} has the same weight ({overlay.weight}) and changes "
        f"the same price or resource; give one of them another weight, or narrow its requirements"
    )


def _written(catalogue: Catalogue, sold: Mapping[str, tuple[InstanceType, ...]], ledger: _Ledger) -> Catalogue:
    changed = {pool for pool, _ in (*ledger.prices, *ledger.amounts)}
    by_node_pool = tuple(
        (name, tuple(_with(one, (name, number), ledger) for number, one in enumerate(sold[name])))
        for name in sorted(changed)
    )
    return msgspec.structs.replace(catalogue, by_node_pool=by_node_pool)


def _with(one: InstanceType, spot: Spot, ledger: _Ledger) -> InstanceType:
    prices, amounts = ledger.prices.get(spot, {}), ledger.amounts.get(spot, {})
    if prices:
        offerings = tuple(_priced(some, prices.get(place)) for place, some in enumerate(one.offerings))
        one = msgspec.structs.replace(one, offerings=offerings)
    if amounts:
        capacity = dict(one.capacity.amounts) | {name: by.capacity[name] for name, by in amounts.items()}
        one = msgspec.structs.replace(one, capacity=resources(capacity), is_overlaid=True)
    return one


def _priced(some: Offering, overlay: NodeOverlay | None) -> Offering:
    if overlay is None or overlay.adjustment is None:
        return some
    price = overlay.adjustment.of(some.price_usd_per_hour)
    return msgspec.structs.replace(some, price_usd_per_hour=price, is_overlaid=True)
