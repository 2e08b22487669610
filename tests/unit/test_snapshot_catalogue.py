"""The catalogue as it is kept."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from shared.model.catalogue import Catalogue, InstanceType, Offering
from shared.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, ZONE, ZONE_ID
from shared.model.requirements import Requirement, Requirements, requirements
from shared.model.resources import resources
from shared.snapshot.catalogue import (
    NEWEST,
    catalogue_keys,
    decode_catalogue,
    encode_catalogue,
    keep,
    key_of,
    newest_keys,
    packed,
    unpacked,
)
from sim.memory import MemoryBucket

AT = datetime(2026, 11, 21, 8, 0, 5, tzinfo=UTC)
SOLD = {"zone": "a", "zoneId": "az1", "capacityType": "spot", "price": 0.1}
SMALL = {"name": "m5.large", "labels": {}, "capacity": {"cpu": "2"}, "overhead": {}, "offerings": [SOLD]}


def document(**parts: Any) -> bytes:
    return msgspec.json.encode({"region": "r", "instanceTypes": [SMALL]} | parts)


def of_type(**parts: Any) -> bytes:
    return document(instanceTypes=[SMALL | parts])


def test_labels_follow_from_name_and_offerings() -> None:
    other = SOLD | {"zone": "b", "zoneId": "", "capacityType": "on-demand"}
    labels = {ARCH: ["amd64", "arm64"], "gpu": []}
    [one] = decode_catalogue(of_type(labels=labels, offerings=[other, SOLD], future=1)).instance_types
    assert {item.key: item.values for item in one.requirements} == {
        ARCH: {"amd64", "arm64"},
        "gpu": frozenset(),
        INSTANCE_TYPE: {"m5.large"},
        ZONE: {"a", "b"},
        ZONE_ID: {"az1"},
        CAPACITY_TYPE: {"spot", "on-demand"},
    }
    assert [item.key for item in one.requirements] == sorted(item.key for item in one.requirements)
    assert [offering.zone for offering in one.offerings] == ["a", "b"]
    assert one.offerings[0].available


def test_a_label_that_is_written_counts_more_than_what_follows() -> None:
    [one] = decode_catalogue(of_type(labels={ZONE: ["a", "c"]})).instance_types
    assert one.requirements[ZONE].values == {"a", "c"}


def test_labels_that_follow_are_not_written() -> None:
    written = msgspec.json.decode(encode_catalogue(decode_catalogue(of_type(labels={ARCH: ["amd64"], ZONE: ["a"]}))))
    assert written["instanceTypes"][0]["labels"] == {ARCH: ["amd64"]}
    assert written["instanceTypes"][0]["offerings"] == [SOLD]
    assert set(written) == {"region", "instanceTypes"}


def test_types_are_sorted_and_kept_by_node_class() -> None:
    big, small = SMALL | {"name": "z"}, SMALL | {"name": "a"}
    body = document(
        instanceTypes=[big, small], nodeClasses={"two": [big], "one": [big, small]}, pricedAt="2026-11-21T08:00:05Z"
    )
    found = decode_catalogue(body)
    assert [one.name for one in found.instance_types] == ["a", "z"]
    assert [(name, [one.name for one in types]) for name, types in found.by_node_class] == [
        ("one", ["a", "z"]),
        ("two", ["z"]),
    ]
    assert [one.name for one in found.types_for("two")] == ["z"]
    assert [one.name for one in found.types_for("three")] == ["a", "z"]
    assert found.priced_at == AT


def test_a_reservation_is_kept() -> None:
    sold = SOLD | {
        "capacityType": "reserved",
        "price": 0.0,
        "reservationId": "cr-1",
        "reservationCapacity": 3,
        "available": False,
    }
    [one] = decode_catalogue(of_type(offerings=[sold])).instance_types
    assert one.offerings == (
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
        document()[:-1],
        document()[: len(document()) // 2],
        b"{}",
        b"[]",
        b'{"region": "r"}',
        document(region=""),
        document(instanceTypes=[]),
        document(instanceTypes=[], nodeClasses={"one": []}),
        document(instanceTypes=None),
        document(instanceTypes=[SMALL, SMALL]),
        of_type(capacity={"cpu": "two"}),
        of_type(overhead={"cpu": "-1"}),
        of_type(offerings=[SOLD | {"price": -0.1}]),
        of_type(offerings=[SOLD | {"zone": ""}]),
        of_type(offerings=[SOLD | {"capacityType": ""}]),
        of_type(offerings=[{"zone": "a"}]),
        of_type(labels=None),
        document(instanceTypes=[{"name": "m5.large"}]),
        document(nodeClasses={"one": [SMALL | {"capacity": None}]}),
    ],
)
def test_what_is_not_whole_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        decode_catalogue(body)


def test_types_by_node_class_alone_are_a_catalogue() -> None:
    assert decode_catalogue(document(instanceTypes=[], nodeClasses={"one": [SMALL]})).by_node_class[0][0] == "one"


def test_order_does_not_change_the_bytes() -> None:
    def made(*names: str) -> Catalogue:
        some = tuple(
            InstanceType(
                name=name,
                requirements=requirements(
                    [Requirement(key=key, values=frozenset(names)) for key in ("b", "a") if names]
                ),
                capacity=resources({"cpu": 1}),
                overhead=resources({}),
            )
            for name in names
        )
        return Catalogue(region="r", instance_types=some)

    assert encode_catalogue(made("x", "y", "z")) == encode_catalogue(made("z", "y", "x"))


def test_a_catalogue_is_kept_under_the_time_of_its_prices() -> None:
    catalogue = Catalogue(region="r", instance_types=(), priced_at=AT)
    assert key_of(catalogue) == "catalogue/20261121T080005Z.json.gz"
    bucket = MemoryBucket()
    for key in (key_of(catalogue), "catalogue/20261121T080004Z.json", "catalogue/later.json", "journal/z"):
        bucket.put(key, b"")
    assert catalogue_keys(bucket) == ("catalogue/20261121T080004Z.json", key_of(catalogue))


class Counted(MemoryBucket):
    """A bucket that knows how often it was listed."""

    listed = 0

    def keys(self, prefix: str) -> tuple[str, ...]:
        self.listed += 1
        return super().keys(prefix)


def test_the_newest_catalogue_is_found_without_a_list_and_the_others_by_one() -> None:
    bucket = Counted()
    older, newer = (Catalogue(region="r", instance_types=(), priced_at=AT + timedelta(hours=n)) for n in (0, 1))
    keep(older, bucket)
    keep(newer, bucket)
    every = newest_keys(bucket)
    assert (next(every), bucket.listed) == (key_of(newer), 0)
    assert (list(every), bucket.listed) == ([key_of(older)], 1)


@pytest.mark.parametrize("written", [None, b"", b"catalogue/newest", b"\xff", b"journal/z"])
def test_where_it_is_not_written_down_which_is_newest_the_list_says(written: bytes | None) -> None:
    bucket = Counted()
    bucket.put(key_of(Catalogue(region="r", instance_types=(), priced_at=AT)), b"")
    if written is not None:
        bucket.put(NEWEST, written)
    assert list(newest_keys(bucket)) == ["catalogue/20261121T080005Z.json.gz"]


def test_a_catalogue_without_a_time_is_not_kept() -> None:
    with pytest.raises(ValueError, match="time at which it was made"):
        key_of(Catalogue(region="r", instance_types=()))


def test_an_empty_type_has_no_zone() -> None:
    [one] = decode_catalogue(of_type(offerings=[])).instance_types
    assert isinstance(one.requirements, Requirements)
    assert one.requirements[ZONE].operator == "DoesNotExist"


def test_what_is_compressed_is_read_as_what_is_not() -> None:
    body = encode_catalogue(decode_catalogue(document()))
    assert packed(body) == packed(body)
    assert unpacked(packed(body)) == unpacked(body) == body
    assert decode_catalogue(packed(body)) == decode_catalogue(body)


@pytest.mark.parametrize("body", [packed(document())[:-1], b"\x1f\x8b", b"\x1f\x8bnonsense", packed(document())[:20]])
def test_what_is_compressed_and_not_whole_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="not whole"):
        decode_catalogue(body)


def test_what_would_fill_the_memory_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.snapshot.catalogue._LARGEST", 1000)
    with pytest.raises(ValueError, match="far too large"):
        unpacked(packed(b" " * 1001))


def test_a_catalogue_made_of_old_prices_lies_under_the_time_at_which_it_was_made() -> None:
    later = datetime(2026, 11, 21, 9, tzinfo=UTC)
    assert key_of(Catalogue(region="r", instance_types=(), priced_at=AT, made_at=later)).endswith("T090000Z.json.gz")


def test_the_catalogue_says_which_prices_are_estimated() -> None:
    old = SOLD | {"capacityType": "on-demand", "estimated": True}
    body = document(nodeClasses={"one": [SMALL | {"offerings": [SOLD, old]}]})
    assert decode_catalogue(body).estimated() == ("on-demand",)
    assert decode_catalogue(document()).estimated() == ()
