"""The catalogue as it is kept: JSON that other planners read too.

An object says ``{"region": …, "pricedAt": …, "instanceTypes": […], "nodeClasses": {name: […]}}``. Of a type's labels
those that follow from its name and its offerings are not repeated, unless they differ from that.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from typing import Final

import msgspec

from shared.model.catalogue import Catalogue, InstanceType, Offering
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, ZONE_ID
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import quantities_from
from shared.ports import Bucket
from shared.snapshot.fields import amounts, at
from shared.snapshot.wire_core import Quantities

PREFIX: Final = "catalogue/"
_INSTANT: Final = "%Y%m%dT%H%M%SZ"
_KEY: Final = re.compile(rf"{PREFIX}\d{{8}}T\d{{6}}Z\.json")
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class WireOffering(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """One offering; money in USD per hour."""

    zone: str
    zone_id: str = ""
    capacity_type: str
    price: float
    available: bool = True
    reservation_id: str = ""
    reservation_capacity: int = 0


class WireType(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One instance type; a label with an empty list does not exist on it."""

    name: str
    labels: dict[str, tuple[str, ...]]
    capacity: Quantities
    overhead: Quantities
    offerings: tuple[WireOffering, ...]


class WireCatalogue(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """The document."""

    region: str
    priced_at: datetime | None = None
    instance_types: tuple[WireType, ...]
    node_classes: dict[str, tuple[WireType, ...]] = {}


def key_of(catalogue: Catalogue) -> str:
    """Answer where *catalogue* is kept, ``catalogue/20261121T080000Z.json``; later ones sort behind earlier ones.

    Raises:
        ValueError: it does not say when it was priced.
    """
    if catalogue.priced_at is None:
        raise ValueError("a catalogue is kept under the time of its prices")
    return f"{PREFIX}{catalogue.priced_at.astimezone(UTC):{_INSTANT}}.json"


def catalogue_keys(bucket: Bucket) -> tuple[str, ...]:
    """Answer the keys of the catalogues in *bucket*, oldest first.

    Raises:
        Fault: the bucket could not be read.
    """
    return tuple(sorted(key for key in bucket.keys(PREFIX) if _KEY.fullmatch(key)))


def newest_at(bucket: Bucket) -> datetime | None:
    """Answer when the newest catalogue in *bucket* was priced, None if there is none.

    Raises:
        Fault: the bucket could not be read.
    """
    keys = catalogue_keys(bucket)
    return datetime.strptime(keys[-1], f"{PREFIX}{_INSTANT}.json").replace(tzinfo=UTC) if keys else None


def encode_catalogue(catalogue: Catalogue) -> bytes:
    """Write *catalogue*; equal catalogues are equal bytes."""
    document = WireCatalogue(
        region=catalogue.region,
        priced_at=catalogue.priced_at,
        instance_types=_types_to_wire(catalogue.instance_types),
        node_classes={name: _types_to_wire(types) for name, types in catalogue.by_node_class},
    )
    return _ENCODER.encode(document)


@lru_cache(maxsize=2)
def decode_catalogue(body: bytes) -> Catalogue:
    """Read what `encode_catalogue` writes; instance types, node classes and offerings are sorted.

    Raises:
        ValueError: *body* is not a whole catalogue, or one of its values cannot be.
    """
    document = msgspec.json.decode(body, type=WireCatalogue)
    if not document.region or not (document.instance_types or any(document.node_classes.values())):
        raise ValueError("region or instanceTypes: empty; nothing could be launched with that")
    return Catalogue(
        region=document.region,
        instance_types=_types_from_wire("instanceTypes", document.instance_types),
        by_node_class=tuple(
            (name, _types_from_wire(f"nodeClasses[{name}]", types))
            for name, types in sorted(document.node_classes.items())
        ),
        priced_at=document.priced_at,
    )


def _types_to_wire(types: Iterable[InstanceType]) -> tuple[WireType, ...]:
    return tuple(_type_to_wire(one) for one in sorted(types, key=lambda one: one.name))


def _type_to_wire(one: InstanceType) -> WireType:
    derived = _derived(one.name, one.offerings)
    return WireType(
        name=one.name,
        labels={item.key: tuple(sorted(item.values)) for item in one.requirements if item != derived.get(item.key)},
        capacity=dict(quantities_from(one.capacity)),
        overhead=dict(quantities_from(one.overhead)),
        offerings=tuple(
            WireOffering(
                zone=offering.zone,
                zone_id=offering.zone_id,
                capacity_type=offering.capacity_type,
                price=offering.price_usd_per_hour,
                available=offering.available,
                reservation_id=offering.reservation_id,
                reservation_capacity=offering.reservation_capacity,
            )
            for offering in sorted(one.offerings)
        ),
    )


def _types_from_wire(path: str, types: Iterable[WireType]) -> tuple[InstanceType, ...]:
    found = sorted((_type_from_wire(f"{path}[{one.name}]", one) for one in types), key=lambda one: one.name)
    for one, other in pairwise(found):
        if one.name == other.name:
            raise ValueError(f"{path}[{one.name}]: twice")
    return tuple(found)


def _type_from_wire(path: str, one: WireType) -> InstanceType:
    offerings = tuple(sorted(_offering(path, offering) for offering in one.offerings))
    said = {key: _requirement(key, frozenset(values)) for key, values in one.labels.items()}
    known = _derived(one.name, offerings) | said
    return InstanceType(
        name=one.name,
        requirements=Requirements(items=tuple(known[key] for key in sorted(known))),
        capacity=amounts(f"{path}.capacity", one.capacity),
        overhead=amounts(f"{path}.overhead", one.overhead),
        offerings=offerings,
    )


def _offering(path: str, offering: WireOffering) -> Offering:
    with at(f"{path}.offerings", "write zone, capacityType and a price of zero or more"):
        if offering.price < 0 or not offering.zone or not offering.capacity_type:
            raise ValueError(f"cannot be: {msgspec.json.encode(offering).decode()}")
    return Offering(
        zone=offering.zone,
        capacity_type=offering.capacity_type,
        price_usd_per_hour=offering.price,
        available=offering.available,
        zone_id=offering.zone_id,
        reservation_id=offering.reservation_id,
        reservation_capacity=offering.reservation_capacity,
    )


def _derived(name: str, offerings: Iterable[Offering]) -> dict[str, Requirement]:
    sold = tuple(offerings)
    values = {
        INSTANCE_TYPE: frozenset((name,)),
        ZONE: frozenset(offering.zone for offering in sold),
        ZONE_ID: frozenset(offering.zone_id for offering in sold if offering.zone_id),
        CAPACITY_TYPE: frozenset(offering.capacity_type for offering in sold),
    }
    return {key: _requirement(key, some) for key, some in values.items()}


@lru_cache(maxsize=65536)
def _requirement(key: str, values: frozenset[str]) -> Requirement:
    return Requirement(key=key, values=values)
