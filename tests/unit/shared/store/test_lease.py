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


def test_there_is_one_holder() -> None:
    outside = Outside()
    with (
        hold_lease(outside.build_world("one"), "planner") as first,
        hold_lease(outside.build_world("two"), "planner") as second,
    ):
        assert first is not None
        assert second is None
        assert is_lease_held(outside.table, first)


def test_two_leases_do_not_know_each_other() -> None:
    outside = Outside()
    with (
        hold_lease(outside.build_world("one"), "planner") as planner,
        hold_lease(outside.build_world("two"), "keeper") as keeper,
    ):
        assert planner is not None
        assert keeper is not None


def test_a_lease_that_is_given_back_can_be_taken_at_once() -> None:
    outside = Outside()
    with hold_lease(outside.build_world("one"), "planner") as first:
        pass
    with hold_lease(outside.build_world("two"), "planner") as second:
        assert second is not None
        assert first is not None
        assert second.version > first.version
        assert not is_lease_held(outside.table, first)


def test_who_found_it_taken_does_not_give_it_back() -> None:
    outside = Outside()
    with hold_lease(outside.build_world("one"), "planner") as first:
        with hold_lease(outside.build_world("two"), "planner"):
            pass
        assert first is not None
        assert is_lease_held(outside.table, first)


def test_a_fault_in_the_block_gives_it_back() -> None:
    outside = Outside()
    with pytest.raises(Throttled), hold_lease(outside.build_world(), "planner"):
        raise Throttled("later")
    with hold_lease(outside.build_world(), "planner") as second_lease:
        assert second_lease is not None


@pytest.mark.parametrize(("passed", "is_acquired"), [(LEASE_TTL - timedelta(seconds=1), False), (LEASE_TTL, True)])
def test_who_dies_holds_it_until_it_ends(passed: timedelta, is_acquired: bool) -> None:  # noqa: FBT001 - a table's column
    outside = Outside()
    with pytest.raises(Killed), hold_lease(outside.build_world("one"), "planner"):
        raise Killed
    outside.clock.advance(passed)
    with hold_lease(outside.build_world("two"), "planner") as fence:
        assert (fence is not None) is is_acquired


def test_a_lease_that_was_taken_over_is_not_given_back_by_its_old_holder() -> None:
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


def test_the_lease_remembers_who_never_gave_it_back_the_latest_first() -> None:
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


def test_no_more_are_remembered_than_may_still_write() -> None:
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
def test_a_row_that_is_spoilt_or_of_an_older_release_is_that_of_somebody_who_was_overtaken(body: str) -> None:
    outside = Outside()
    row = outside.table.write("lease", "planner", body, version=0)
    with hold_lease(outside.build_world("two"), "planner") as fence:
        assert fence is not None
    assert fence.overtaken == (row.version,)


def test_what_a_later_release_wrote_into_the_row_stays_there_whoever_holds_the_lease() -> None:
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
def test_of_a_row_that_cannot_be_read_that_is_kept_which_can(body: str) -> None:
    outside = Outside()
    outside.table.write("lease", "planner", body, version=0)
    with hold_lease(outside.build_world("two"), "planner") as fence:
        assert fence is not None
    row = outside.table.read("lease", "planner")
    assert row is not None
    assert (json.loads(row.body).get("more"), json.loads(row.body)["owner"]) == (1 if "more" in body else None, "")


def test_a_table_that_fails_at_the_end_leaves_the_lease_to_end_by_itself() -> None:
    outside = Outside()
    down = False

    def fail_when_down(call: PortCall) -> None:
        if down and call.port == "table":
            raise Unreachable("table")

    with hold_lease(outside.build_world(tap=fail_when_down), "planner") as fence:
        down = True
    assert fence is not None
    assert is_lease_held(outside.table, fence)


def test_a_table_that_does_not_answer_is_no_free_lease() -> None:
    def raise_unreachable(call: PortCall) -> None:
        raise Unreachable(call.port)

    with pytest.raises(Unreachable), hold_lease(Outside().build_world(tap=raise_unreachable), "planner"):
        pytest.fail("entered without a lease")


def test_of_two_that_see_it_free_one_gets_it() -> None:
    outside = Outside()

    def write_competing_lease(call: PortCall) -> None:
        if call.method == "write" and call.phase == "before" and outside.table.read("lease", "planner") is None:
            outside.table.write("lease", "planner", '{"owner":"two","until":"2030-01-01T00:00:00Z"}', version=0)

    with hold_lease(outside.build_world("one", tap=write_competing_lease), "planner") as fence:
        assert fence is None


def test_a_lease_row_that_is_gone_is_held_by_nobody() -> None:
    outside = Outside()
    assert not is_lease_held(outside.table, FencingToken(name="planner", version=1))


def test_the_row_is_overwritten_and_lives_for_ever() -> None:
    outside = Outside()
    for name in ("one", "two", "three"):
        with hold_lease(outside.build_world(name), "planner"):
            pass
    row = outside.table.read("lease", "planner")
    assert row is not None
    assert (row.version, row.expires_at) == (6, None)


def test_a_write_behind_a_broken_fence_is_refused() -> None:
    outside = Outside()
    with hold_lease(outside.build_world("one"), "planner") as fence:
        outside.clock.advance(LEASE_TTL)
        with hold_lease(outside.build_world("two"), "planner"), pytest.raises(Conflict):
            outside.table.write("launch-group", "g", "{}", version=0, fence=fence)


def test_a_lease_that_cannot_be_read_is_taken_and_breaks_its_holders_fence() -> None:
    outside = Outside()
    with hold_lease(outside.build_world("one"), "planner") as old:
        assert old is not None
        garbled = outside.table.write("lease", "planner", "{", version=old.version)
        with hold_lease(outside.build_world("two"), "planner") as new:
            assert new is not None
            assert new.version == garbled.version + 1
            assert not is_lease_held(outside.table, old)
