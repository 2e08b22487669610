"""Tests of leases: one invocation plans at a time, and an invocation that lost its lease cannot write."""

import json
from contextlib import suppress
from datetime import timedelta

import pytest

from shared.errors import Conflict, Throttled, Unreachable
from shared.ports.storage import FencingToken
from shared.store.lease import LEASE_TTL, MAX_OVERTAKEN_VERSIONS, hold_lease, is_lease_held
from sim.fault_tap import Killed, PortCall
from tests.support.actions_world import Outside


def test_lease_has_one_holder() -> None:
    outside = Outside()
    with (
        hold_lease(outside.build_world("one"), "planner") as first,
        hold_lease(outside.build_world("two"), "planner") as second,
    ):
        assert first is not None
        assert second is None
        assert is_lease_held(outside.table, first)


def test_leases_with_different_names_are_independent() -> None:
    outside = Outside()
    with (
        hold_lease(outside.build_world("one"), "planner") as planner,
        hold_lease(outside.build_world("two"), "keeper") as keeper,
    ):
        assert planner is not None
        assert keeper is not None


def test_released_lease_can_be_acquired_immediately() -> None:
    outside = Outside()
    with hold_lease(outside.build_world("one"), "planner") as first:
        pass
    with hold_lease(outside.build_world("two"), "planner") as second:
        assert second is not None
        assert first is not None
        assert second.version > first.version
        assert not is_lease_held(outside.table, first)


def test_failed_acquisition_does_not_release_the_lease() -> None:
    outside = Outside()
    with hold_lease(outside.build_world("one"), "planner") as first:
        with hold_lease(outside.build_world("two"), "planner"):
            pass
        assert first is not None
        assert is_lease_held(outside.table, first)


def test_fault_inside_the_block_releases_the_lease() -> None:
    outside = Outside()
    with pytest.raises(Throttled), hold_lease(outside.build_world(), "planner"):
        raise Throttled("later")
    with hold_lease(outside.build_world(), "planner") as second_lease:
        assert second_lease is not None


@pytest.mark.parametrize(("passed", "is_acquired"), [(LEASE_TTL - timedelta(seconds=1), False), (LEASE_TTL, True)])
def test_lease_of_a_crashed_holder_lasts_until_it_expires(passed: timedelta, is_acquired: bool) -> None:  # noqa: FBT001 - a table's column
    outside = Outside()
    with pytest.raises(Killed), hold_lease(outside.build_world("one"), "planner"):
        raise Killed
    outside.clock.advance(passed)
    with hold_lease(outside.build_world("two"), "planner") as fence:
        assert (fence is not None) is is_acquired


def test_lease_taken_over_is_not_released_by_the_old_holder() -> None:
    outside = Outside()
    with hold_lease(outside.build_world("slow"), "planner") as old:
        outside.clock.advance(LEASE_TTL)
        with hold_lease(outside.build_world("next"), "planner") as new:
            assert new is not None
            assert old is not None
            assert not is_lease_held(outside.table, old)
        with hold_lease(outside.build_world("third"), "planner") as third:
            assert third is not None
    assert third is not None
    assert outside.table.read("lease", "planner") is not None


def test_lease_remembers_versions_that_were_never_released_newest_first() -> None:
    outside = Outside()
    versions: list[int] = []
    for dies in (True, False, True, True, False):
        outside.clock.advance(LEASE_TTL)
        with suppress(Killed), hold_lease(outside.build_world("one"), "planner") as fence:
            assert fence is not None
            assert fence.overtaken == tuple(reversed(versions))
            if dies:
                versions.append(fence.version)
                raise Killed
    with hold_lease(outside.build_world("two"), "planner") as last:
        assert last is not None
    assert last.overtaken == tuple(reversed(versions))
    assert len(versions) == 3


def test_number_of_remembered_overtaken_versions_is_limited() -> None:
    outside = Outside()
    for _ in range(MAX_OVERTAKEN_VERSIONS + 2):
        with suppress(Killed), hold_lease(outside.build_world("one"), "planner"):
            raise Killed
        outside.clock.advance(LEASE_TTL)
    with hold_lease(outside.build_world("two"), "planner") as fence:
        assert fence is not None
    assert len(fence.overtaken) == MAX_OVERTAKEN_VERSIONS
    assert fence.overtaken[0] == fence.version - 1


