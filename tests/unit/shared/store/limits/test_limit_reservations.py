"""Tests of the rows of limit reservations and of free addresses: read, conditional write, and no write."""

from hashlib import sha256

import msgspec
import pytest

from shared.decide.launch.fleets.launch_planning import LaunchPlan, LaunchPolicy
from shared.errors import Conflict
from shared.model.cloud_provider.limit_reservation import LimitReservations
from shared.model.cloud_provider.subnet_addresses import SubnetAddresses
from shared.model.cluster import ClusterSnapshot
from shared.store.lease import hold_lease
from shared.store.limits.limit_reservations import ROW_KIND, read_limit_reservations, try_write_reservations
from shared.store.subnet_addresses import ROW_KIND as ADDRESSES
from shared.store.subnet_addresses import ROW_NAME, read_free_addresses, record_free_addresses
from shared.store.table_rows import MAX_BODY_BYTES
from sim.fault_tap import PortCall
from tests.support.actions_world import Outside
from tests.support.launch_cases import SUBNETS, make_claim, make_cluster, write_limit_reservations
from tests.support.snapshot_decisions import plan_launches
from tests.unit.shared.decide.launch.fleets.test_launch_limits import (
    build_limited_cluster,
    make_limit_reservation,
    make_limited_pool,
)


def plan_two_claims(
    limits: dict[str, str] | None = None, *books: LimitReservations
) -> tuple[LaunchPlan, ClusterSnapshot]:
    snapshot = build_limited_cluster(make_claim("a"), make_claim("b"), limits=limits or {"cpu": "16"})
    return plan_launches(snapshot, LaunchPolicy(limit_reservations=books)), snapshot


def test_limit_reservations_are_not_read_without_nodepool_limits() -> None:
    outside = Outside()
    assert read_limit_reservations(outside.build_world(), make_cluster(node_pools=(make_limited_pool(None),))) == ()
    assert outside.list_called_methods("table") == []


def test_limit_reservations_are_written_and_read_with_their_version() -> None:
    outside = Outside()
    plan, snapshot = plan_two_claims()
    assert write_limit_reservations(plan, snapshot, outside.build_world(), None) == plan
    [book] = read_limit_reservations(outside.build_world(), snapshot)
    assert book == msgspec.structs.replace(plan.limit_reservations[0], version=1)
    second_plan, snapshot = plan_two_claims(None, book)
    assert write_limit_reservations(second_plan, snapshot, outside.build_world(), None) == second_plan
    row = outside.table.read(ROW_KIND, "default")
    assert row is not None
    assert row.version == 2


def test_one_thousand_nodeclaims_cost_two_table_calls() -> None:
    outside = Outside()
    snapshot = build_limited_cluster(
        *(make_claim(f"n{number:04}") for number in range(1000)), limits={"cpu": "1000000"}
    )
    books = read_limit_reservations(outside.build_world(), snapshot)
    write_limit_reservations(
        plan_launches(snapshot, LaunchPolicy(limit_reservations=books)), snapshot, outside.build_world(), None
    )
    assert outside.list_called_methods("table") == ["list_rows", "write"]


def test_conflicting_limit_reservation_write_cancels_new_launches() -> None:
    outside = Outside()
    plan, snapshot = plan_two_claims()
    outside.table.write(ROW_KIND, "default", "{}", version=0)
    assert write_limit_reservations(plan, snapshot, outside.build_world(), None).launches == ()


def test_conflicting_write_keeps_open_launches_and_other_nodepools() -> None:
    outside = Outside()
    [open_] = plan_launches(build_limited_cluster(make_claim("z"), limits=None)).launches
    other_node_pool = msgspec.structs.replace(
        make_limited_pool({"cpu": "8"}), meta=msgspec.structs.replace(make_limited_pool({}).meta, name="other")
    )
    elsewhere = make_claim("o")
    labels = (("karpenter.sh/nodepool", "other"),)
    elsewhere = msgspec.structs.replace(elsewhere, meta=msgspec.structs.replace(elsewhere.meta, labels=labels))
    snapshot = make_cluster(
        make_claim("a"),
        make_claim("z"),
        elsewhere,
        node_pools=(make_limited_pool({"cpu": "16"}), other_node_pool),
        launch_groups=(open_.group,),
    )
    outside.table.write(ROW_KIND, "default", "{}", version=0)
    plan = plan_launches(snapshot, LaunchPolicy())
    written_plan = write_limit_reservations(plan, snapshot, outside.build_world(), None)
    assert sorted(launch.group.claims for launch in plan.launches) == [("a",), ("o",), ("z",)]
    assert sorted(launch.group.claims for launch in written_plan.launches) == [("o",), ("z",)]


