"""What is on sale: asked for where it has grown old, kept with its day, never guessed."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from shared.errors import Fault, Unreachable
from shared.model.labels import ON_DEMAND, SPOT
from shared.ports import World
from shared.snapshot.shop import LASTS, PriceList, market_key, price_list_key, shop
from sim.clock import Clock
from sim.cloud.cloud import Cloud
from sim.cloud.ports import CloudEc2, CloudPrices
from tests.unit.snapshot_world import NOW, world

HOUR = timedelta(hours=1)


class Counting:
    """The cloud's ports, counted, and deaf where they are told to be."""

    def __init__(self, some: World) -> None:
        """Hear everything."""
        self.asked: list[str] = []
        self.deaf: set[str] = set()
        self._world = some

    def __getattr__(self, name: str) -> Callable[..., object]:
        whole = self._world.prices if name == "on_demand" else self._world.ec2

        def ask(*arguments: object) -> object:
            self.asked.append(name)
            if name in self.deaf:
                raise Unreachable(f"{name}: deaf")
            answered: object = getattr(whole, name)(*arguments)
            return answered

        return ask


@pytest.fixture
def cloud() -> tuple[World, Counting]:
    model = Cloud(Clock())
    some = msgspec.structs.replace(world(), ec2=CloudEc2(model), prices=CloudPrices(model))
    counting = Counting(some)
    return msgspec.structs.replace(some, ec2=counting, prices=counting), counting


def at(some: World, when: datetime) -> World:
    return msgspec.structs.replace(some, clock=lambda: when)


ALL = ["instance_types", "offerings", "on_demand", "spot_prices"]


def test_everything_is_asked_for_once_and_kept(cloud: tuple[World, Counting]) -> None:
    some, counting = cloud
    first = shop(some)
    assert counting.asked == ALL
    assert shop(some) == first
    assert counting.asked == ALL
    assert first.market.priced_at == NOW
    assert first.market.estimated == frozenset()
    assert first.problems == ()
    assert first.infos
    assert first.market.spot
    assert len(some.bucket.get(market_key("us-east-1"))) < 400_000


@pytest.mark.parametrize(
    ("passed", "asked"), [(timedelta(minutes=31), ["spot_prices"]), (12 * HOUR, ALL), (11 * HOUR, ["spot_prices"])]
)
def test_what_has_grown_old_is_asked_for_again(
    cloud: tuple[World, Counting], passed: timedelta, asked: list[str]
) -> None:
    some, counting = cloud
    shop(some)
    counting.asked.clear()
    later = shop(at(some, NOW + passed))
    assert counting.asked == asked
    assert later.counts["SpotPriceAgeSeconds"] == 0
    assert later.counts["OnDemandPriceAgeSeconds"] == (0 if "on_demand" in asked else passed.total_seconds())
    assert later.market.priced_at == (NOW + passed if "on_demand" in asked else NOW)


def test_an_answer_from_the_future_is_not_believed(cloud: tuple[World, Counting]) -> None:
    some, counting = cloud
    shop(at(some, NOW + HOUR))
    counting.asked.clear()
    shop(some)
    assert counting.asked == ALL


@pytest.mark.parametrize(("call", "late"), [("on_demand", ON_DEMAND), ("spot_prices", SPOT), ("offerings", "")])
def test_what_is_not_answered_is_that_of_an_earlier_day_and_said_to_be(
    cloud: tuple[World, Counting], call: str, late: str
) -> None:
    some, counting = cloud
    first = shop(some)
    counting.deaf.add(call)
    then = shop(at(some, NOW + 13 * HOUR))
    assert (then.market.on_demand, then.market.offerings) == (first.market.on_demand, first.market.offerings)
    assert then.market.estimated == (frozenset((late,)) if late else frozenset())
    assert then.market.priced_at == (NOW if late else NOW + 13 * HOUR)
    [problem] = then.problems
    assert "2026-11-21 08:00 UTC is used" in problem.message


@pytest.mark.parametrize("calls", [("instance_types",), ("offerings",), ("on_demand", "spot_prices")])
def test_what_was_never_answered_makes_no_catalogue(cloud: tuple[World, Counting], calls: tuple[str, ...]) -> None:
    some, counting = cloud
    counting.deaf.update(calls)
    with pytest.raises(Fault, match="deaf"):
        shop(some)


