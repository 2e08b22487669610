"""Graceful expiration: expired nodes are replaced as drifted, within budgets, before a deadline deletes them."""

from typing import Any

import pytest

from shared.model.decisions.action import DeleteObject
from tests.scenario.disruption.test_expiry import list_nodes_by_age
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool, make_pod_disruption_budget

OLD = {"expireAfter": "10m"}


def make_graceful_pool(period: str, budgets: list[dict[str, Any]], **annotations: str) -> dict[str, Any]:
    node_pool = make_node_pool(template=OLD, disruption={"budgets": budgets})
    node_pool["metadata"]["annotations"] = {"joiner.dev/graceful-expiration": period} | annotations
    return node_pool


def list_forced_deletions(world: World) -> list[Any]:
    return [action for action in world.list_done_actions(DeleteObject) if action.message == "expired"]


def test_gracefully_expired_nodes_are_replaced_one_after_the_other_within_the_budget() -> None:
    world = World(make_node_class(), make_graceful_pool("2h", [{"nodes": "1"}]), make_deployment(12))
    world.wait_until_settled(12)
    before, deleting_counts, node_counts = set(list_nodes_by_age(world)), set[int](), set[int]()
    assert len(before) == 3

    def are_nodes_renewed() -> bool:
        deleting_counts.add(sum("deletionTimestamp" in claim["metadata"] for claim in world.list_claims()))
        node_counts.add(len(world.list_nodes()))
        return not before & set(list_nodes_by_age(world))

    world.wait_until(are_nodes_renewed, 3600)
    assert max(deleting_counts) == 1
    assert max(node_counts) > len(before)  # the replacement first
    assert list_forced_deletions(world) == []


@pytest.mark.parametrize(
    ("budgets", "annotations"),
    [
        ([{"nodes": "0", "reasons": ["Drifted"]}], {}),
        ([{"nodes": "100%"}], {"joiner.dev/disruption-windows": "0 0 1 1 * 1m"}),
        ([{"nodes": "100%"}], {"joiner.dev/disruption-paused": "Drifted"}),
    ],
    ids=["budget", "window", "pause"],
)
def test_gracefully_expired_node_is_deleted_at_the_deadline_if_nothing_may_replace_it(
    budgets: list[dict[str, Any]], annotations: dict[str, str]
) -> None:
    world = World(make_node_class(), make_graceful_pool("10m", budgets, **annotations), make_deployment(2))
    world.wait_until_settled(2)
    [old] = list_nodes_by_age(world)
    world.advance_seconds(15 * 60)
    assert list_nodes_by_age(world) == [old]
    assert (
        world.get_condition("nodeclaims.karpenter.sh", world.list_claims()[0]["metadata"]["name"], "Drifted")[1]
        == "Expired"
    )
    assert list_forced_deletions(world) == []
    world.wait_until(lambda: list_forced_deletions(world), 600)
    world.wait_until(lambda: old not in list_nodes_by_age(world), 900)
    world.wait_until_settled(2)


def test_gracefully_expired_node_with_a_blocked_pod_stays_until_the_deadline() -> None:
    world = World(
        make_node_class(),
        make_graceful_pool("10m", [{"nodes": "100%"}]),
        make_deployment(2),
        make_pod_disruption_budget(maxUnavailable=0),
    )
    world.wait_until_settled(2)
    old = list_nodes_by_age(world)
    world.advance_seconds(15 * 60)
    assert list_nodes_by_age(world) == old
    world.wait_until(lambda: list_forced_deletions(world), 600)


def test_invalid_graceful_expiration_is_reported_and_deletes_no_node() -> None:
    world = World(make_node_class(), make_graceful_pool("tomorrow", [{"nodes": "100%"}]), make_deployment(2))
    world.wait_until_settled(2)
    old = list_nodes_by_age(world)
    world.advance_seconds(15 * 60)
    assert list_nodes_by_age(world) == old
    assert any("joiner.dev/graceful-expiration" in text and "tomorrow" in text for text in world.list_events("default"))
    world.store(
        "nodepools.karpenter.sh", "default", {"metadata": {"annotations": {"joiner.dev/graceful-expiration": "0s"}}}
    )
    world.wait_until(lambda: list_forced_deletions(world), 600)
