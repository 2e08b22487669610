"""What nodes cost: hours are exact, whoever came and went, and whatever the journal does not say."""

import json
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from shared.model.action import Action, CreateNodeClaim, PatchMetadata, PatchStatus, TerminateInstances
from shared.model.catalogue import Catalogue
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, TERMINATION_FINALIZER, ZONE
from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.objects import Condition, Meta, Problem, pairs
from shared.model.resources import parse_resources
from shared.report.costs import HOUR, Ledger, billed, day_of, hour_of, idle_share, next_day
from shared.report.days import day, is_whole
from shared.report.journal import Done, Entry, Note
from shared.report.lives import Life
from sim.clock import START
from tests.unit.catalogues import instance_type

MINUTE = timedelta(minutes=1)
EMPTY = Ledger(since=START, until=START)
TYPE = instance_type("m5.large", 2, 8, zones=("a",), price=0.1)
SPOT = msgspec.structs.replace(TYPE.offerings[0], capacity_type="spot", price_usd_per_hour=0.04)
SOLD = msgspec.structs.replace(TYPE, offerings=(*TYPE.offerings, SPOT))
CATALOGUE = Catalogue(region="us-east-1", instance_types=(SOLD,))


def labels(**more: str) -> tuple[tuple[str, str], ...]:
    known = {INSTANCE_TYPE: "m5.large", ZONE: "a", CAPACITY_TYPE: "spot", NODEPOOL: "default"}
    return pairs(known | {key.replace("_", "-"): value for key, value in more.items()})


def claim(name: str, at: datetime, instance: str = "", **more: str) -> NodeClaim:
    return NodeClaim(
        meta=Meta(name=name, uid=name, created_at=at, labels=labels(**more)),
        node_class=NodeClassRef(name="default"),
        provider_id=f"aws:///a/{instance or f'i-{name}'}",
        conditions=(Condition(type="Launched", status="True", since=at),),
    )


def fleet(*claims: NodeClaim, **parts: Any) -> Cluster:
    return Cluster(taken_at=START, node_claims=claims, catalogue=CATALOGUE, **parts)


def entry(at: datetime, *actions: Action, notes: tuple[Note, ...] = ()) -> Entry:
    done = tuple(Done(action=one, result="done") for one in actions)
    return Entry(function="provision", trigger="schedule", at=at, cluster="", done=done, notes=notes)


def born(name: str, at: datetime, **more: str) -> Entry:
    asked = msgspec.structs.replace(claim(name, at, **more), provider_id="")
    status = json.dumps({"providerID": f"aws:///a/i-{name}"})
    return entry(
        at,
        CreateNodeClaim(claim=asked),
        PatchMetadata(kind="NodeClaim", name=name, labels=labels()),
        PatchStatus(kind="NodeClaim", name=name, status=status),
        notes=(Note(kind="NodeClaim", name=name, verdict="launched", why="m5.large", usd_per_hour=0.04),),
    )


def ended(name: str, at: datetime) -> Entry:
    return entry(at, TerminateInstances(instance_ids=(f"i-{name}",), why="drained"))


def bill(ledger: Ledger, *entries: Entry, of: Cluster | None = None, label: str = "") -> Ledger:
    """Bill one hour more."""
    return billed(ledger, entries, of if of is not None else fleet(), label, ledger.until + HOUR)


def one(ledger: Ledger) -> Life:
    [life] = ledger.lives
    return life


def test_a_machine_that_was_there_all_hour_costs_an_hour() -> None:
    life = one(bill(EMPTY, of=fleet(claim("a", START - HOUR))))
    assert (life.hours, life.usd, life.on_demand_usd) == (1.0, 0.04, 0.1)


def test_a_machine_that_came_within_the_hour_costs_what_was_left_of_it() -> None:
    assert one(bill(EMPTY, of=fleet(claim("a", START + 45 * MINUTE)))).hours == 0.25


def test_a_machine_that_came_and_went_within_the_hour_costs_its_minutes() -> None:
    begin = START + 10 * MINUTE
    life = one(bill(EMPTY, born("a", begin), ended("a", begin + 15 * MINUTE)))
    assert (life.hours, life.pool, life.instance) == (0.25, "default", "i-a")
    assert life.usd == pytest.approx(0.01)
    assert life.on_demand_usd == pytest.approx(0.025)


