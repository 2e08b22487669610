"""The stored form of the catalog: encoding, decoding and compression."""

import gzip
import zlib
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import Final

import msgspec

from shared.model.cloud_provider.instance_type import Catalog, InstanceType, ObservedMemory, Offering
from shared.model.core.devices import ObservedDevices
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, ZONE_ID
from shared.model.core.metadata import build_pairs
from shared.model.core.requirements import Requirement, Requirements
from shared.model.core.resources import Resources, format_quantities
from shared.model.ec2.account import CapacityReservation
from shared.model.ec2.commitments import Commitments
from shared.wire.decode.field_errors import add_field_path, parse_resource_list
from shared.wire.schema.core import Quantities

_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_COMPRESSION_LEVEL: Final = 6
_MAX_CATALOG_BYTES: Final = 256 * 1024**2
"""Far above the size of any real catalog; a body that decompresses to more is refused."""
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class OfferingJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """JSON of an offering; *price* is in USD per hour."""

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


class ObservedMemoryJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """JSON of the memory in bytes that a node reported."""

    instance_type: str
    image_id: str
    memory_bytes: int
    at: datetime


class InstanceTypeJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """JSON of an instance type; a label with an empty list does not exist on the instance type."""

    name: str
    labels: dict[str, tuple[str, ...]]
    capacity: Quantities
    overhead: Quantities
    offerings: tuple[OfferingJson, ...]
    kube_reserved: dict[str, str] = {}
    """In the form that is passed to the instance, where the node class has expressions for these amounts."""
    system_reserved: dict[str, str] = {}


class CatalogJson(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False, omit_defaults=True):
    """JSON of a catalog."""

    region: str
    priced_at: datetime | None = None
    made_at: datetime | None = None
    instance_types: tuple[InstanceTypeJson, ...]
    node_classes: dict[str, tuple[InstanceTypeJson, ...]] = {}
    observed_memory: tuple[ObservedMemoryJson, ...] = msgspec.field(default=(), name="seen")
    observed_devices: tuple[ObservedDevices, ...] = ()
    scheduled_blocks: tuple[tuple[str, tuple[CapacityReservation, ...]], ...] = ()
    commitments: Commitments | None = None


def encode_catalog(catalog: Catalog) -> bytes:
    """Encode *catalog* as JSON; equal catalogs give equal bytes."""
    document = CatalogJson(
        region=catalog.region,
        priced_at=catalog.priced_at,
        made_at=catalog.built_at,
        instance_types=_convert_instance_types(catalog.instance_types),
        node_classes={name: _convert_instance_types(types) for name, types in catalog.by_node_class},
        observed_memory=tuple(
            msgspec.convert(observed_memory, ObservedMemoryJson, from_attributes=True)
            for observed_memory in sorted(catalog.observed_memory)
        ),
        observed_devices=tuple(sorted(catalog.observed_devices)),
        scheduled_blocks=catalog.scheduled_blocks,
        commitments=catalog.commitments,
    )
    return _ENCODER.encode(document)


def compress_body(body: bytes) -> bytes:
    """Compress *body* with gzip; equal bodies give equal bytes, because no timestamp is written."""
    return gzip.compress(body, _GZIP_COMPRESSION_LEVEL, mtime=0)


def decompress_body(body: bytes) -> bytes:
    """Return the body that `compress_body` compressed, or *body* itself if it is not compressed.

    Raises:
        ValueError: the compressed data is truncated or corrupt, or the content exceeds the size limit.
    """
    if not body.startswith(_GZIP_MAGIC):
        return body
    decompressor = zlib.decompressobj(wbits=31)
    try:
        content = decompressor.decompress(body, _MAX_CATALOG_BYTES)
    except zlib.error as error:
        raise ValueError(f"truncated: {error}") from None
    if not decompressor.eof:
        raise ValueError("truncated, or too large")
    return content


@lru_cache(maxsize=2)
def decode_catalog(body: bytes) -> Catalog:
    """Decode the output of `encode_catalog`, compressed or not; instance types, node classes and offerings are sorted.

    Raises:
        ValueError: *body* is not a complete catalog, or a value is invalid.
    """
    document = msgspec.json.decode(decompress_body(body), type=CatalogJson)
    if not document.region or not (document.instance_types or any(document.node_classes.values())):
        raise ValueError("region or instanceTypes: empty; no instance could be launched")
    decoder = _CatalogDecoder()
    return Catalog(
        region=document.region,
        instance_types=decoder.convert_instance_types("instanceTypes", document.instance_types),
        by_node_class=tuple(
            (name, decoder.convert_instance_types(f"nodeClasses[{name}]", types))
            for name, types in sorted(document.node_classes.items())
        ),
        priced_at=document.priced_at,
        built_at=document.made_at,
        observed_memory=tuple(
            sorted(
                msgspec.convert(observed_memory, ObservedMemory, from_attributes=True)
                for observed_memory in document.observed_memory
            )
        ),
        observed_devices=tuple(sorted(document.observed_devices)),
        scheduled_blocks=tuple(sorted(document.scheduled_blocks, key=lambda item: item[0])),
        commitments=document.commitments,
    )


