"""The ledger's rows, and that of addresses: read, written under a condition, or left alone."""

import msgspec
import pytest

from shared.actions.addresses import KIND as ADDRESSES
from shared.actions.addresses import NAME, known_addresses, note_addresses
from shared.actions.lease import leased
from shared.actions.ledger import KIND, promise, read_books
from shared.errors import Conflict
from shared.launch.groups import LaunchPlan, Terms, plan_launches
from shared.launch.ledger import Book
from shared.launch.subnets import Addresses
from shared.model.cluster import Cluster
from sim.faults import Call
from tests.unit.actions_world import Outside
from tests.unit.launch_cases import SUBNETS, claim, cluster
from tests.unit.test_launch_ledger import hold, pool, world


def planned(limits: dict[str, str] | None = None, *books: Book) -> tuple[LaunchPlan, Cluster]:
    seen = world(claim("a"), claim("b"), limits=limits or {"cpu": "16"})
    return plan_launches(seen, Terms(books=books)), seen


def test_without_limits_nothing_is_read() -> None:
    outside = Outside()
    assert read_books(outside.world(), cluster(node_pools=(pool(None),))) == ()
    assert outside.sent("table") == []


def test_what_is_promised_is_read_again_with_its_version() -> None:
    outside = Outside()
    plan, seen = planned()
    assert promise(plan, seen, outside.world(), None) == plan
    [book] = read_books(outside.world(), seen)
    assert book == msgspec.structs.replace(plan.books[0], version=1)
    again, seen = planned(None, book)
    assert promise(again, seen, outside.world(), None) == again
    row = outside.table.read(KIND, "default")
    assert row is not None
    assert row.version == 2


def test_a_thousand_claims_cost_two_calls_of_the_table() -> None:
    outside = Outside()
    seen = world(*(claim(f"n{number:04}") for number in range(1000)), limits={"cpu": "1000000"})
    books = read_books(outside.world(), seen)
    promise(plan_launches(seen, Terms(books=books)), seen, outside.world(), None)
    assert outside.sent("table") == ["rows", "write"]


def test_who_is_overtaken_launches_nothing_new() -> None:
    outside = Outside()
    plan, seen = planned()
    outside.table.write(KIND, "default", "{}", version=0)
    assert promise(plan, seen, outside.world(), None).launches == ()


def test_who_is_overtaken_repeats_what_was_begun_and_launches_for_other_pools() -> None:
    outside = Outside()
    [open_] = plan_launches(world(claim("z"), limits=None)).launches
    other = msgspec.structs.replace(pool({"cpu": "8"}), meta=msgspec.structs.replace(pool({}).meta, name="other"))
    elsewhere = claim("o")
    labels = (("karpenter.sh/nodepool", "other"),)
    elsewhere = msgspec.structs.replace(elsewhere, meta=msgspec.structs.replace(elsewhere.meta, labels=labels))
    seen = cluster(
        claim("a"), claim("z"), elsewhere, node_pools=(pool({"cpu": "16"}), other), launch_groups=(open_.group,)
    )
    outside.table.write(KIND, "default", "{}", version=0)
    plan = plan_launches(seen, Terms())
    kept = promise(plan, seen, outside.world(), None)
    assert sorted(one.group.claims for one in plan.launches) == [("a",), ("o",), ("z",)]
    assert sorted(one.group.claims for one in kept.launches) == [("o",), ("z",)]


def test_without_the_lease_nothing_is_promised() -> None:
    outside = Outside()
    plan, seen = planned()
    with leased(outside.world(), "planner") as fence:
        row = outside.table.read("lease", "planner")
        assert row is not None
        outside.table.write("lease", "planner", row.body, version=row.version)
        assert promise(plan, seen, outside.world(), fence).launches == ()
    assert outside.table.rows(KIND) == ()


def test_in_mode_plan_nothing_is_written() -> None:
    outside = Outside()
    plan, seen = planned()
    assert promise(plan, seen, outside.world(mode="plan"), None) == plan
    note_addresses(SUBNETS, outside.world(mode="plan"))
    assert outside.sent("table") == []


def test_a_row_that_cannot_be_read_is_written_anew() -> None:
    outside = Outside()
    outside.table.write(KIND, "default", "{", version=0)
    _, seen = planned()
    books = read_books(outside.world(), seen)
    assert books == (Book(pool="default", version=1),)
    plan = plan_launches(seen, Terms(books=books))
    assert promise(plan, seen, outside.world(), None) == plan
    assert hold("a") not in read_books(outside.world(), seen)[0].holds


def test_what_ec2_said_of_addresses_is_kept_with_its_time() -> None:
    outside = Outside()
    assert known_addresses(outside.world()) is None
    note_addresses(SUBNETS, outside.world())
    expected = Addresses(at=outside.clock.now(), free=(("subnet-a", 9), ("subnet-b", 5), ("subnet-z", 1)))
    assert known_addresses(outside.world()) == expected
    note_addresses(SUBNETS[:1], outside.world())
    assert known_addresses(outside.world()) == Addresses(at=outside.clock.now(), free=(("subnet-a", 9),))


def test_where_ec2_said_nothing_the_last_word_stays() -> None:
    outside = Outside()
    note_addresses(SUBNETS, outside.world())
    outside.calls.clear()
    note_addresses((), outside.world())
    assert outside.sent("table") == []


@pytest.mark.parametrize("body", ["{", '{"at": 3}'])
def test_a_row_of_addresses_that_cannot_be_read_is_none(body: str) -> None:
    outside = Outside()
    outside.table.write(ADDRESSES, NAME, body, version=0)
    assert known_addresses(outside.world()) is None


def test_who_is_overtaken_while_noting_addresses_is_content() -> None:
    outside = Outside()

    def tap(call: Call) -> None:
        if (call.method, call.when) == ("write", "before"):
            raise Conflict("overtaken")

    note_addresses(SUBNETS, outside.world(tap=tap))
    assert known_addresses(outside.world()) is None
