"""The expected cost of interruptions, as a surcharge on the prices of spot offerings.

An interruption costs the eviction price of its pods, and the instance of the replacement while it boots. The history of
offerings says how often it is expected. The surcharge is a part of the price that plans compare; it is never billed, so
limits in USD per hour do not count it.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from shared.model.cloud_provider.instance_type import Catalog, InstanceType, Offering
from shared.model.cloud_provider.offering_history import OfferingKey, OfferingRecord
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import SPOT

RELAUNCH_PERIOD: Final = timedelta(minutes=3)
"""How long a replacement is paid for before its pods run: as long as both nodes of a consolidation."""
_ONE_HOUR: Final = timedelta(hours=1)


def price_interruptions(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """Return *cluster* with the expected cost of interruptions in the prices of its spot offerings.

    Without a history, or without interruptions in it, *cluster* is returned unchanged.
    """
    catalog, history = cluster.catalog, cluster.offering_history
    if catalog is None or history is None:
        return cluster
    records_by_type: dict[str, dict[OfferingKey, OfferingRecord]] = {}
    for record in history.records:
        if record.capacity_type == SPOT and (record.interruptions or record.evictions_usd):
            records_by_type.setdefault(record.instance_type, {})[record.key] = record
    return (
        replace(cluster, catalog=_price_catalog(catalog, records_by_type, cluster.taken_at))
        if records_by_type
        else cluster
    )


def estimate_interruption_cost(record: OfferingRecord, price_usd_per_hour: float, now: datetime) -> float:
    """Return the expected cost of interruptions in USD per hour, for a spot offering with that price.

    It is the number of interruptions expected per hour, times the sum of the eviction prices of their pods and of the
    price of the replacement while it boots.
    """
    current = record.with_decay(now)
    relaunch_usd = max(price_usd_per_hour, 0.0) * (RELAUNCH_PERIOD / _ONE_HOUR)
    return current.evictions_usd_per_hour + current.interruptions_per_hour * relaunch_usd


def _price_catalog(
    catalog: Catalog, records_by_type: Mapping[str, Mapping[OfferingKey, OfferingRecord]], now: datetime
) -> Catalog:
    def price_types(types: Iterable[InstanceType]) -> tuple[InstanceType, ...]:
        return tuple(
            _price_type(kind, records_by_type[kind.name], now) if kind.name in records_by_type else kind
            for kind in types
        )

    return replace(
        catalog,
        instance_types=price_types(catalog.instance_types),
        by_node_class=tuple((name, price_types(types)) for name, types in catalog.by_node_class),
        by_node_pool=tuple((name, price_types(types)) for name, types in catalog.by_node_pool),
    )


def _price_type(kind: InstanceType, records: Mapping[OfferingKey, OfferingRecord], now: datetime) -> InstanceType:
    return replace(kind, offerings=tuple(_price_offering(kind.name, offer, records, now) for offer in kind.offerings))


def _price_offering(
    type_name: str, offering: Offering, records: Mapping[OfferingKey, OfferingRecord], now: datetime
) -> Offering:
    record = records.get((type_name, offering.zone, offering.capacity_type))
    if record is None or offering.interruption_usd_per_hour:
        return offering
    surcharge = estimate_interruption_cost(record, offering.price_usd_per_hour, now)
    return replace(
        offering,
        price_usd_per_hour=offering.price_usd_per_hour + surcharge,
        interruption_usd_per_hour=surcharge,
    )