def test_lost_lease_prevents_limit_reservations() -> None:
    outside = Outside()
    plan, snapshot = plan_two_claims()
    with hold_lease(outside.build_world(), "planner") as fence:
        row = outside.table.read("lease", "planner")
        assert row is not None
        outside.table.write("lease", "planner", row.body, version=row.version)
        assert write_limit_reservations(plan, snapshot, outside.build_world(), fence).launches == ()
    assert outside.table.list_rows(ROW_KIND) == ()


def test_mode_plan_writes_no_limit_reservations() -> None:
    outside = Outside()
    plan, snapshot = plan_two_claims()
    assert write_limit_reservations(plan, snapshot, outside.build_world(mode="plan"), None) == plan
    record_free_addresses(SUBNETS, outside.build_world(mode="plan"))
    assert outside.list_called_methods("table") == []


def test_unreadable_limit_reservation_row_is_rewritten() -> None:
    outside = Outside()
    outside.table.write(ROW_KIND, "default", "{", version=0)
    _, snapshot = plan_two_claims()
    books = read_limit_reservations(outside.build_world(), snapshot)
    assert books == (LimitReservations(pool="default", version=1),)
    plan = plan_launches(snapshot, LaunchPolicy(limit_reservations=books))
    assert write_limit_reservations(plan, snapshot, outside.build_world(), None) == plan
    assert make_limit_reservation("a") not in read_limit_reservations(outside.build_world(), snapshot)[0].holds


def test_free_subnet_addresses_are_stored_with_their_time() -> None:
    outside = Outside()
    assert read_free_addresses(outside.build_world()) is None
    record_free_addresses(SUBNETS, outside.build_world())
    expected = SubnetAddresses(at=outside.clock.get_time(), free=(("subnet-a", 9), ("subnet-b", 5), ("subnet-z", 1)))
    assert read_free_addresses(outside.build_world()) == expected
    record_free_addresses(SUBNETS[:1], outside.build_world())
    assert read_free_addresses(outside.build_world()) == SubnetAddresses(
        at=outside.clock.get_time(), free=(("subnet-a", 9),)
    )


def test_free_subnet_addresses_are_kept_if_ec2_returns_no_subnets() -> None:
    outside = Outside()
    record_free_addresses(SUBNETS, outside.build_world())
    outside.calls.clear()
    record_free_addresses((), outside.build_world())
    assert outside.list_called_methods("table") == []


@pytest.mark.parametrize("body", ["{", '{"at": 3}'])
def test_unreadable_free_address_row_is_none(body: str) -> None:
    outside = Outside()
    outside.table.write(ADDRESSES, ROW_NAME, body, version=0)
    assert read_free_addresses(outside.build_world()) is None


def test_conflicting_write_of_free_addresses_is_ignored() -> None:
    outside = Outside()

    def raise_conflict(call: PortCall) -> None:
        if (call.method, call.phase) == ("write", "before"):
            raise Conflict("overtaken")

    record_free_addresses(SUBNETS, outside.build_world(tap=raise_conflict))
    assert read_free_addresses(outside.build_world()) is None


def build_large_book(claim_count: int) -> LimitReservations:
    """Return reservations whose claims have names that cannot be compressed well."""
    names = tuple(f"default-{sha256(str(number).encode()).hexdigest()}" for number in range(claim_count))
    hold = make_limit_reservation(*names)
    return LimitReservations(pool="default", holds=(hold,))


def test_large_limit_reservations_are_stored_compressed_and_read_again() -> None:
    outside = Outside()
    book = build_large_book(6_000)
    assert len(msgspec.json.encode(book)) > MAX_BODY_BYTES
    assert try_write_reservations(book, outside.build_world(), None)
    snapshot = build_limited_cluster(make_claim("a"), limits={"cpu": "16"})
    assert read_limit_reservations(outside.build_world(), snapshot) == (msgspec.structs.replace(book, version=1),)


def test_limit_reservations_that_dynamodb_would_refuse_are_not_written() -> None:
    outside = Outside()
    assert not try_write_reservations(build_large_book(12_000), outside.build_world(), None)
    assert outside.table.read(ROW_KIND, "default") is None
