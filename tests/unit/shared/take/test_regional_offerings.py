"""Tests of regional offerings: stale parts are requested again, stored with their date, and never guessed."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from shared.errors import Fault, Unreachable
from shared.model.core.labels import ON_DEMAND, SPOT
from shared.ports.world import World
from shared.take.regional_offerings import (
    PART_TTL,
    PriceListFile,
    build_market_key,
    build_price_list_key,
    load_regional_catalog,
)
from sim.cloud.cloud import Cloud
from sim.cloud.in_process_aws import CloudEc2, CloudPricing
from sim.time.virtual_clock import Clock
from tests.support.snapshot_world import NOW, make_world

ONE_HOUR = timedelta(hours=1)


class Counting:
    """The cloud's ports: every call is recorded, and the calls in *failing_calls* raise Unreachable."""

    def __init__(self, base_world: World) -> None:
        """Start without failing calls."""
        self.calls: list[str] = []
        self.failing_calls: set[str] = set()
        self._world = base_world

    def __getattr__(self, name: str) -> Callable[..., object]:
        port = self._world.prices if name == "get_on_demand_prices" else self._world.ec2

        def ask(*arguments: object) -> object:
            self.calls.append(name)
            if name in self.failing_calls:
                raise Unreachable(f"{name}: deaf")
            result: object = getattr(port, name)(*arguments)
            return result

        return ask


@pytest.fixture
def cloud() -> tuple[World, Counting]:
    model = Cloud(Clock())
    base_world = msgspec.structs.replace(make_world(), ec2=CloudEc2(model), prices=CloudPricing(model))
    counting = Counting(base_world)
    return msgspec.structs.replace(base_world, ec2=counting, prices=counting), counting


def with_time(base_world: World, when: datetime) -> World:
    return msgspec.structs.replace(base_world, clock=lambda: when)


ALL_CALLS = ["describe_instance_types", "describe_offerings", "get_on_demand_prices", "describe_spot_prices"]


def test_market_data_is_requested_once_and_stored(cloud: tuple[World, Counting]) -> None:
    cloud_world, counting = cloud
    first = load_regional_catalog(cloud_world)
    assert counting.calls == ALL_CALLS
    assert load_regional_catalog(cloud_world) == first
    assert counting.calls == ALL_CALLS
    assert first.market.priced_at == NOW
    assert first.market.estimated_capacity_types == frozenset()
    assert first.problems == ()
    assert first.infos
    assert first.market.spot
    assert len(cloud_world.bucket.get(build_market_key("us-east-1"))) < 400_000


@pytest.mark.parametrize(
    ("passed", "expected_calls"),
    [
        (timedelta(minutes=31), ["describe_spot_prices"]),
        (12 * ONE_HOUR, ALL_CALLS),
        (11 * ONE_HOUR, ["describe_spot_prices"]),
    ],
)
def test_stale_market_data_is_requested_again(
    cloud: tuple[World, Counting], passed: timedelta, expected_calls: list[str]
) -> None:
    cloud_world, counting = cloud
    load_regional_catalog(cloud_world)
    counting.calls.clear()
    later = load_regional_catalog(with_time(cloud_world, NOW + passed))
    assert counting.calls == expected_calls
    assert later.counts["SpotPriceAgeSeconds"] == 0
    assert later.counts["OnDemandPriceAgeSeconds"] == (
        0 if "get_on_demand_prices" in expected_calls else passed.total_seconds()
    )
    assert later.market.priced_at == (NOW + passed if "get_on_demand_prices" in expected_calls else NOW)


def test_market_data_from_the_future_is_requested_again(cloud: tuple[World, Counting]) -> None:
    cloud_world, counting = cloud
    load_regional_catalog(with_time(cloud_world, NOW + ONE_HOUR))
    counting.calls.clear()
    load_regional_catalog(cloud_world)
    assert counting.calls == ALL_CALLS


@pytest.mark.parametrize(
    ("call", "late"), [("get_on_demand_prices", ON_DEMAND), ("describe_spot_prices", SPOT), ("describe_offerings", "")]
)
def test_failed_request_uses_stored_market_data_and_reports_its_date(
    cloud: tuple[World, Counting], call: str, late: str
) -> None:
    cloud_world, counting = cloud
    first = load_regional_catalog(cloud_world)
    counting.failing_calls.add(call)
    second = load_regional_catalog(with_time(cloud_world, NOW + 13 * ONE_HOUR))
    assert (second.market.on_demand, second.market.offerings) == (first.market.on_demand, first.market.offerings)
    assert second.market.estimated_capacity_types == (frozenset((late,)) if late else frozenset())
    assert second.market.priced_at == (NOW if late else NOW + 13 * ONE_HOUR)
    [problem] = second.problems
    assert "2026-11-21 08:00 UTC is used" in problem.message


@pytest.mark.parametrize(
    "calls", [("describe_instance_types",), ("describe_offerings",), ("get_on_demand_prices", "describe_spot_prices")]
)
def test_missing_market_data_without_a_stored_copy_raises_a_fault(
    cloud: tuple[World, Counting], calls: tuple[str, ...]
) -> None:
    cloud_world, counting = cloud
    counting.failing_calls.update(calls)
    with pytest.raises(Fault, match="deaf"):
        load_regional_catalog(cloud_world)


