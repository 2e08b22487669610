"""The catalogue as it is kept: JSON that other planners read too.

An object says ``{"region": …, "pricedAt": …, "instanceTypes": […], "nodeClasses": {name: […]}}``. Of a type's labels
those that follow from its name and its offerings are not repeated, unless they differ from that. It is kept
compressed, thirty to one: what repeats most, keys and labels, costs a reader nothing, and `zcat` shows it.
"""

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from typing import Final

import msgspec

from shared.errors import Gone
from shared.model.catalogue import Catalogue, InstanceType, Offering, SeenMemory
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, ZONE_ID
from shared.model.objects import pairs
from shared.model.requirements import Requirement, Requirements
from shared.model.resources import Resources, quantities_from
from shared.ports import Bucket
from shared.snapshot.fields import amounts, at
from shared.snapshot.wire_core import Quantities

PREFIX: Final = "catalogue/"
NEWEST: Final = f"{PREFIX}newest"
"""The key of the newest."""
_INSTANT: Final = "%Y%m%dT%H%M%SZ"
_KEY: Final = re.compile(rf"{PREFIX}\d{{8}}T\d{{6}}Z\.json(\.gz)?")
_GZIP: Final = b"\x1f\x8b"
_LEVEL: Final = 6
_LARGEST: Final = 256 * 1024**2
"""Nobody's catalogue; what claims to be larger is not unpacked."""
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
    reservation_type: str = ""
    reservation_interruptible: bool = False
    estimated: bool = False


