"""Limits in USD per hour in the ledger: what a launch reserves, and what launches without a reservation count."""

from typing import Any

import msgspec
import pytest

from shared.decide.launch.fleets.launch_limits import RESERVATION_TTL
from shared.decide.launch.fleets.launch_planning import LaunchPolicy
from shared.model.cloud_provider.limit_reservation import LimitReservation, LimitReservations
from shared.model.core.labels import LIMIT_USD
from shared.model.core.metadata import ObjectMeta
from shared.model.core.resources import USD_PER_HOUR, parse_resources
from shared.model.karpenter.money_limit import CLUSTER_SCOPE, LimitPriceKind, MoneyPolicy, convert_to_micro_usd
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.karpenter.node_pool import NodePool
from tests.support.actions_world import Outside
from tests.support.launch_cases import NOW, make_claim, make_cluster, write_limit_reservations
from tests.support.snapshot_decisions import plan_launches

VOLUME = 20 * 0.08 / 730
SPOT, LIST = 0.4 * 0.2 + VOLUME, 0.2 + VOLUME
"""Of m5.xlarge, the most expensive instance type of a request for 3 vCPUs."""


def make_pool(limit: str = "", **fields: Any) -> NodePool:
    annotations = ((LIMIT_USD, limit),) if limit else ()
    return NodePool(
        meta=ObjectMeta(name="default", annotations=annotations), node_class=NodeClassRef(name="default"), **fields
    )


def make_claims(count: int) -> list[NodeClaim]:
    return [make_claim(f"claim-{number}", cpu="3") for number in range(count)]


def make_policy(limit: float | None, prices: LimitPriceKind = "marginal", **fields: Any) -> LaunchPolicy:
    cluster_limit = None if limit is None else convert_to_micro_usd(limit)
    return LaunchPolicy(money=MoneyPolicy(cluster_limit=cluster_limit, prices=prices), **fields)


@pytest.mark.parametrize(
    ("prices", "limit", "count"),
    [
        ("marginal", 3 * SPOT + 0.001, 3),
        ("marginal", 3 * SPOT - 0.001, 2),
        ("list", 3 * LIST + 0.001, 3),
        ("list", 3 * SPOT, 1),
    ],
)
def test_launches_stay_within_the_limit_of_the_cluster(prices: LimitPriceKind, limit: float, count: int) -> None:
    plan = plan_launches(make_cluster(*make_claims(4), node_pools=(make_pool(),)), make_policy(limit, prices))
    assert sum(len(launch.group.claims) for launch in plan.launches) == count
    (row,) = plan.limit_reservations
    price = SPOT if prices == "marginal" else LIST
    assert row.pool == CLUSTER_SCOPE
    assert row.holds[0].max_capacity_per_claim[USD_PER_HOUR] == pytest.approx(convert_to_micro_usd(price), abs=2)


def test_refused_launch_names_the_amounts_and_the_fix() -> None:
    plan = plan_launches(make_cluster(*make_claims(2), node_pools=(make_pool("0.1"),)), make_policy(5.0))
    (unlaunchable,) = plan.unlaunchable
    assert unlaunchable.message == (
        "NodePool default would exceed its limit of $0.1000/h: a node costs up to $0.0822/h, $0.1000/h is left; "
        "to fix: increase joiner.dev/limit-usd-per-hour"
    )
    assert [row.pool for row in plan.limit_reservations] == [CLUSTER_SCOPE, "default"]


def test_launch_that_was_reserved_before_the_limit_existed_counts() -> None:
    claims = make_claims(1)
    (launch,) = plan_launches(make_cluster(*claims, node_pools=(make_pool(),))).launches
    second_claim = make_claim("second", cpu="3")
    cluster = make_cluster(*claims, second_claim, node_pools=(make_pool(),), launch_groups=(launch.group,))
    policy = make_policy(2 * SPOT - 0.001, limit_reservations=(LimitReservations(pool=CLUSTER_SCOPE),))
    plan = plan_launches(cluster, policy)
    assert [unlaunchable.claim.name for unlaunchable in plan.unlaunchable] == ["second"]


def test_reservation_without_a_price_counts_with_the_price_of_its_request() -> None:
    claims = make_claims(1)
    (launch,) = plan_launches(make_cluster(*claims, node_pools=(make_pool(),))).launches
    hold = LimitReservation(
        group=launch.group.name,
        claims=launch.group.claims,
        max_capacity_per_claim=parse_resources({"cpu": "4"}),
        until=NOW + RESERVATION_TTL,
    )
    pool = make_pool(f"{2 * SPOT - 0.001:.6f}")
    second_claim = make_claim("second", cpu="3")
    cluster = make_cluster(*claims, second_claim, node_pools=(pool,), launch_groups=(launch.group,))
    rows = (LimitReservations(pool="default", holds=(hold,)),)
    plan = plan_launches(cluster, make_policy(None, limit_reservations=rows))
    assert [unlaunchable.claim.name for unlaunchable in plan.unlaunchable] == ["second"]


def test_launch_that_loses_the_race_for_the_limit_of_the_cluster_is_not_sent() -> None:
    outside = Outside(limit_usd_per_hour=5.0)
    cluster = make_cluster(*make_claims(1), node_pools=(make_pool(),))
    plan = plan_launches(cluster, make_policy(5.0))
    assert len(write_limit_reservations(plan, cluster, outside.build_world("first"), None).launches) == 1
    assert write_limit_reservations(plan, cluster, outside.build_world("second"), None).launches == ()


def test_claims_of_a_static_node_pool_wait_for_the_limit_of_the_cluster() -> None:
    cluster = make_cluster(*make_claims(1), node_pools=(make_pool(replicas=1),))
    assert [unlaunchable.final for unlaunchable in plan_launches(cluster, make_policy(0.01)).unlaunchable] == [False]
    dynamic = msgspec.structs.replace(cluster, node_pools=(make_pool(),))
    assert [unlaunchable.final for unlaunchable in plan_launches(dynamic, make_policy(0.01)).unlaunchable] == [True]


def test_requests_and_rows_without_limits_in_usd_are_unchanged() -> None:
    claims = make_claims(2)
    plain = plan_launches(make_cluster(*claims, node_pools=(make_pool(),)))
    assert plain.limit_reservations == ()
    limited = plan_launches(make_cluster(*claims, node_pools=(make_pool("9"),)), make_policy(9.0))
    assert [launch.group for launch in limited.launches] == [launch.group for launch in plain.launches]
