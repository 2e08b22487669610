"""NodeOverlays: prices and extended resources that an operator sets on the catalog, per NodePool.

An overlay applies to an instance type of a NodePool if the NodePool and the type define all that it requires; it
changes the offerings that can satisfy its requirements. The overlay with the highest weight comes first; of equal
weights, the last name. The first price of an offering and the first amount of a resource win. Two overlays of equal
weight that change the same price or resource conflict, even if they agree: the later overlay is not applied anywhere.

Known difference: Karpenter forgets which overlay set a resource once another overlay, of other resources, was applied
to the type; Joiner remembers the overlay of every resource.
"""

from collections.abc import Iterable, Mapping

import msgspec

from shared.decide.scheduling.templates.template_builder import build_template_labels
from shared.model.cloud_provider.instance_type import Catalog, InstanceType, Offering
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, RESERVATION_ID, ZONE, ZONE_ID
from shared.model.core.metadata import Problem
from shared.model.core.requirements import Requirement, Requirements, build_label_requirements, build_requirements
from shared.model.core.resources import build_resources
from shared.model.karpenter.node_overlay import NodeOverlay, OverlayVerdict
from shared.model.karpenter.node_pool import NodePool

TypePosition = tuple[str, int]
"""The name of a NodePool, and the position of an instance type in the list of the NodePool."""


class OverlaidCatalog(msgspec.Struct, frozen=True, kw_only=True):
    """The catalog after all overlays, with a verdict on each overlay."""

    catalog: Catalog | None
    verdicts: Mapping[str, OverlayVerdict]
    """By overlay name. An overlay that cannot be validated without a catalog has no verdict."""


class _AppliedOverlays(msgspec.Struct, kw_only=True, eq=False):
    """The overlay that set each price, by position of the offering, and each resource amount, by resource name."""

    prices: dict[TypePosition, dict[int, NodeOverlay]] = msgspec.field(default_factory=dict)
    amounts: dict[TypePosition, dict[str, NodeOverlay]] = msgspec.field(default_factory=dict)