class WireSeen(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Memory that a node reported, in bytes."""

    instance_type: str
    image_id: str
    memory_bytes: int
    at: datetime


class WireType(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """One instance type; a label with an empty list does not exist on it."""

    name: str
    labels: dict[str, tuple[str, ...]]
    capacity: Quantities
    overhead: Quantities
    offerings: tuple[WireOffering, ...]
    kube_reserved: dict[str, str] = {}
    """As the machine is told, where the node class has expressions for it."""
    system_reserved: dict[str, str] = {}


class WireCatalogue(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """The document."""

    region: str
    priced_at: datetime | None = None
    made_at: datetime | None = None
    instance_types: tuple[WireType, ...]
    node_classes: dict[str, tuple[WireType, ...]] = {}
    seen: tuple[WireSeen, ...] = ()


def key_of(catalogue: Catalogue) -> str:
    """Answer where *catalogue* is kept, ``catalogue/20261121T080000Z.json.gz``; later ones sort behind earlier ones.

    Raises:
        ValueError: it does not say when it was made or priced.
    """
    at = catalogue.made_at or catalogue.priced_at
    if at is None:
        raise ValueError("a catalogue is kept under the time at which it was made")
    return f"{PREFIX}{at.astimezone(UTC):{_INSTANT}}.json.gz"


def catalogue_keys(bucket: Bucket) -> tuple[str, ...]:
    """Answer the keys of the catalogues in *bucket*, oldest first.

    Raises:
        Fault: the bucket could not be read.
    """
    return tuple(sorted(key for key in bucket.keys(PREFIX) if _KEY.fullmatch(key)))


def newest_keys(bucket: Bucket) -> Iterator[str]:
    """Iterate over the keys of the catalogues in *bucket*, newest first.

    The first is written down, so that the bucket need not be listed, which costs twelve times what a look does; where
    nothing is written down, or that one is not to be used, the list tells.

    Raises:
        Fault: the bucket could not be read.
    """
    try:
        first = bucket.get(NEWEST).decode(errors="replace")
    except Gone:
        first = ""
    if _KEY.fullmatch(first):
        yield first
    yield from (key for key in reversed(catalogue_keys(bucket)) if key != first)


def keep(catalogue: Catalogue, bucket: Bucket) -> None:
    """Write *catalogue*, then that it is the newest: in between the one before it still counts.

    Raises:
        Fault: the bucket did not take it.
        ValueError: it does not say when it was made or priced.
    """
    key = key_of(catalogue)
    bucket.put(key, packed(encode_catalogue(catalogue)))
    bucket.put(NEWEST, key.encode())


def encode_catalogue(catalogue: Catalogue) -> bytes:
    """Write *catalogue* as JSON; equal catalogues are equal bytes."""
    document = WireCatalogue(
        region=catalogue.region,
        priced_at=catalogue.priced_at,
        made_at=catalogue.made_at,
        instance_types=_types_to_wire(catalogue.instance_types),
        node_classes={name: _types_to_wire(types) for name, types in catalogue.by_node_class},
        seen=tuple(msgspec.convert(one, WireSeen, from_attributes=True) for one in sorted(catalogue.seen)),
    )
    return _ENCODER.encode(document)


def packed(body: bytes) -> bytes:
    """Compress what is kept; equal bytes stay equal: no time is written into it."""
    return gzip.compress(body, _LEVEL, mtime=0)


def unpacked(body: bytes) -> bytes:
    """Answer what `packed` was given, or *body* itself if it is not compressed.

    Raises:
        ValueError: it is not whole, or too large to be what it says.
    """
    if not body.startswith(_GZIP):
        return body
    inflating = zlib.decompressobj(wbits=31)
    try:
        found = inflating.decompress(body, _LARGEST)
    except zlib.error as error:
        raise ValueError(f"not whole: {error}") from None
    if not inflating.eof:
        raise ValueError("not whole, or far too large")
    return found


@lru_cache(maxsize=2)
def decode_catalogue(body: bytes) -> Catalogue:
    """Read what `encode_catalogue` writes, `packed` or not; instance types, node classes and offerings are sorted.

    Raises:
        ValueError: *body* is not a whole catalogue, or one of its values cannot be.
    """
    document = msgspec.json.decode(unpacked(body), type=WireCatalogue)
    if not document.region or not (document.instance_types or any(document.node_classes.values())):
        raise ValueError("region or instanceTypes: empty; nothing could be launched with that")
    reading = _Reading()
    return Catalogue(
        region=document.region,
        instance_types=reading.types("instanceTypes", document.instance_types),
        by_node_class=tuple(
            (name, reading.types(f"nodeClasses[{name}]", types))
            for name, types in sorted(document.node_classes.items())
        ),
        priced_at=document.priced_at,
        made_at=document.made_at,
        seen=tuple(sorted(msgspec.convert(one, SeenMemory, from_attributes=True) for one in document.seen)),
    )


def _types_to_wire(types: Iterable[InstanceType]) -> tuple[WireType, ...]:
    return tuple(_type_to_wire(one) for one in sorted(types, key=lambda one: one.name))


def _type_to_wire(one: InstanceType) -> WireType:
    derived = _derived(one.name, one.offerings)
    written = [(item.key, tuple(sorted(item.values))) for item in one.requirements]
    return WireType(
        name=one.name,
        labels={key: values for key, values in written if values != derived.get(key)},
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
                reservation_type=offering.reservation_type,
                reservation_interruptible=offering.reservation_interruptible,
                estimated=offering.is_estimated,
            )
            for offering in sorted(one.offerings)
        ),
        kube_reserved=dict(one.kube_reserved),
        system_reserved=dict(one.system_reserved),
    )


class _Reading:
    """One document being read: what its types have in common is made once."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._requirements: dict[tuple[str, tuple[str, ...]], Requirement] = {}
        self._amounts: dict[tuple[tuple[str, object], ...], Resources] = {}
        self._types: dict[str, tuple[WireType, InstanceType]] = {}

    def types(self, path: str, types: Iterable[WireType]) -> tuple[InstanceType, ...]:
        """Answer *types*, sorted by name.

        Raises:
            ValueError: a value cannot be, or a name is there twice; the message says where.
        """
        found = sorted((self._type(path, one) for one in types), key=lambda one: one.name)
        for one, other in pairwise(found):
            if one.name == other.name:
                raise ValueError(f"{path}[{one.name}]: twice")
        return tuple(found)

    def _type(self, path: str, one: WireType) -> InstanceType:
        """Answer one type; most are the same for every node class."""
        wire, known = self._types.get(one.name, (None, None))
        if known is None or wire != one:
            known = self._made(path, one)
            self._types[one.name] = (one, known)
        return known

    def _made(self, path: str, one: WireType) -> InstanceType:
        offerings = tuple(sorted(_offering(path, one.name, offering) for offering in one.offerings))
        known = {key: self._requirement(key, values) for key, values in _derived(one.name, offerings).items()}
        for key, values in one.labels.items():
            known[key] = self._requirement(key, values)
        return InstanceType(
            name=one.name,
            requirements=Requirements(items=tuple([known[key] for key in sorted(known)])),
            capacity=self._resources(path, one.name, "capacity", one.capacity),
            overhead=self._resources(path, one.name, "overhead", one.overhead),
            offerings=offerings,
            kube_reserved=pairs(one.kube_reserved),
            system_reserved=pairs(one.system_reserved),
        )

    def _requirement(self, key: str, values: tuple[str, ...]) -> Requirement:
        known = self._requirements.get((key, values))
        if known is None:
            known = self._requirements[key, values] = Requirement(key=key, values=frozenset(values))
        return known

    def _resources(self, path: str, name: str, part: str, quantities: Quantities) -> Resources:
        said = tuple(quantities.items())
        known = self._amounts.get(said)
        if known is None:
            known = self._amounts[said] = amounts(f"{path}[{name}].{part}", quantities)
        return known


def _offering(path: str, name: str, offering: WireOffering) -> Offering:
    if offering.price < 0 or not offering.zone or not offering.capacity_type:
        with at(f"{path}[{name}].offerings", "write zone, capacityType and a price of zero or more"):
            raise ValueError(f"cannot be: {msgspec.json.encode(offering).decode()}")
    return Offering(
        zone=offering.zone,
        capacity_type=offering.capacity_type,
        price_usd_per_hour=offering.price,
        available=offering.available,
        zone_id=offering.zone_id,
        reservation_id=offering.reservation_id,
        reservation_capacity=offering.reservation_capacity,
        reservation_type=offering.reservation_type,
        reservation_interruptible=offering.reservation_interruptible,
        is_estimated=offering.estimated,
    )


def _derived(name: str, sold: tuple[Offering, ...]) -> dict[str, tuple[str, ...]]:
    """Answer the values of the labels that follow, sorted."""
    return {
        INSTANCE_TYPE: (name,),
        ZONE: tuple(sorted({offering.zone for offering in sold})),
        ZONE_ID: tuple(sorted({offering.zone_id for offering in sold if offering.zone_id})),
        CAPACITY_TYPE: tuple(sorted({offering.capacity_type for offering in sold})),
    }
