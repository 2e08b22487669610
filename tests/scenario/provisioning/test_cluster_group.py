"""Two clusters, each with its own functions and clock, share the limit of a group."""

import json
from typing import Any

import msgspec

from shared.errors import Unreachable
from shared.model.cloud_provider.cluster_group import GroupEntry
from shared.store.limits.cluster_group import ROW_NAME, build_row_kind, decode_entries
from sim.fault_tap import Killed, PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.provisioning.test_money import USD_PER_NODE
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool

TABLE_ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/joiner-groups"
GROUP_SETTINGS = {"group": "batch", "group-table": TABLE_ARN}
KIND = build_row_kind("batch")


def build_template(member: str, nodes: float) -> dict[str, Any]:
    """Return the template of a cluster whose group allows *nodes* nodes; its account has the name *member*."""
    settings = ACTIVE_SETTINGS | GROUP_SETTINGS | {"group-limit-usd-per-hour": f"{nodes * USD_PER_NODE:.4f}"}
    text = json.dumps(synthesize_template(settings=settings))
    assert '"/demo"' in text
    template: dict[str, Any] = json.loads(text.replace('"/demo"', f'"/{member}"'))
    return template


def build_worlds(nodes: float = 4.5) -> tuple[World, World]:
    """Return two clusters that have joined the group; the clock of the second one is behind."""
    first, second = (World(template=build_template(name, nodes), seed=number) for number, name in enumerate("ab"))
    second.group_table = first.group_table
    for world in (first, second):
        world.apply([make_node_class(), make_node_pool()])
    first.advance_seconds(100)
    advance(first, second, 300)
    return first, second


def advance(first: World, second: World, seconds: int) -> None:
    """Advance both clusters in turns of two seconds."""
    for _ in range(seconds // 2):
        for world in (first, second):
            world.advance_seconds(2)


def count_nodes(*worlds: World) -> int:
    return sum(len(world.list_active_instances()) for world in worlds)


def read_entries(world: World) -> dict[str, GroupEntry]:
    return {name.rpartition("/")[2]: entry for name, entry in decode_entries(world.group_table.read(KIND, ROW_NAME))}


def test_two_clusters_share_the_limit_and_use_what_the_other_one_frees() -> None:
    first, second = build_worlds()
    assert sorted(read_entries(first)) == ["a", "b"]
    for world in (first, second):
        world.apply([make_deployment(40)])
    for _ in range(60):
        advance(first, second, 4)
        assert count_nodes(first, second) <= 4
    assert count_nodes(first, second) == 4
    events = [event for world in (first, second) for event in world.list_events(reason="FailedScheduling")]
    assert any("is left of the limit of group batch of" in event for event in events)
    busy, waiting = (first, second) if count_nodes(first) >= count_nodes(second) else (second, first)
    before = count_nodes(waiting)
    busy.scale(0)
    advance(first, second, 600)
    assert count_nodes(busy) == 0
    assert count_nodes(waiting) == 4 > before
    assert not first.list_errors()
    assert not second.list_errors()


def test_cluster_launches_nothing_while_the_table_does_not_respond() -> None:
    first, _ = build_worlds()

    def fail(call: PortCall) -> None:
        if call.port == "group_table":
            raise Unreachable("timeout")

    with first.use_tap(fail):
        first.apply([make_deployment(4)])
        first.advance_seconds(120)
        assert count_nodes(first) == 0
        events = first.list_events(reason="FailedScheduling")
        assert any("could not be read: Unreachable: timeout; no node is launched" in event for event in events)
    first.wait_until_settled(4)


def test_function_that_dies_before_its_launch_frees_its_amount_later() -> None:
    first, second = build_worlds()
    deaths: list[str] = []

    def die_after_the_reservation(call: PortCall) -> None:
        if (call.port, call.method, call.phase) == ("group_table", "write", "after") and not deaths:
            entry = read_entries(first)["a"]
            if entry.used:
                deaths.append(call.world_name)
                raise Killed

    with first.use_tap(die_after_the_reservation):
        first.apply([make_deployment(8)])
        first.wait_until(lambda: deaths)
    assert count_nodes(first) == 0
    assert read_entries(first)["a"].used > 0
    second.apply([make_deployment(40)])
    for _ in range(100):
        advance(first, second, 4)
        assert count_nodes(first, second) <= 4
    assert count_nodes(first, second) == 4
    assert len(first.list_running_pods()) == 8


def test_silent_cluster_keeps_its_amount() -> None:
    first, second = build_worlds()
    first.apply([make_deployment(8)])
    first.wait_until_settled(8)
    used_nodes = count_nodes(first)
    second.apply([make_deployment(40)])
    second.advance_seconds(1800)
    assert count_nodes(second) == 4 - used_nodes
    assert read_entries(first)["a"].is_silent(second.clock.get_time()) or read_entries(first)["a"].used


def test_deleted_row_is_written_again_before_anything_is_launched() -> None:
    first, second = build_worlds()
    first.apply([make_deployment(8)])
    first.wait_until_settled(8)
    row = first.group_table.read(KIND, ROW_NAME)
    assert row is not None
    first.group_table.remove(KIND, ROW_NAME, version=row.version)
    second.apply([make_deployment(40)])
    for _ in range(120):
        advance(first, second, 4)
        assert count_nodes(first, second) <= 4
    assert count_nodes(first, second) == 4


def test_without_a_group_the_shared_table_is_not_used() -> None:
    world, calls = World(make_node_class(), make_node_pool()), list[PortCall]()
    with world.use_tap(calls.append):
        world.apply([make_deployment(4)])
        world.wait_until_settled(4)
    assert not [call for call in calls if call.port == "group_table"]
    assert msgspec.json.encode(world.group_table.list_rows(KIND)) == b"[]"
