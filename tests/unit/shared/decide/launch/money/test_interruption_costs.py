"""The expected cost of interruptions in the prices of spot offerings."""

from datetime import timedelta
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.launch.money.interruption_costs import estimate_interruption_cost, price_interruptions
from shared.decide.launch.money.limit_prices import LimitPrices
from shared.model.cloud_provider.instance_type import Offering
from shared.model.cloud_provider.offering_history import OfferingHistory, OfferingRecord
from shared.model.cluster import ClusterSnapshot
from shared.model.karpenter.money_limit import MoneyPolicy
from tests.support.launch_cases import NOW, make_claim, make_cluster

COUNTS = st.floats(0, 50)


def make_record(capacity_type: str = "spot", **counts: float) -> OfferingRecord:
    return OfferingRecord(instance_type="m5.large", zone="us-east-1a", capacity_type=capacity_type, at=NOW, **counts)


def list_offerings(cluster: ClusterSnapshot) -> dict[tuple[str, str, str], Offering]:
    assert cluster.catalog is not None
    return {
        (kind.name, offering.zone, offering.capacity_type): offering
        for kind in cluster.catalog.get_instance_types("default")
        for offering in kind.offerings
    }


def price_with(*records: OfferingRecord) -> ClusterSnapshot:
    return price_interruptions(make_cluster(make_claim("a"), offering_history=OfferingHistory(records=records)))


@pytest.mark.parametrize("history", [None, OfferingHistory(), OfferingHistory(records=(make_record("on-demand"),))])
def test_prices_are_unchanged_without_interruptions(history: OfferingHistory | None) -> None:
    cluster = make_cluster(make_claim("a"), offering_history=history)
    assert price_interruptions(cluster) is cluster


def test_capacity_errors_alone_change_no_price() -> None:
    assert list_offerings(price_with(make_record(capacity_errors=9.0))) == list_offerings(make_cluster())


def test_surcharge_is_the_expected_evictions_and_relaunches_of_one_hour() -> None:
    """One interruption within a day, with evictions for $1, of an offering at $0.03/h."""
    prices, plain = (
        list_offerings(price_with(make_record(interruptions=1.0, evictions_usd=1.0))),
        list_offerings(make_cluster()),
    )
    key = ("m5.large", "us-east-1a", "spot")
    surcharge = log(2) / 24 * (1.0 + 0.03 * 3 / 60)
    assert prices[key].interruption_usd_per_hour == pytest.approx(surcharge)
    assert prices[key].price_usd_per_hour == pytest.approx(0.03 + surcharge)
    assert prices[key].billed_usd_per_hour == pytest.approx(0.03)
    assert {other: prices[other] for other in prices if other != key} == {
        other: plain[other] for other in plain if other != key
    }


def test_surcharge_is_added_once() -> None:
    once = price_with(make_record(interruptions=1.0, evictions_usd=1.0))
    assert list_offerings(price_interruptions(once)) == list_offerings(once)


def test_surcharge_does_not_count_against_limits_in_usd_per_hour() -> None:
    policy = MoneyPolicy(cluster_limit=10_000_000)
    priced, plain = price_with(make_record(interruptions=5.0, evictions_usd=9.0)), make_cluster(make_claim("a"))
    for cluster in (priced, plain):
        assert cluster.catalog is not None
    amounts = [
        LimitPrices(cluster, policy).get_price(kind, offering, "default")
        for cluster in (priced, plain)
        for kind in cluster.catalog.get_instance_types("default")  # type: ignore[union-attr]  # checked above
        for offering in kind.offerings
    ]
    assert amounts[: len(amounts) // 2] == amounts[len(amounts) // 2 :]


@given(COUNTS, COUNTS, COUNTS, st.floats(0, 10), st.integers(0, 10_000))
def test_surcharge_grows_with_interruptions_and_falls_with_time(
    interruptions: float, added: float, evictions_usd: float, price: float, minutes: int
) -> None:
    record = make_record(interruptions=interruptions, evictions_usd=evictions_usd)
    cost = estimate_interruption_cost(record, price, NOW)
    riskier = replace(record, interruptions=interruptions + added)
    assert 0 <= cost <= estimate_interruption_cost(riskier, price, NOW)
    assert estimate_interruption_cost(record, price, NOW + timedelta(minutes=minutes)) <= cost