def _convert_instance_types(instance_types: Iterable[InstanceType]) -> tuple[InstanceTypeJson, ...]:
    return tuple(
        _convert_instance_type(instance_type)
        for instance_type in sorted(instance_types, key=lambda instance_type: instance_type.name)
    )


def _convert_instance_type(instance_type: InstanceType) -> InstanceTypeJson:
    derived_labels = _derive_labels(instance_type.name, instance_type.offerings)
    labels = [(item.key, tuple(sorted(item.values))) for item in instance_type.requirements]
    return InstanceTypeJson(
        name=instance_type.name,
        labels={key: values for key, values in labels if values != derived_labels.get(key)},
        capacity=dict(format_quantities(instance_type.capacity)),
        overhead=dict(format_quantities(instance_type.overhead)),
        offerings=tuple(
            OfferingJson(
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
            for offering in sorted(instance_type.offerings)
        ),
        kube_reserved=dict(instance_type.kube_reserved),
        system_reserved=dict(instance_type.system_reserved),
    )


class _CatalogDecoder:
    """Decoder of one document; values that several instance types share are built once."""

    def __init__(self) -> None:
        """Start with empty caches."""
        self._requirement_cache: dict[tuple[str, tuple[str, ...]], Requirement] = {}
        self._resources_cache: dict[tuple[tuple[str, object], ...], Resources] = {}
        self._instance_type_cache: dict[str, tuple[InstanceTypeJson, InstanceType]] = {}

    def convert_instance_types(self, path: str, types: Iterable[InstanceTypeJson]) -> tuple[InstanceType, ...]:
        """Convert *types*, sorted by name.

        Raises:
            ValueError: a value is invalid, or a name occurs twice; the message names the path.
        """
        instance_types = sorted(
            (self._get_instance_type(path, type_json) for type_json in types),
            key=lambda instance_type: instance_type.name,
        )
        for previous_type, current_type in pairwise(instance_types):
            if previous_type.name == current_type.name:
                raise ValueError(f"{path}[{previous_type.name}]: twice")
        return tuple(instance_types)

    def _get_instance_type(self, path: str, type_json: InstanceTypeJson) -> InstanceType:
        """Return the instance type of *type_json*; most instance types are the same for every node class."""
        cached_json, instance_type = self._instance_type_cache.get(type_json.name, (None, None))
        if instance_type is None or cached_json != type_json:
            instance_type = self._build_instance_type(path, type_json)
            self._instance_type_cache[type_json.name] = (type_json, instance_type)
        return instance_type

    def _build_instance_type(self, path: str, type_json: InstanceTypeJson) -> InstanceType:
        offerings = tuple(sorted(_convert_offering(path, type_json.name, offering) for offering in type_json.offerings))
        requirement_by_key = {
            key: self._get_requirement(key, values) for key, values in _derive_labels(type_json.name, offerings).items()
        }
        for key, values in type_json.labels.items():
            requirement_by_key[key] = self._get_requirement(key, values)
        return InstanceType(
            name=type_json.name,
            requirements=Requirements(items=tuple([requirement_by_key[key] for key in sorted(requirement_by_key)])),
            capacity=self._get_resources(path, type_json.name, "capacity", type_json.capacity),
            overhead=self._get_resources(path, type_json.name, "overhead", type_json.overhead),
            offerings=offerings,
            kube_reserved=build_pairs(type_json.kube_reserved),
            system_reserved=build_pairs(type_json.system_reserved),
        )

    def _get_requirement(self, key: str, values: tuple[str, ...]) -> Requirement:
        requirement = self._requirement_cache.get((key, values))
        if requirement is None:
            requirement = self._requirement_cache[key, values] = Requirement(key=key, values=frozenset(values))
        return requirement

    def _get_resources(self, path: str, name: str, part: str, quantities: Quantities) -> Resources:
        cache_key = tuple(quantities.items())
        resources = self._resources_cache.get(cache_key)
        if resources is None:
            resources = self._resources_cache[cache_key] = parse_resource_list(f"{path}[{name}].{part}", quantities)
        return resources


def _convert_offering(path: str, name: str, offering: OfferingJson) -> Offering:
    if offering.price < 0 or not offering.zone or not offering.capacity_type:
        with add_field_path(f"{path}[{name}].offerings", "write zone, capacityType and a price of zero or more"):
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


def _derive_labels(name: str, offerings: tuple[Offering, ...]) -> dict[str, tuple[str, ...]]:
    """Return the label values that follow from the name and the offerings, sorted."""
    return {
        INSTANCE_TYPE: (name,),
        ZONE: tuple(sorted({offering.zone for offering in offerings})),
        ZONE_ID: tuple(sorted({offering.zone_id for offering in offerings if offering.zone_id})),
        CAPACITY_TYPE: tuple(sorted({offering.capacity_type for offering in offerings})),
    }