def apply_overlays(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """Return *cluster* with overlays applied to its catalog.

    Overlays that are not applied are added to its problems.
    """
    if not cluster.node_overlays:
        return cluster
    overlaid_catalog = evaluate_overlays(cluster)
    overlay_problems = [
        Problem(kind="NodeOverlay", name=name, message=message)
        for name, (reason, message) in sorted(overlaid_catalog.verdicts.items())
        if reason
    ]
    problems = tuple(sorted({*cluster.problems, *overlay_problems}))
    return msgspec.structs.replace(cluster, catalog=overlaid_catalog.catalog, problems=problems)


def evaluate_overlays(cluster: ClusterSnapshot) -> OverlaidCatalog:
    """Return the catalog with all overlays applied, and a verdict on each overlay."""
    verdicts: dict[str, OverlayVerdict] = {}
    applied_overlays = _AppliedOverlays()
    types_by_pool = _map_types_by_pool(cluster)
    for overlay in sort_overlays(cluster.node_overlays):
        if overlay.refusal_message:
            verdicts[overlay.name] = ("RuntimeValidation", overlay.refusal_message)
            continue
        if cluster.catalog is None:
            continue
        matched_types = [
            (spot, places) for spot, places in _match_types(overlay, cluster.node_pools, types_by_pool) if places
        ]
        rival = next(
            (
                conflicting_overlay
                for spot, places in matched_types
                if (conflicting_overlay := _find_rival(overlay, spot, places, applied_overlays))
            ),
            None,
        )
        if rival is not None:
            verdicts[overlay.name] = ("Conflict", _format_conflict(overlay, rival))
            continue
        verdicts[overlay.name] = ("", "")
        for type_position, offering_indexes in matched_types:
            _record_overlay(overlay, type_position, offering_indexes, applied_overlays)
    if cluster.catalog is None:
        return OverlaidCatalog(catalog=None, verdicts=verdicts)
    return OverlaidCatalog(catalog=_build_catalog(cluster.catalog, types_by_pool, applied_overlays), verdicts=verdicts)


def sort_overlays(overlays: Iterable[NodeOverlay]) -> list[NodeOverlay]:
    """Return the overlays by weight, highest first, then by name, last first."""
    overlays_by_name = sorted(overlays, key=lambda overlay: overlay.name, reverse=True)
    return sorted(overlays_by_name, key=lambda overlay: -overlay.weight)


def _map_types_by_pool(cluster: ClusterSnapshot) -> dict[str, tuple[InstanceType, ...]]:
    if cluster.catalog is None:
        return {}
    return {pool.name: cluster.catalog.get_instance_types(pool.node_class.name) for pool in cluster.node_pools}


def _match_types(
    overlay: NodeOverlay, pools: Iterable[NodePool], types_by_pool: Mapping[str, tuple[InstanceType, ...]]
) -> Iterable[tuple[TypePosition, tuple[int, ...]]]:
    """Yield the instance types that the overlay applies to, each with the indexes of the offerings that it changes."""
    overlay_requirements = overlay.requirements
    for pool in sorted(pools, key=lambda pool: pool.name):
        label_requirements = build_label_requirements(build_template_labels(pool))
        for type_number, instance_type in enumerate(types_by_pool.get(pool.name, ())):
            if (label_requirements & instance_type.requirements).is_compatible(overlay_requirements):
                offering_indexes = (
                    place
                    for place, offering in enumerate(instance_type.offerings)
                    if not overlay_requirements.find_conflict(_build_offering_requirements(offering))
                )
                yield (pool.name, type_number), tuple(offering_indexes)


def _build_offering_requirements(offering: Offering) -> Requirements:
    label_values = {
        CAPACITY_TYPE: offering.capacity_type,
        RESERVATION_ID: offering.reservation_id,
        ZONE: offering.zone,
        ZONE_ID: offering.zone_id,
    }
    return build_requirements(
        Requirement(key=key, values=frozenset((value,) if value else ())) for key, value in label_values.items()
    )


def _find_rival(
    overlay: NodeOverlay,
    type_position: TypePosition,
    offering_indexes: Iterable[int],
    applied_overlays: _AppliedOverlays,
) -> NodeOverlay | None:
    """Return the overlay of the same weight that was applied first, or None."""
    prices, amounts = applied_overlays.prices.get(type_position, {}), applied_overlays.amounts.get(type_position, {})
    earlier_overlays = [prices.get(place) for place in offering_indexes] if overlay.adjustment is not None else []
    earlier_overlays += [amounts.get(name) for name in overlay.capacity.list_names()]
    return next(
        (
            earlier_overlay
            for earlier_overlay in earlier_overlays
            if earlier_overlay is not None and earlier_overlay.weight == overlay.weight
        ),
        None,
    )


def _record_overlay(
    overlay: NodeOverlay,
    type_position: TypePosition,
    offering_indexes: Iterable[int],
    applied_overlays: _AppliedOverlays,
) -> None:
    for offering_index in offering_indexes if overlay.adjustment is not None else ():
        applied_overlays.prices.setdefault(type_position, {}).setdefault(offering_index, overlay)
    for name in overlay.capacity.list_names():
        applied_overlays.amounts.setdefault(type_position, {}).setdefault(name, overlay)


def _format_conflict(overlay: NodeOverlay, rival: NodeOverlay) -> str:
    return (
        f"conflicts with NodeOverlay {rival.name}: {overlay.name} has the same weight ({overlay.weight}) and changes "
        f"the same price or resource; give one of them another weight, or narrow its requirements"
    )


def _build_catalog(
    catalog: Catalog, types_by_pool: Mapping[str, tuple[InstanceType, ...]], applied_overlays: _AppliedOverlays
) -> Catalog:
    changed_pools = {pool for pool, _ in (*applied_overlays.prices, *applied_overlays.amounts)}
    by_node_pool = tuple(
        (
            name,
            tuple(
                _with_overlays(instance_type, (name, number), applied_overlays)
                for number, instance_type in enumerate(types_by_pool[name])
            ),
        )
        for name in sorted(changed_pools)
    )
    return msgspec.structs.replace(catalog, by_node_pool=by_node_pool)


def _with_overlays(
    instance_type: InstanceType, type_position: TypePosition, applied_overlays: _AppliedOverlays
) -> InstanceType:
    prices, amounts = applied_overlays.prices.get(type_position, {}), applied_overlays.amounts.get(type_position, {})
    if prices:
        offerings = tuple(
            _with_price(offering, prices.get(place)) for place, offering in enumerate(instance_type.offerings)
        )
        instance_type = msgspec.structs.replace(instance_type, offerings=offerings)
    if amounts:
        capacity = dict(instance_type.capacity.amounts) | {name: by.capacity[name] for name, by in amounts.items()}
        instance_type = msgspec.structs.replace(instance_type, capacity=build_resources(capacity), is_overlaid=True)
    return instance_type


def _with_price(offering: Offering, overlay: NodeOverlay | None) -> Offering:
    if overlay is None or overlay.adjustment is None:
        return offering
    price = overlay.adjustment.compute_price(offering.price_usd_per_hour)
    return msgspec.structs.replace(offering, price_usd_per_hour=price, is_overlaid=True)
