"""Graceful expiration: expired nodes are replaced as drifted, within budgets, before a deadline deletes them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from shared.model.decisions.action import DeleteObject
from shared.model.decisions.command import CommandState
from sim.fault_tap import Killed, PortCall
from tests.scenario.disruption.test_expiry import list_nodes_by_age
from tests.scenario.kill_sites import READS, format_site
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


def expire_and_kill(should_die: Callable[[PortCall], bool]) -> tuple[World, timedelta]:
    """Expire a node gracefully; each handler dies at the calls that *should_die* selects, until the node is going.

    Return the world, and the time from the first minute to the deletion of the NodeClaim.
    """
    world = World(make_node_class(), make_graceful_pool("6m", [{"nodes": "1"}]), make_deployment(2))
    world.wait_until_settled(2)
    world.advance_seconds(9 * 60 - (world.clock.get_time() - world.began).total_seconds())
    [claim] = world.list_claims()

    def is_going() -> bool:
        claims = [item for item in world.list_claims() if item["metadata"]["uid"] == claim["metadata"]["uid"]]
        return all("deletionTimestamp" in item["metadata"] for item in claims)

    def kill(call: PortCall) -> None:
        if is_write(call) and should_die(call):
            raise Killed

    with world.use_tap(kill):
        world.wait_until(is_going, 15 * 60)
        duration = world.clock.get_time() - world.began
        world.advance_seconds(120)
    return world, duration


def is_write(call: PortCall) -> bool:
    is_object_write = call.port in ("ec2", "kube", "table") and call.method not in READS and call.detail != "lease"
    return is_object_write and not call.world_name.startswith("catalog")


def assert_node_was_replaced(world: World) -> None:
    """Check that nothing is left but a new node with the pods."""
    world.wait_until_settled(2, 600)
    world.wait_until(lambda: len(world.list_claims()) == len(world.list_active_instances()) == 1, 600)
    world.wait_until(lambda: not list_open_commands(world), 900)
    assert not any(node["spec"].get("taints") for node in world.list_nodes())


def list_open_commands(world: World) -> list[str]:
    command_states = (msgspec.json.decode(row.body, type=CommandState) for row in world.table.list_rows("command"))
    return [command_state.command.command_id for command_state in command_states if command_state.is_open]


EXPIRES_AFTER, DEADLINE = timedelta(minutes=10), timedelta(minutes=16)
REACTION_TIME = timedelta(minutes=2)
"""Two scheduled runs: the one after the deadline is the one that dies."""


@pytest.mark.parametrize("write_number", range(1, 51))
def test_graceful_expiration_completes_after_a_crash_at_any_write(write_number: int) -> None:
    write_count = 0

    def is_nth_write(call: PortCall) -> bool:
        nonlocal write_count
        write_count += call.phase == "after"
        return call.phase == "after" and write_count == write_number

    world, duration = expire_and_kill(is_nth_write)
    assert write_count >= write_number
    assert EXPIRES_AFTER < duration < DEADLINE
    assert_node_was_replaced(world)
    assert list_forced_deletions(world) == []


@pytest.mark.parametrize(
    "site",
    [
        "disrupt table.write command",
        "disrupt kube.patch /api/v1/nodes/*",
        "disrupt kube.create /apis/karpenter.sh/v1/nodeclaims",
        "disrupt kube.delete /apis/karpenter.sh/v1/nodeclaims/*",
        "provision ec2.create_fleet",
    ],
)
def test_deadline_of_graceful_expiration_holds_if_each_replacement_crashes(site: str) -> None:
    world, duration = expire_and_kill(lambda call: call.phase == "before" and format_site(call).startswith(site))
    assert DEADLINE < duration < DEADLINE + REACTION_TIME
    assert len(list_forced_deletions(world)) == 1
    assert_node_was_replaced(world)
