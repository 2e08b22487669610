"""Limits in USD per hour and the monthly budget in a simulated account."""

from typing import Any

import msgspec

from shared.model.core.labels import LIMIT_USD
from shared.report.costs.cost_ledger import CostLedger
from shared.report.costs.ledger_store import LEDGER_KEY, read_ledger
from shared.report.costs.month_costs import ROW_KIND as COSTS_KIND
from shared.report.costs.node_lifetimes import NodeLifetime
from shared.store.limits.limit_reservations import ROW_KIND as LEDGER_KIND
from sim.fault_tap import PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool

USD_PER_NODE = 0.192 + 20 * 0.08 / 730
"""An m5.xlarge on demand in us-east-1, with 20 GiB of gp3."""


def make_limited_pool(usd_per_hour: float, **fields: Any) -> dict[str, Any]:
    pool = make_node_pool(**fields)
    pool["metadata"]["annotations"] = {LIMIT_USD: str(usd_per_hour)}
    return pool


def test_node_pool_grows_up_to_its_limit_in_usd_and_further_when_it_is_raised() -> None:
    world = World(make_node_class(), make_limited_pool(2.5 * USD_PER_NODE), make_deployment(16))
    world.advance_seconds(240)
    assert len(world.list_active_instances()) == 2
    events = world.list_events(reason="FailedScheduling")
    assert any("is left of its limit of" in event and LIMIT_USD in event for event in events)
    world.store("nodepools.karpenter.sh", "default", {"metadata": {"annotations": {LIMIT_USD: "5"}}})
    world.wait_until_settled(16)
    assert not world.list_errors()


def test_cluster_limit_holds_over_all_node_pools() -> None:
    settings = ACTIVE_SETTINGS | {"limit-usd-per-hour": f"{3.5 * USD_PER_NODE:.4f}"}
    world = World(
        make_node_class(),
        make_node_pool("first", weight=10, limits={"nodes": "2"}),
        make_node_pool("second"),
        make_deployment(30),
        template=synthesize_template(settings=settings),
    )
    world.advance_seconds(300)
    assert len(world.list_active_instances()) == 3
    assert not world.list_errors()


def test_used_up_budget_launches_nothing_and_terminates_nothing() -> None:
    template = synthesize_template(settings=ACTIVE_SETTINGS | {"monthly-budget-usd": "100"})
    world = World(make_node_class(), make_node_pool(), make_deployment(4), template=template)
    world.wait_until_settled(4)
    launched = list(world.launched)
    spend(world, 150.0)
    world.advance_seconds(330)
    world.scale(20)
    world.advance_seconds(120)
    assert world.launched == launched
    assert len(world.list_running_pods()) >= 4
    assert any("no pod gets a new node" in event for event in world.list_events(reason="FailedScheduling"))
    spend(world, 10.0)
    world.advance_seconds(330)
    world.wait_until_settled(20)
    assert not world.list_errors()


def spend(world: World, usd: float) -> None:
    """Make the ledger say that *usd* was spent today."""
    ledger = read_ledger(world.bucket)
    assert ledger is not None
    life = NodeLifetime(claim="earlier", usd=usd, ended=ledger.since)
    ledger = CostLedger(since=ledger.since, until=ledger.until, lives=(life,))
    world.bucket.put(LEDGER_KEY, msgspec.json.encode(ledger))


def test_without_limits_and_budget_nothing_more_is_read() -> None:
    world = World(make_node_class(), make_node_pool())
    calls: list[PortCall] = []
    with world.use_tap(calls.append):
        world.apply([make_deployment(4)])
        world.wait_until_settled(4)
    kinds = {call.detail for call in calls if call.port == "table"}
    assert "launch-group" in kinds
    assert not kinds & {LEDGER_KIND, COSTS_KIND}