def test_missing_on_demand_prices_leave_on_demand_offerings_unpriced(
    cloud: tuple[World, Counting],
) -> None:
    cloud_world, counting = cloud
    counting.failing_calls.add("get_on_demand_prices")
    catalog = load_regional_catalog(cloud_world)
    assert catalog.market.on_demand == {}
    assert catalog.counts["UnpricedInstanceTypes"] > 1000
    assert "OnDemandPriceAgeSeconds" not in catalog.counts
    [problem] = catalog.problems
    assert problem.message == "could not be read: Unreachable: get_on_demand_prices: deaf; there is no earlier response"
    counting.failing_calls.clear()
    assert load_regional_catalog(cloud_world).counts["UnpricedInstanceTypes"] == 0


def test_missing_spot_prices_remove_all_spot_offerings(cloud: tuple[World, Counting]) -> None:
    cloud_world, counting = cloud
    counting.failing_calls.add("describe_spot_prices")
    catalog = load_regional_catalog(cloud_world)
    assert catalog.market.spot == ()
    assert "no earlier response" in catalog.problems[0].message


def encode_price_list(days: int, prices: Mapping[str, float]) -> bytes:
    price_list = PriceListFile(region="us-east-1", priced_at=NOW - timedelta(days=days), on_demand=dict(prices))
    return msgspec.json.encode(price_list)


def test_price_list_in_the_bucket_is_used_with_its_own_date(cloud: tuple[World, Counting]) -> None:
    cloud_world, counting = cloud
    cloud_world.bucket.put(build_price_list_key("us-east-1"), encode_price_list(9, {"m5.large": 0.1}))
    counting.failing_calls.add("get_on_demand_prices")
    catalog = load_regional_catalog(cloud_world)
    assert catalog.market.on_demand == {"m5.large": 0.1}
    assert catalog.market.priced_at == NOW - timedelta(days=9)
    assert catalog.market.estimated_capacity_types == {ON_DEMAND}


def test_newer_of_two_old_price_lists_is_used(cloud: tuple[World, Counting]) -> None:
    cloud_world, counting = cloud
    first = load_regional_catalog(cloud_world)
    cloud_world.bucket.put(build_price_list_key("us-east-1"), encode_price_list(9, {"m5.large": 0.1}))
    counting.failing_calls.add("get_on_demand_prices")
    assert load_regional_catalog(with_time(cloud_world, NOW + 13 * ONE_HOUR)).market.on_demand == first.market.on_demand


def with_packaged_price_list(base_world: World, body: bytes | OSError) -> World:
    def read(name: str) -> bytes:
        assert name == "prices.json"
        if isinstance(body, OSError):
            raise body
        return body

    settings = msgspec.structs.replace(base_world.settings, price_list="prices.json")
    return msgspec.structs.replace(base_world, settings=settings, read_packaged_file=read)


def test_packaged_price_list_is_used_unless_the_bucket_has_a_newer_one(cloud: tuple[World, Counting]) -> None:
    cloud_world, counting = cloud
    counting.failing_calls.add("get_on_demand_prices")
    with_list = with_packaged_price_list(cloud_world, encode_price_list(30, {"m5.large": 0.2}))
    catalog = load_regional_catalog(with_list)
    assert catalog.market.on_demand == {"m5.large": 0.2}
    assert catalog.market.estimated_capacity_types == {ON_DEMAND}
    assert catalog.counts["OnDemandPriceAgeSeconds"] == timedelta(days=30).total_seconds()
    cloud_world.bucket.put(build_price_list_key("us-east-1"), encode_price_list(9, {"m5.large": 0.1}))
    assert load_regional_catalog(with_list).market.on_demand == {"m5.large": 0.1}


def test_packaged_price_list_is_not_read_while_the_pricing_api_responds(cloud: tuple[World, Counting]) -> None:
    cloud_world, _ = cloud
    assert load_regional_catalog(with_packaged_price_list(cloud_world, FileNotFoundError("prices.json"))).problems == ()


@pytest.mark.parametrize(
    ("body", "expected_text"),
    [
        (FileNotFoundError("prices.json"), "FileNotFoundError"),
        (b"[]", "ValidationError"),
        (
            msgspec.json.encode(PriceListFile(region="eu-west-1", priced_at=NOW, on_demand={"m5.large": 0.1})),
            "has the prices of eu-west-1, not of us-east-1",
        ),
    ],
)
def test_unusable_packaged_price_list_is_reported(
    cloud: tuple[World, Counting], body: bytes | OSError, expected_text: str
) -> None:
    cloud_world, counting = cloud
    counting.failing_calls.add("get_on_demand_prices")
    catalog = load_regional_catalog(with_packaged_price_list(cloud_world, body))
    assert catalog.market.on_demand == {}
    assert expected_text in catalog.problems[0].message
    assert catalog.problems[0].name == "prices.json"


@pytest.mark.parametrize("body", [b"", b"{", b"\x1f\x8bnonsense", b'{"types": 1}'])
def test_unreadable_stored_market_data_is_reported_and_requested_again(
    cloud: tuple[World, Counting], body: bytes
) -> None:
    cloud_world, counting = cloud
    cloud_world.bucket.put(build_market_key("us-east-1"), body)
    catalog = load_regional_catalog(cloud_world)
    assert counting.calls == ALL_CALLS
    assert [problem.name for problem in catalog.problems] == [build_market_key("us-east-1")]


def test_spot_prices_are_refreshed_more_often_than_instance_types() -> None:
    assert PART_TTL["spot"] < PART_TTL["on_demand"] <= PART_TTL["types"]
    assert datetime(2026, 11, 21, 8, tzinfo=UTC) == NOW