@pytest.mark.parametrize("body", ["{", '{"owner":"before","until":"2020-01-01T00:00:00Z"}'])
def test_unreadable_or_outdated_lease_row_counts_as_overtaken(body: str) -> None:
    outside = Outside()
    row = outside.table.write("lease", "planner", body, version=0)
    with hold_lease(outside.build_world("two"), "planner") as fence:
        assert fence is not None
    assert fence.overtaken == (row.version,)


def test_unknown_fields_of_the_lease_row_are_preserved() -> None:
    """Test a canary: the older release must keep the fields that the newer release wrote."""
    outside = Outside()
    news = {"epoch": {"of": [1, 2.50, None]}, "sinceÜ": "2026-11-22T08:00:00Z"}
    free = {"owner": "", "until": "0001-01-01T00:00:00Z", "overtaken": []}
    outside.table.write("lease", "planner", json.dumps(free | news), version=0)

    def read_lease_body() -> dict[str, object]:
        lease_row = outside.table.read("lease", "planner")
        assert lease_row is not None
        body: dict[str, object] = json.loads(lease_row.body)
        return body

    for dies in (False, True, False):
        with suppress(Killed), hold_lease(outside.build_world("one"), "planner") as fence:
            assert fence is not None
            assert read_lease_body() == read_lease_body() | news | {"owner": "one"}
            if dies:
                raise Killed
        assert read_lease_body() == read_lease_body() | news | {"owner": "one" if dies else ""}
        outside.clock.advance(LEASE_TTL)


@pytest.mark.parametrize("body", ["{", "[]", '{"owner": 7, "more": 1}'])
def test_readable_fields_of_a_damaged_lease_row_are_kept(body: str) -> None:
    outside = Outside()
    outside.table.write("lease", "planner", body, version=0)
    with hold_lease(outside.build_world("two"), "planner") as fence:
        assert fence is not None
    row = outside.table.read("lease", "planner")
    assert row is not None
    assert (json.loads(row.body).get("more"), json.loads(row.body)["owner"]) == (1 if "more" in body else None, "")


def test_unreachable_table_at_release_leaves_the_lease_to_expire() -> None:
    outside = Outside()
    down = False

    def fail_when_down(call: PortCall) -> None:
        if down and call.port == "table":
            raise Unreachable("table")

    with hold_lease(outside.build_world(tap=fail_when_down), "planner") as fence:
        down = True
    assert fence is not None
    assert is_lease_held(outside.table, fence)


def test_unreachable_table_at_acquisition_raises_unreachable() -> None:
    def raise_unreachable(call: PortCall) -> None:
        raise Unreachable(call.port)

    with pytest.raises(Unreachable), hold_lease(Outside().build_world(tap=raise_unreachable), "planner"):
        pytest.fail("entered without a lease")


def test_concurrent_acquisition_has_one_winner() -> None:
    outside = Outside()

    def write_competing_lease(call: PortCall) -> None:
        if call.method == "write" and call.phase == "before" and outside.table.read("lease", "planner") is None:
            outside.table.write("lease", "planner", '{"owner":"two","until":"2030-01-01T00:00:00Z"}', version=0)

    with hold_lease(outside.build_world("one", tap=write_competing_lease), "planner") as fence:
        assert fence is None


def test_missing_lease_row_means_the_lease_is_not_held() -> None:
    outside = Outside()
    assert not is_lease_held(outside.table, FencingToken(name="planner", version=1))


def test_lease_row_is_overwritten_and_never_expires() -> None:
    outside = Outside()
    for name in ("one", "two", "three"):
        with hold_lease(outside.build_world(name), "planner"):
            pass
    row = outside.table.read("lease", "planner")
    assert row is not None
    assert (row.version, row.expires_at) == (6, None)


def test_write_with_a_stale_fencing_token_is_rejected() -> None:
    outside = Outside()
    with hold_lease(outside.build_world("one"), "planner") as fence:
        outside.clock.advance(LEASE_TTL)
        with hold_lease(outside.build_world("two"), "planner"), pytest.raises(Conflict):
            outside.table.write("launch-group", "g", "{}", version=0, fence=fence)


def test_unreadable_lease_is_taken_over_and_invalidates_the_old_token() -> None:
    outside = Outside()
    with hold_lease(outside.build_world("one"), "planner") as old:
        assert old is not None
        garbled = outside.table.write("lease", "planner", "{", version=old.version)
        with hold_lease(outside.build_world("two"), "planner") as new:
            assert new is not None
            assert new.version == garbled.version + 1
            assert not is_lease_held(outside.table, old)