def test_a_machine_whose_claim_nobody_wrote_down_counts_from_its_launch() -> None:
    whole = born("a", START + 10 * MINUTE)
    launched = msgspec.structs.replace(whole, done=whole.done[1:])
    life = one(bill(EMPTY, launched, ended("a", START + 25 * MINUTE)))
    assert life.hours == 0.25
    assert life.usd == pytest.approx(0.01)


def test_a_machine_that_came_after_the_hour_costs_nothing_yet() -> None:
    ledger = bill(EMPTY, of=fleet(claim("a", START + HOUR + MINUTE)))
    assert one(ledger).hours == 0.0
    assert day(ledger, "prod").shares == ()


def test_a_machine_ends_when_it_is_ended_though_its_claim_stays_a_while() -> None:
    first = bill(EMPTY, of=fleet(claim("a", START)))
    second = bill(first, ended("a", START + HOUR + 30 * MINUTE), of=fleet(claim("a", START)))
    assert one(second).hours == 1.5
    assert one(bill(second)).hours == 1.5


def test_a_machine_that_ended_by_itself_ends_when_its_claim_is_let_go() -> None:
    first = bill(EMPTY, of=fleet(claim("a", START)))
    gone = PatchMetadata(kind="NodeClaim", name="a", finalizers=(), why="its instance is gone")
    kept = PatchMetadata(kind="NodeClaim", name="a", finalizers=(TERMINATION_FINALIZER,))
    second = bill(first, entry(START + HOUR + MINUTE, kept), entry(START + HOUR + 30 * MINUTE, gone))
    assert one(second).hours == 1.5


def test_a_machine_whose_end_nobody_wrote_down_ends_with_the_hour_after_which_it_was_missed() -> None:
    first = bill(EMPTY, of=fleet(claim("a", START)))
    second = bill(first)
    assert one(second).hours == 2.0  # it may have ended since
    third = bill(second)
    assert (one(third).hours, one(third).ended) == (2.0, START + 2 * HOUR)


def test_a_machine_that_ended_while_the_hour_was_billed_ends_when_the_next_hour_says() -> None:
    missed = bill(bill(EMPTY, of=fleet(claim("a", START))))
    told = bill(missed, ended("a", START + 2 * HOUR + MINUTE))
    assert one(told).hours == pytest.approx(2 + 1 / 60)


def test_a_claim_that_cannot_be_read_is_not_gone() -> None:
    unread = Problem(kind="NodeClaim", name="a", message="spec.taints: odd")
    ledger = bill(EMPTY, of=fleet(claim("a", START)))
    for _ in range(3):
        ledger = bill(ledger, of=fleet(problems=(unread,)))
    assert one(ledger).hours == 4.0


def test_a_claim_that_came_to_nothing_is_no_machine() -> None:
    asked = msgspec.structs.replace(claim("a", START), provider_id="")
    ledger = bill(EMPTY, entry(START, CreateNodeClaim(claim=asked)))
    assert ledger.lives == ()


def test_a_name_that_comes_again_is_another_machine() -> None:
    first = bill(EMPTY, born("a", START), ended("a", START + 15 * MINUTE))
    again = claim("a", START + HOUR + 30 * MINUTE, instance="i-2")
    second = bill(first, of=fleet(again))
    assert [life.hours for life in second.lives] == [0.25, 0.5]


def test_prices_are_those_of_the_hour() -> None:
    first = bill(EMPTY, of=fleet(claim("a", START)))
    dearer = msgspec.structs.replace(SOLD, offerings=(msgspec.structs.replace(SPOT, price_usd_per_hour=0.06),))
    risen = msgspec.structs.replace(fleet(claim("a", START)), catalogue=Catalogue(region="r", instance_types=(dearer,)))
    assert one(bill(first, of=risen)).usd == pytest.approx(0.1)


def test_without_a_price_hours_are_counted_and_nothing_is_paid() -> None:
    ledger = bill(EMPTY, of=msgspec.structs.replace(fleet(claim("a", START)), catalogue=None))
    report = day(ledger, "prod")
    assert (report.usd, report.node_hours, report.shares[0].unpriced_hours) == (0.0, 1.0, 1.0)


