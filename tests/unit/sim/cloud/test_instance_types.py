"""The catalogue's data, and the zones."""

import pytest

from sim.cloud.catalog.instance_types import build_zone_id, load_instance_types, load_types_by_zone
from sim.cloud.cloud import Cloud
from sim.time.virtual_clock import Clock


@pytest.mark.parametrize(
    ("region", "ordinal", "expected"),
    [
        ("us-east-1", 1, "use1-az1"),
        ("ap-southeast-2", 3, "apse2-az3"),
        ("eu-central-1", 2, "euc1-az2"),
        ("us-gov-west-1", 1, "usgw1-az1"),
    ],
)
def test_zone_id_abbreviates_region_and_number(region: str, ordinal: int, expected: str) -> None:
    assert build_zone_id(region, ordinal) == expected


def test_instance_types_are_loaded_once() -> None:
    assert load_instance_types() is load_instance_types()


def test_mac_instance_types_are_excluded() -> None:
    assert not [name for name in load_instance_types() if name.startswith("mac")]


def test_zone_offerings_contain_only_known_instance_types() -> None:
    assert all(names <= load_instance_types().keys() for names in load_types_by_zone("us-east-1").values())


def test_region_without_data_is_rejected() -> None:
    with pytest.raises(FileNotFoundError):
        load_types_by_zone("mars-north-1")


def test_number_of_zones_is_limited_by_the_region() -> None:
    assert len(Cloud(Clock(), zones=6).zones) == 6
    with pytest.raises(ValueError, match="us-east-1 has 6 zones"):
        Cloud(Clock(), zones=7)


def test_other_region_has_its_own_zones_and_offerings() -> None:
    cloud = Cloud(Clock(), region="eu-west-1", zones=2)
    assert cloud.zones == ("eu-west-1a", "eu-west-1b")
    assert {zone for _, zone in cloud.offerings} == set(cloud.zones)