def test_without_any_on_demand_price_nothing_is_sold_on_demand_and_no_price_is_made_up(
    cloud: tuple[World, Counting],
) -> None:
    some, counting = cloud
    counting.deaf.add("on_demand")
    found = shop(some)
    assert found.market.on_demand == {}
    assert found.counts["UnpricedInstanceTypes"] > 1000
    assert "OnDemandPriceAgeSeconds" not in found.counts
    [problem] = found.problems
    assert problem.message == "could not be asked for: Unreachable: on_demand: deaf; there are none to use instead"
    counting.deaf.clear()
    assert shop(some).counts["UnpricedInstanceTypes"] == 0


def test_without_spot_prices_nothing_is_sold_on_the_spot_market(cloud: tuple[World, Counting]) -> None:
    some, counting = cloud
    counting.deaf.add("spot_prices")
    found = shop(some)
    assert found.market.spot == ()
    assert "none to use instead" in found.problems[0].message


def listed(days: int, prices: Mapping[str, float]) -> bytes:
    some = PriceList(region="us-east-1", priced_at=NOW - timedelta(days=days), on_demand=dict(prices))
    return msgspec.json.encode(some)


def test_a_price_list_that_was_laid_there_is_used_with_its_own_day(cloud: tuple[World, Counting]) -> None:
    some, counting = cloud
    some.bucket.put(price_list_key("us-east-1"), listed(9, {"m5.large": 0.1}))
    counting.deaf.add("on_demand")
    found = shop(some)
    assert found.market.on_demand == {"m5.large": 0.1}
    assert found.market.priced_at == NOW - timedelta(days=9)
    assert found.market.estimated == {ON_DEMAND}


def test_of_two_old_price_lists_the_newer_counts(cloud: tuple[World, Counting]) -> None:
    some, counting = cloud
    first = shop(some)
    some.bucket.put(price_list_key("us-east-1"), listed(9, {"m5.large": 0.1}))
    counting.deaf.add("on_demand")
    assert shop(at(some, NOW + 13 * HOUR)).market.on_demand == first.market.on_demand


def shipped(some: World, body: bytes | OSError) -> World:
    def read(name: str) -> bytes:
        assert name == "prices.json"
        if isinstance(body, OSError):
            raise body
        return body

    settings = msgspec.structs.replace(some.settings, price_list="prices.json")
    return msgspec.structs.replace(some, settings=settings, packaged=read)


def test_a_price_list_that_was_shipped_is_used_unless_there_is_a_newer_one(cloud: tuple[World, Counting]) -> None:
    some, counting = cloud
    counting.deaf.add("on_demand")
    with_list = shipped(some, listed(30, {"m5.large": 0.2}))
    found = shop(with_list)
    assert found.market.on_demand == {"m5.large": 0.2}
    assert found.market.estimated == {ON_DEMAND}
    assert found.counts["OnDemandPriceAgeSeconds"] == timedelta(days=30).total_seconds()
    some.bucket.put(price_list_key("us-east-1"), listed(9, {"m5.large": 0.1}))
    assert shop(with_list).market.on_demand == {"m5.large": 0.1}


def test_nobody_reads_the_list_that_was_shipped_while_prices_are_answered(cloud: tuple[World, Counting]) -> None:
    some, _ = cloud
    assert shop(shipped(some, FileNotFoundError("prices.json"))).problems == ()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (FileNotFoundError("prices.json"), "FileNotFoundError"),
        (b"[]", "ValidationError"),
        (
            msgspec.json.encode(PriceList(region="eu-west-1", priced_at=NOW, on_demand={"m5.large": 0.1})),
            "has the prices of eu-west-1, not of us-east-1",
        ),
    ],
)
def test_a_list_that_was_shipped_and_cannot_be_used_is_told(
    cloud: tuple[World, Counting], body: bytes | OSError, why: str
) -> None:
    some, counting = cloud
    counting.deaf.add("on_demand")
    found = shop(shipped(some, body))
    assert found.market.on_demand == {}
    assert why in found.problems[0].message
    assert found.problems[0].name == "prices.json"


@pytest.mark.parametrize("body", [b"", b"{", b"\x1f\x8bnonsense", b'{"types": 1}'])
def test_what_was_kept_and_cannot_be_read_is_named_and_asked_for_again(
    cloud: tuple[World, Counting], body: bytes
) -> None:
    some, counting = cloud
    some.bucket.put(market_key("us-east-1"), body)
    found = shop(some)
    assert counting.asked == ALL
    assert [one.name for one in found.problems] == [market_key("us-east-1")]


def test_prices_are_asked_for_more_often_than_types() -> None:
    assert LASTS["spot"] < LASTS["on_demand"] <= LASTS["types"]
    assert datetime(2026, 11, 21, 8, tzinfo=UTC) == NOW
