"""Tests of the catalog's format and of its storage in the bucket."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from shared.model.cloud_provider.instance_type import Catalog, InstanceType, Offering
from shared.model.core.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ZONE, ZONE_ID
from shared.model.core.requirements import Requirement, Requirements, build_requirements
from shared.model.core.resources import build_resources
from shared.store.catalog import (
    NEWEST_CATALOG_KEY,
    build_catalog_key,
    iterate_newest_catalog_keys,
    list_catalog_keys,
    write_catalog,
)
from shared.store.catalog_format import compress_body, decode_catalog, decompress_body, encode_catalog
from sim.world.memory_ports import MemoryBucket

PRICED_AT = datetime(2026, 11, 21, 8, 0, 5, tzinfo=UTC)
SPOT_OFFERING = {"zone": "a", "zoneId": "az1", "capacityType": "spot", "price": 0.1}
SMALL_INSTANCE_TYPE = {
    "name": "m5.large",
    "labels": {},
    "capacity": {"cpu": "2"},
    "overhead": {},
    "offerings": [SPOT_OFFERING],
}


def encode_catalog_document(**parts: Any) -> bytes:
    return msgspec.json.encode({"region": "r", "instanceTypes": [SMALL_INSTANCE_TYPE]} | parts)


def encode_single_type_document(**parts: Any) -> bytes:
    return encode_catalog_document(instanceTypes=[SMALL_INSTANCE_TYPE | parts])


def test_instance_type_requirements_include_name_and_offering_labels() -> None:
    on_demand_offering = SPOT_OFFERING | {"zone": "b", "zoneId": "", "capacityType": "on-demand"}
    labels = {ARCH: ["amd64", "arm64"], "gpu": []}
    [instance_type] = decode_catalog(
        encode_single_type_document(labels=labels, offerings=[on_demand_offering, SPOT_OFFERING], future=1)
    ).instance_types
    assert {item.key: item.values for item in instance_type.requirements} == {
        ARCH: {"amd64", "arm64"},
        "gpu": frozenset(),
        INSTANCE_TYPE: {"m5.large"},
        ZONE: {"a", "b"},
        ZONE_ID: {"az1"},
        CAPACITY_TYPE: {"spot", "on-demand"},
    }
    assert [item.key for item in instance_type.requirements] == sorted(item.key for item in instance_type.requirements)
    assert [offering.zone for offering in instance_type.offerings] == ["a", "b"]
    assert instance_type.offerings[0].available


def test_explicit_label_overrides_the_label_derived_from_offerings() -> None:
    [instance_type] = decode_catalog(encode_single_type_document(labels={ZONE: ["a", "c"]})).instance_types
    assert instance_type.requirements[ZONE].values == {"a", "c"}


def test_derived_labels_are_not_stored() -> None:
    decoded_document = msgspec.json.decode(
        encode_catalog(decode_catalog(encode_single_type_document(labels={ARCH: ["amd64"], ZONE: ["a"]})))
    )
    assert decoded_document["instanceTypes"][0]["labels"] == {ARCH: ["amd64"]}
    assert decoded_document["instanceTypes"][0]["offerings"] == [SPOT_OFFERING]
    assert set(decoded_document) == {"region", "instanceTypes"}


def test_instance_types_are_sorted_and_grouped_by_node_class() -> None:
    big, small = SMALL_INSTANCE_TYPE | {"name": "z"}, SMALL_INSTANCE_TYPE | {"name": "a"}
    body = encode_catalog_document(
        instanceTypes=[big, small], nodeClasses={"two": [big], "one": [big, small]}, pricedAt="2026-11-21T08:00:05Z"
    )
    catalog = decode_catalog(body)
    assert [instance_type.name for instance_type in catalog.instance_types] == ["a", "z"]
    assert [(name, [instance_type.name for instance_type in types]) for name, types in catalog.by_node_class] == [
        ("one", ["a", "z"]),
        ("two", ["z"]),
    ]
    assert [instance_type.name for instance_type in catalog.get_instance_types("two")] == ["z"]
    assert [instance_type.name for instance_type in catalog.get_instance_types("three")] == ["a", "z"]
    assert catalog.priced_at == PRICED_AT


def test_reserved_offering_is_decoded() -> None:
    sold = SPOT_OFFERING | {
        "capacityType": "reserved",
        "price": 0.0,
        "reservationId": "cr-1",
        "reservationCapacity": 3,
        "available": False,
    }
    [instance_type] = decode_catalog(encode_single_type_document(offerings=[sold])).instance_types
    assert instance_type.offerings == (
        Offering(
            zone="a",
            zone_id="az1",
            capacity_type="reserved",
            price_usd_per_hour=0.0,
            available=False,
            reservation_id="cr-1",
            reservation_capacity=3,
        ),
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        encode_catalog_document()[:-1],
        encode_catalog_document()[: len(encode_catalog_document()) // 2],
        b"{}",
        b"[]",
        b'{"region": "r"}',
        encode_catalog_document(region=""),
        encode_catalog_document(instanceTypes=[]),
        encode_catalog_document(instanceTypes=[], nodeClasses={"one": []}),
        encode_catalog_document(instanceTypes=None),
        encode_catalog_document(instanceTypes=[SMALL_INSTANCE_TYPE, SMALL_INSTANCE_TYPE]),
        encode_single_type_document(capacity={"cpu": "two"}),
        encode_single_type_document(overhead={"cpu": "-1"}),
        encode_single_type_document(offerings=[SPOT_OFFERING | {"price": -0.1}]),
        encode_single_type_document(offerings=[SPOT_OFFERING | {"zone": ""}]),
        encode_single_type_document(offerings=[SPOT_OFFERING | {"capacityType": ""}]),
        encode_single_type_document(offerings=[{"zone": "a"}]),
        encode_single_type_document(labels=None),
        encode_catalog_document(instanceTypes=[{"name": "m5.large"}]),
        encode_catalog_document(nodeClasses={"one": [SMALL_INSTANCE_TYPE | {"capacity": None}]}),
    ],
)
def test_incomplete_catalog_is_rejected(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        decode_catalog(body)


def test_catalog_may_contain_only_instance_types_by_node_class() -> None:
    assert (
        decode_catalog(
            encode_catalog_document(instanceTypes=[], nodeClasses={"one": [SMALL_INSTANCE_TYPE]})
        ).by_node_class[0][0]
        == "one"
    )


def test_catalog_encoding_does_not_depend_on_order() -> None:
    def make_catalog(*names: str) -> Catalog:
        instance_types = tuple(
            InstanceType(
                name=name,
                requirements=build_requirements(
                    [Requirement(key=key, values=frozenset(names)) for key in ("b", "a") if names]
                ),
                capacity=build_resources({"cpu": 1}),
                overhead=build_resources({}),
            )
            for name in names
        )
        return Catalog(region="r", instance_types=instance_types)

    assert encode_catalog(make_catalog("x", "y", "z")) == encode_catalog(make_catalog("z", "y", "x"))


def test_catalog_key_contains_the_time_of_its_prices() -> None:
    catalogue = Catalog(region="r", instance_types=(), priced_at=PRICED_AT)
    assert build_catalog_key(catalogue) == "catalogue/20261121T080005Z.json.gz"
    bucket = MemoryBucket()
    for key in (build_catalog_key(catalogue), "catalogue/20261121T080004Z.json", "catalogue/later.json", "journal/z"):
        bucket.put(key, b"")
    assert list_catalog_keys(bucket) == ("catalogue/20261121T080004Z.json", build_catalog_key(catalogue))


class CountingBucket(MemoryBucket):
    """A bucket that counts the calls of `list_keys`."""

    list_count = 0

    def list_keys(self, prefix: str) -> tuple[str, ...]:
        self.list_count += 1
        return super().list_keys(prefix)


def test_newest_catalog_is_found_without_listing_the_bucket() -> None:
    bucket = CountingBucket()
    older, newer = (Catalog(region="r", instance_types=(), priced_at=PRICED_AT + timedelta(hours=n)) for n in (0, 1))
    write_catalog(older, bucket)
    write_catalog(newer, bucket)
    catalog_keys = iterate_newest_catalog_keys(bucket)
    assert (next(catalog_keys), bucket.list_count) == (build_catalog_key(newer), 0)
    assert (list(catalog_keys), bucket.list_count) == ([build_catalog_key(older)], 1)


@pytest.mark.parametrize("newest_body", [None, b"", b"catalogue/newest", b"\xff", b"journal/z"])
def test_missing_newest_catalog_pointer_falls_back_to_listing(newest_body: bytes | None) -> None:
    bucket = CountingBucket()
    bucket.put(build_catalog_key(Catalog(region="r", instance_types=(), priced_at=PRICED_AT)), b"")
    if newest_body is not None:
        bucket.put(NEWEST_CATALOG_KEY, newest_body)
    assert list(iterate_newest_catalog_keys(bucket)) == ["catalogue/20261121T080005Z.json.gz"]


def test_catalog_without_a_time_is_rejected() -> None:
    with pytest.raises(ValueError, match="time of its creation"):
        build_catalog_key(Catalog(region="r", instance_types=()))


def test_instance_type_without_offerings_has_no_zone() -> None:
    [instance_type] = decode_catalog(encode_single_type_document(offerings=[])).instance_types
    assert isinstance(instance_type.requirements, Requirements)
    assert instance_type.requirements[ZONE].operator == "DoesNotExist"


def test_compressed_and_plain_catalogs_are_decoded_equally() -> None:
    body = encode_catalog(decode_catalog(encode_catalog_document()))
    assert compress_body(body) == compress_body(body)
    assert decompress_body(compress_body(body)) == decompress_body(body) == body
    assert decode_catalog(compress_body(body)) == decode_catalog(body)


@pytest.mark.parametrize(
    "body",
    [
        compress_body(encode_catalog_document())[:-1],
        b"\x1f\x8b",
        b"\x1f\x8bnonsense",
        compress_body(encode_catalog_document())[:20],
    ],
)
def test_truncated_compressed_catalog_is_rejected(body: bytes) -> None:
    with pytest.raises(ValueError, match="truncated"):
        decode_catalog(body)


def test_decompression_beyond_the_size_limit_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.store.catalog_format._MAX_CATALOG_BYTES", 1000)
    with pytest.raises(ValueError, match="too large"):
        decompress_body(compress_body(b" " * 1001))


def test_catalog_with_old_prices_is_keyed_by_its_build_time() -> None:
    later = datetime(2026, 11, 21, 9, tzinfo=UTC)
    assert build_catalog_key(Catalog(region="r", instance_types=(), priced_at=PRICED_AT, built_at=later)).endswith(
        "T090000Z.json.gz"
    )


def test_catalog_lists_capacity_types_with_estimated_prices() -> None:
    old = SPOT_OFFERING | {"capacityType": "on-demand", "estimated": True}
    body = encode_catalog_document(nodeClasses={"one": [SMALL_INSTANCE_TYPE | {"offerings": [SPOT_OFFERING, old]}]})
    assert decode_catalog(body).list_estimated_capacity_types() == ("on-demand",)
    assert decode_catalog(encode_catalog_document()).list_estimated_capacity_types() == ()