def test_costs_are_told_apart_by_a_label_of_choice() -> None:
    both = fleet(claim("a", START, team="search"), claim("b", START))
    ledger = bill(EMPTY, born("c", START, team="ads"), of=both, label="team")
    assert [(share.label, share.nodes) for share in day(ledger, "prod", "team").shares] == [
        ("", 1),
        ("ads", 1),
        ("search", 1),
    ]


def test_the_same_hour_billed_by_two_readings_is_the_same_ledger() -> None:
    told = (born("a", START + MINUTE), born("b", START + 2 * MINUTE), ended("a", START + 9 * MINUTE))
    assert bill(EMPTY, *told) == bill(EMPTY, *reversed(told))


def test_what_failed_did_not_happen() -> None:
    action = TerminateInstances(instance_ids=("i-a",), why="drained")
    failed = Entry(
        function="lifecycle",
        trigger="schedule",
        at=START + MINUTE,
        cluster="",
        done=(Done(action=action, result="failed", message="Throttled: later"),),
    )
    assert one(bill(EMPTY, failed, of=fleet(claim("a", START)))).hours == 1.0


@pytest.mark.parametrize("status", ["", "[]", "{}", '{"providerID": null}'])
def test_a_status_that_names_no_instance_is_none(status: str) -> None:
    odd = entry(START + MINUTE, PatchStatus(kind="NodeClaim", name="a", status=status))
    assert one(bill(EMPTY, odd, of=fleet(claim("a", START)))).instance == "i-a"


def test_a_new_day_begins_with_the_machines_that_are_still_there() -> None:
    both = fleet(claim("a", START), claim("b", START))
    ledger = next_day(bill(EMPTY, ended("a", START + MINUTE), of=both))
    assert (one(ledger).claim, one(ledger).hours, ledger.since) == ("b", 0.0, START + HOUR)
    assert ledger.savings == ()


def saved(at: datetime, name: str, verdict: str = "INITIALIZED") -> Entry:
    return entry(at, notes=(Note(kind="Command", name=name, verdict=verdict, why="", usd_per_hour=0.5),))


def test_a_command_saves_once_from_its_end_to_the_end_of_the_day() -> None:
    told = (saved(START, "x", "PROPOSED"), saved(START + 30 * MINUTE, "x"), saved(START + 40 * MINUTE, "x"))
    report = day(bill(EMPTY, *told), "prod")
    assert (report.commands, report.saved_per_hour_usd, report.saved_by_commands_usd) == (1, 0.5, 0.25)


@pytest.mark.parametrize(
    ("used", "idle"),
    [({}, 1.0), ({"cpu": "4", "memory": "15Gi"}, 0.5), ({"cpu": "8"}, pytest.approx(1 / 3)), ({"cpu": "99"}, 0.25)],
)
def test_idle_is_what_nobody_requests_by_its_worth(used: dict[str, str], idle: float) -> None:
    allocatable = parse_resources({"cpu": "8", "memory": "30Gi"})
    found = idle_share(allocatable, parse_resources(used))
    assert found == (idle if used.get("cpu") != "99" else pytest.approx(1 / 3))


def test_nothing_is_idle_where_there_is_nothing() -> None:
    assert idle_share(parse_resources({}), parse_resources({})) == 0.0


def test_the_dearest_come_first_and_a_whole_day_is_whole() -> None:
    ledger = Ledger(since=day_of(START), until=day_of(START))
    for _ in range(24):
        ledger = bill(ledger, of=fleet(claim("a", START - 9 * HOUR), claim("b", START)))
    report = day(ledger, "prod")
    assert [(dear.claim, dear.hours) for dear in report.dearest] == [("a", 24.0), ("b", 16.0)]
    assert is_whole(report)
    assert not is_whole(day(bill(EMPTY), "prod"))
    assert report.saved_by_spot_usd == pytest.approx(40 * 0.06)


def test_hours_and_days_begin_in_utc() -> None:
    late = START.replace(hour=23, minute=59, second=59)
    assert (hour_of(late).hour, hour_of(late).minute, day_of(late).hour) == (23, 0, 0)
