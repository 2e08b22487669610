"""Tests of the row of a group: conditional writes, entries of other clusters, and what cannot be read."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Barrier
from typing import Any

import msgspec
import pytest

from shared.cycles.setup.group_usage import publish_group_usage
from shared.errors import Conflict, Fault, Unreachable
from shared.model.cloud_provider.cluster_group import JOIN_DELAY, GroupAmount, GroupEntry, describe_different_settings
from shared.ports.storage import TableRow
from shared.ports.world import World
from shared.store.limits.cluster_group import (
    ROW_NAME,
    build_row_kind,
    decode_entries,
    read_group_usage,
    remove_entry,
    try_write_amount,
)
from sim.fault_tap import PortCall
from sim.world.memory_ports import MemoryTable
from tests.support.actions_world import Outside

ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/groups"
USD = 1_000_000


def make_outside(member: str = "a", table: MemoryTable | None = None, limit: float = 10.0) -> Outside:
    outside = Outside(group="g", group_member=member, group_limit_usd_per_hour=limit, group_table=ARN)
    outside.group_table = outside.group_table if table is None else table
    return outside


def make_entry(now: datetime, used: int = 0, **fields: Any) -> GroupEntry:
    return msgspec.convert(
        {"used": used, "limit": 10 * USD, "joined_at": now - JOIN_DELAY, "written_at": now} | fields, GroupEntry
    )


def write_entries(table: MemoryTable, **entries: object) -> None:
    row = table.read(build_row_kind("g"), ROW_NAME)
    body = msgspec.json.encode({"entries": entries}).decode()
    table.write(build_row_kind("g"), ROW_NAME, body, version=0 if row is None else row.version)


def read_row(table: MemoryTable) -> TableRow:
    row = table.read(build_row_kind("g"), ROW_NAME)
    assert row is not None
    return row


def read_used(table: MemoryTable) -> dict[str, int]:
    return {member: entry.used for member, entry in decode_entries(read_row(table))}


def launch(world: World, used: int, revision: int = 1) -> bool:
    return try_write_amount(world, GroupAmount(used=used, revision=revision), is_launch=True)


def test_launch_is_within_the_limit_next_to_the_current_entries_of_all_clusters() -> None:
    outside = make_outside()
    now = outside.clock.get_time()
    write_entries(outside.group_table, a=make_entry(now), b=make_entry(now, 7 * USD))
    assert not launch(outside.build_world(), 3 * USD + 1)
    assert launch(outside.build_world(), 3 * USD)
    assert read_used(outside.group_table) == {"a": 3 * USD, "b": 7 * USD}


def test_lowest_limit_of_the_clusters_applies() -> None:
    outside = make_outside()
    now = outside.clock.get_time()
    write_entries(outside.group_table, a=make_entry(now), b=make_entry(now, limit=2 * USD))
    assert not launch(outside.build_world(), 3 * USD)
    assert launch(outside.build_world(), 2 * USD)


def test_entry_that_another_function_of_the_cluster_wrote_is_not_overwritten() -> None:
    outside = make_outside()
    write_entries(outside.group_table, a=make_entry(outside.clock.get_time(), 5 * USD, revision=2))
    assert not launch(outside.build_world(), 6 * USD, revision=1)
    assert not try_write_amount(outside.build_world(), GroupAmount(used=0, revision=1), is_launch=False)
    assert read_used(outside.group_table) == {"a": 5 * USD}


def test_write_is_repeated_next_to_new_entries_of_other_clusters() -> None:
    outside = make_outside()
    now = outside.clock.get_time()
    write_entries(outside.group_table, a=make_entry(now), b=make_entry(now))
    amounts = [1 * USD, 6 * USD]

    def write_other_entry(call: PortCall) -> None:
        if (call.port, call.method, call.phase) == ("group_table", "write", "before") and amounts:
            write_entries(outside.group_table, a=make_entry(now), b=make_entry(now, amounts.pop(0)))

    world = outside.build_world(tap=write_other_entry)
    assert not launch(world, 5 * USD)
    assert launch(world, 4 * USD)
    assert read_used(outside.group_table) == {"a": 4 * USD, "b": 6 * USD}


def test_usage_above_the_limit_is_written_because_the_nodes_exist() -> None:
    outside = make_outside()
    write_entries(outside.group_table, a=make_entry(outside.clock.get_time()))
    assert try_write_amount(outside.build_world(), GroupAmount(used=50 * USD, revision=1), is_launch=False)
    assert read_used(outside.group_table) == {"a": 50 * USD}


def test_unchanged_usage_is_written_again_only_after_a_while() -> None:
    outside = make_outside()
    write_entries(outside.group_table, a=make_entry(outside.clock.get_time(), USD))
    assert try_write_amount(outside.build_world(), GroupAmount(used=USD, revision=1), is_launch=False)
    assert read_row(outside.group_table).version == 1
    outside.clock.advance(timedelta(minutes=5))
    assert try_write_amount(outside.build_world(), GroupAmount(used=USD, revision=1), is_launch=False)
    assert read_row(outside.group_table).version == 2


def test_cluster_that_joins_writes_its_usage_and_launches_after_a_delay() -> None:
    outside = make_outside()
    usage = read_group_usage(outside.build_world())
    assert usage is not None
    share = usage.compute_share(outside.clock.get_time())
    assert (share.available, share.waiting_reason) == (0, "the cluster joins group g; it launches no nodes for 3m")
    assert not launch(outside.build_world(), USD, revision=0)
    assert try_write_amount(outside.build_world(), GroupAmount(used=2 * USD, revision=0), is_launch=False)
    assert not launch(outside.build_world(), 3 * USD)
    outside.clock.advance(JOIN_DELAY)
    assert launch(outside.build_world(), 3 * USD)


def test_cluster_in_mode_plan_reads_what_is_left_and_writes_nothing() -> None:
    outside = make_outside()
    write_entries(outside.group_table, b=make_entry(outside.clock.get_time(), 7 * USD))
    usage = read_group_usage(outside.build_world(mode="plan"))
    assert usage is not None
    assert usage.compute_share(outside.clock.get_time()).available == 3 * USD
    assert publish_group_usage(outside.build_world(mode="plan")) == ()
    assert read_row(outside.group_table).version == 1


@pytest.mark.parametrize(
    "body", ["{", '{"entries": {"b": {"used": "x"}}}', '{"entries": {"b": {"used": -1, "limit": 1}}}']
)
def test_what_cannot_be_decoded_leaves_nothing_and_is_not_overwritten(body: str) -> None:
    outside = make_outside()
    outside.group_table.write(build_row_kind("g"), ROW_NAME, body, version=0)
    usage = read_group_usage(outside.build_world())
    assert usage is not None
    assert usage.read_error
    assert usage.compute_share(outside.clock.get_time()).available == 0
    with pytest.raises(Fault, match="cannot be decoded"):
        launch(outside.build_world(), 0)
    assert read_row(outside.group_table).body == body


def test_table_that_does_not_respond_leaves_nothing() -> None:
    outside = make_outside()

    def fail(call: PortCall) -> None:
        if call.port == "group_table":
            raise Unreachable("timeout")

    usage = read_group_usage(outside.build_world(tap=fail))
    assert usage is not None
    assert usage.compute_share(outside.clock.get_time()).available == 0
    assert "could not be read: Unreachable: timeout" in usage.compute_share(outside.clock.get_time()).waiting_reason


def test_fields_of_a_later_release_in_entries_of_other_clusters_stay() -> None:
    outside = make_outside()
    now = outside.clock.get_time()
    later = msgspec.to_builtins(make_entry(now, USD)) | {"added": [1]}
    write_entries(outside.group_table, a=make_entry(now), b=later)
    assert launch(outside.build_world(), USD)
    assert '"added":[1]' in read_row(outside.group_table).body


def test_only_the_expected_entry_is_removed() -> None:
    outside = make_outside()
    now = outside.clock.get_time()
    entry = make_entry(now, USD)
    write_entries(outside.group_table, a=make_entry(now), b=entry)
    changed = msgspec.structs.replace(entry, revision=2)
    assert not remove_entry(outside.group_table, "g", "b", changed)
    assert remove_entry(outside.group_table, "g", "b", entry)
    assert read_used(outside.group_table) == {"a": 0}


def test_different_limits_and_prices_are_described() -> None:
    now = make_outside().clock.get_time()
    entries = (("a", make_entry(now)), ("b", make_entry(now)))
    assert describe_different_settings(entries) == ""
    assert "the lowest applies: a $10.0000/h, b $5.0000/h" in describe_different_settings(
        (entries[0], ("b", make_entry(now, limit=5 * USD)))
    )
    assert "a marginal, b list" in describe_different_settings((entries[0], ("b", make_entry(now, prices="list"))))


def test_concurrent_clusters_never_exceed_the_limit_together() -> None:
    table, count = MemoryTable(), 6
    now = make_outside().clock.get_time()
    members = [f"m{number}" for number in range(count)]
    write_entries(table, **{member: make_entry(now) for member in members})
    barrier, worlds = Barrier(count), [make_outside(member, table).build_world() for member in members]

    def raise_amounts(world: World) -> int:
        barrier.wait()
        used = 0
        for _ in range(100):
            usage = read_group_usage(world)
            entry = usage.get_entry() if usage is not None else None
            assert entry is not None
            try:
                if launch(world, entry.used + USD // 10, entry.revision):
                    used = entry.used + USD // 10
            except Conflict:
                continue
        return used

    with ThreadPoolExecutor(count) as pool:
        amounts = list(pool.map(raise_amounts, worlds))
    assert dict(zip(members, amounts, strict=True)) == read_used(table)
    assert sum(amounts) == 10 * USD
