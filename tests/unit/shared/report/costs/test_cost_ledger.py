"""Node costs: hours are exact when nodes start or end within the hour, and when journal entries are missing."""

import json
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from shared.model.cloud_provider.instance_type import Catalog
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, TERMINATION_FINALIZER, ZONE
from shared.model.core.metadata import Condition, ObjectMeta, Problem, build_pairs
from shared.model.core.resources import parse_resources
from shared.model.decisions.action import Action, CreateNodeClaim, PatchMetadata, PatchStatus, TerminateInstances
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.report.costs.cost_ledger import (
    ONE_HOUR,
    CostLedger,
    begin_next_day,
    bill_until,
    get_day_start,
    get_hour_start,
)
from shared.report.costs.daily_report import build_daily_report, is_complete
from shared.report.costs.idle_cost import compute_idle_ratio
from shared.report.costs.node_lifetimes import NodeLifetime
from shared.report.journal.journal import ActionResult, DecisionNote, JournalEntry
from shared.state.cluster_state import ClusterState
from sim.time.virtual_clock import DEFAULT_START_TIME
from tests.support.catalogues import make_instance_type

ONE_MINUTE = timedelta(minutes=1)
EMPTY = CostLedger(since=DEFAULT_START_TIME, until=DEFAULT_START_TIME)
TYPE = make_instance_type("m5.large", 2, 8, zones=("a",), price=0.1)
SPOT = msgspec.structs.replace(TYPE.offerings[0], capacity_type="spot", price_usd_per_hour=0.04)
SOLD = msgspec.structs.replace(TYPE, offerings=(*TYPE.offerings, SPOT))
CATALOGUE = Catalog(region="us-east-1", instance_types=(SOLD,))


def make_labels(**labels: str) -> tuple[tuple[str, str], ...]:
    default_labels = {INSTANCE_TYPE: "m5.large", ZONE: "a", CAPACITY_TYPE: "spot", NODEPOOL: "default"}
    return build_pairs(default_labels | {key.replace("_", "-"): value for key, value in labels.items()})


def make_claim(name: str, at: datetime, instance: str = "", **labels: str) -> NodeClaim:
    return NodeClaim(
        meta=ObjectMeta(name=name, uid=name, created_at=at, labels=make_labels(**labels)),
        node_class=NodeClassRef(name="default"),
        provider_id=f"aws:///a/{instance or f'i-{name}'}",
        conditions=(Condition(type="Launched", status="True", since=at),),
    )


def build_cluster(*claims: NodeClaim, **parts: Any) -> ClusterSnapshot:
    return ClusterSnapshot(taken_at=DEFAULT_START_TIME, node_claims=claims, catalog=CATALOGUE, **parts)


def make_entry(at: datetime, *actions: Action, notes: tuple[DecisionNote, ...] = ()) -> JournalEntry:
    results = tuple(ActionResult(action=action, result="done") for action in actions)
    return JournalEntry(function="provision", trigger="schedule", at=at, cluster="", results=results, notes=notes)


def make_launch_entry(name: str, at: datetime, **labels: str) -> JournalEntry:
    unlaunched_claim = msgspec.structs.replace(make_claim(name, at, **labels), provider_id="")
    status = json.dumps({"providerID": f"aws:///a/i-{name}"})
    return make_entry(
        at,
        CreateNodeClaim(claim=unlaunched_claim),
        PatchMetadata(kind="NodeClaim", name=name, labels=make_labels()),
        PatchStatus(kind="NodeClaim", name=name, status=status),
        notes=(DecisionNote(kind="NodeClaim", name=name, verdict="launched", reason="m5.large", usd_per_hour=0.04),),
    )


def make_termination_entry(name: str, at: datetime) -> JournalEntry:
    return make_entry(at, TerminateInstances(instance_ids=(f"i-{name}",), message="drained"))


def bill_hour(
    ledger: CostLedger, *entries: JournalEntry, cluster: ClusterSnapshot | None = None, label: str = ""
) -> CostLedger:
    """Bill one more hour."""
    state = ClusterState(cluster if cluster is not None else build_cluster())
    return bill_until(ledger, entries, state, label, ledger.until + ONE_HOUR)


def get_single_lifetime(ledger: CostLedger) -> NodeLifetime:
    [life] = ledger.lives
    return life


def test_instance_running_all_hour_is_billed_one_hour() -> None:
    life = get_single_lifetime(bill_hour(EMPTY, cluster=build_cluster(make_claim("a", DEFAULT_START_TIME - ONE_HOUR))))
    assert (life.hours, life.usd, life.on_demand_usd) == (1.0, 0.04, 0.1)


def test_instance_launched_within_the_hour_is_billed_for_the_rest_of_the_hour() -> None:
    assert (
        get_single_lifetime(
            bill_hour(EMPTY, cluster=build_cluster(make_claim("a", DEFAULT_START_TIME + 45 * ONE_MINUTE)))
        ).hours
        == 0.25
    )


def test_instance_launched_and_terminated_within_the_hour_is_billed_by_minutes() -> None:
    begin = DEFAULT_START_TIME + 10 * ONE_MINUTE
    life = get_single_lifetime(
        bill_hour(EMPTY, make_launch_entry("a", begin), make_termination_entry("a", begin + 15 * ONE_MINUTE))
    )
    assert (life.hours, life.pool, life.instance) == (0.25, "default", "i-a")
    assert life.usd == pytest.approx(0.01)
    assert life.on_demand_usd == pytest.approx(0.025)


def test_instance_without_a_recorded_nodeclaim_is_billed_from_its_launch() -> None:
    launch_entry = make_launch_entry("a", DEFAULT_START_TIME + 10 * ONE_MINUTE)
    launched = msgspec.structs.replace(launch_entry, results=launch_entry.results[1:])
    life = get_single_lifetime(
        bill_hour(EMPTY, launched, make_termination_entry("a", DEFAULT_START_TIME + 25 * ONE_MINUTE))
    )
    assert life.hours == 0.25
    assert life.usd == pytest.approx(0.01)


def test_instance_launched_after_the_hour_is_not_billed_yet() -> None:
    ledger = bill_hour(EMPTY, cluster=build_cluster(make_claim("a", DEFAULT_START_TIME + ONE_HOUR + ONE_MINUTE)))
    assert get_single_lifetime(ledger).hours == 0.0
    assert build_daily_report(ledger, "prod").shares == ()


def test_instance_lifetime_ends_at_termination_even_if_the_nodeclaim_remains() -> None:
    first = bill_hour(EMPTY, cluster=build_cluster(make_claim("a", DEFAULT_START_TIME)))
    second = bill_hour(
        first,
        make_termination_entry("a", DEFAULT_START_TIME + ONE_HOUR + 30 * ONE_MINUTE),
        cluster=build_cluster(make_claim("a", DEFAULT_START_TIME)),
    )
    assert get_single_lifetime(second).hours == 1.5
    assert get_single_lifetime(bill_hour(second)).hours == 1.5


def test_instance_lifetime_ends_when_the_nodeclaim_finalizer_is_removed() -> None:
    first = bill_hour(EMPTY, cluster=build_cluster(make_claim("a", DEFAULT_START_TIME)))
    finalizer_removal = PatchMetadata(kind="NodeClaim", name="a", finalizers=(), message="its instance was terminated")
    finalizer_update = PatchMetadata(kind="NodeClaim", name="a", finalizers=(TERMINATION_FINALIZER,))
    second = bill_hour(
        first,
        make_entry(DEFAULT_START_TIME + ONE_HOUR + ONE_MINUTE, finalizer_update),
        make_entry(DEFAULT_START_TIME + ONE_HOUR + 30 * ONE_MINUTE, finalizer_removal),
    )
    assert get_single_lifetime(second).hours == 1.5


def test_instance_without_a_recorded_end_ends_after_the_first_hour_it_is_missing() -> None:
    first = bill_hour(EMPTY, cluster=build_cluster(make_claim("a", DEFAULT_START_TIME)))
    second = bill_hour(first)
    assert get_single_lifetime(second).hours == 2.0  # it may have ended since
    third = bill_hour(second)
    assert (get_single_lifetime(third).hours, get_single_lifetime(third).ended) == (
        2.0,
        DEFAULT_START_TIME + 2 * ONE_HOUR,
    )


def test_termination_recorded_during_billing_counts_in_the_next_hour() -> None:
    missed = bill_hour(bill_hour(EMPTY, cluster=build_cluster(make_claim("a", DEFAULT_START_TIME))))
    updated_ledger = bill_hour(missed, make_termination_entry("a", DEFAULT_START_TIME + 2 * ONE_HOUR + ONE_MINUTE))
    assert get_single_lifetime(updated_ledger).hours == pytest.approx(2 + 1 / 60)


def test_unreadable_nodeclaim_is_still_billed() -> None:
    unread = Problem(kind="NodeClaim", name="a", message="spec.taints: odd")
    ledger = bill_hour(EMPTY, cluster=build_cluster(make_claim("a", DEFAULT_START_TIME)))
    for _ in range(3):
        ledger = bill_hour(ledger, cluster=build_cluster(problems=(unread,)))
    assert get_single_lifetime(ledger).hours == 4.0


def test_nodeclaim_that_never_launched_is_not_billed() -> None:
    unlaunched_claim = msgspec.structs.replace(make_claim("a", DEFAULT_START_TIME), provider_id="")
    ledger = bill_hour(EMPTY, make_entry(DEFAULT_START_TIME, CreateNodeClaim(claim=unlaunched_claim)))
    assert ledger.lives == ()


def test_nodeclaim_name_used_again_is_a_separate_instance() -> None:
    first = bill_hour(
        EMPTY,
        make_launch_entry("a", DEFAULT_START_TIME),
        make_termination_entry("a", DEFAULT_START_TIME + 15 * ONE_MINUTE),
    )
    second_claim = make_claim("a", DEFAULT_START_TIME + ONE_HOUR + 30 * ONE_MINUTE, instance="i-2")
    second = bill_hour(first, cluster=build_cluster(second_claim))
    assert [life.hours for life in second.lives] == [0.25, 0.5]


def test_each_hour_is_billed_at_its_own_price() -> None:
    first = bill_hour(EMPTY, cluster=build_cluster(make_claim("a", DEFAULT_START_TIME)))
    dearer = msgspec.structs.replace(SOLD, offerings=(msgspec.structs.replace(SPOT, price_usd_per_hour=0.06),))
    risen = msgspec.structs.replace(
        build_cluster(make_claim("a", DEFAULT_START_TIME)), catalog=Catalog(region="r", instance_types=(dearer,))
    )
    assert get_single_lifetime(bill_hour(first, cluster=risen)).usd == pytest.approx(0.1)


def test_instance_without_a_price_counts_hours_but_costs_nothing() -> None:
    ledger = bill_hour(
        EMPTY, cluster=msgspec.structs.replace(build_cluster(make_claim("a", DEFAULT_START_TIME)), catalog=None)
    )
    report = build_daily_report(ledger, "prod")
    assert (report.usd, report.node_hours, report.shares[0].unpriced_hours) == (0.0, 1.0, 1.0)


def test_costs_are_grouped_by_a_configured_label() -> None:
    cluster = build_cluster(make_claim("a", DEFAULT_START_TIME, team="search"), make_claim("b", DEFAULT_START_TIME))
    ledger = bill_hour(EMPTY, make_launch_entry("c", DEFAULT_START_TIME, team="ads"), cluster=cluster, label="team")
    assert [(share.label, share.nodes) for share in build_daily_report(ledger, "prod", "team").shares] == [
        ("", 1),
        ("ads", 1),
        ("search", 1),
    ]


def test_billing_does_not_depend_on_journal_entry_order() -> None:
    entries = (
        make_launch_entry("a", DEFAULT_START_TIME + ONE_MINUTE),
        make_launch_entry("b", DEFAULT_START_TIME + 2 * ONE_MINUTE),
        make_termination_entry("a", DEFAULT_START_TIME + 9 * ONE_MINUTE),
    )
    assert bill_hour(EMPTY, *entries) == bill_hour(EMPTY, *reversed(entries))


def test_failed_termination_does_not_end_the_instance_lifetime() -> None:
    action = TerminateInstances(instance_ids=("i-a",), message="drained")
    failed = JournalEntry(
        function="lifecycle",
        trigger="schedule",
        at=DEFAULT_START_TIME + ONE_MINUTE,
        cluster="",
        results=(ActionResult(action=action, result="failed", message="Throttled: later"),),
    )
    assert (
        get_single_lifetime(bill_hour(EMPTY, failed, cluster=build_cluster(make_claim("a", DEFAULT_START_TIME)))).hours
        == 1.0
    )


@pytest.mark.parametrize("status", ["", "[]", "{}", '{"providerID": null}'])
def test_nodeclaim_status_without_a_provider_id_is_ignored(status: str) -> None:
    odd = make_entry(DEFAULT_START_TIME + ONE_MINUTE, PatchStatus(kind="NodeClaim", name="a", status=status))
    assert (
        get_single_lifetime(bill_hour(EMPTY, odd, cluster=build_cluster(make_claim("a", DEFAULT_START_TIME)))).instance
        == "i-a"
    )


def test_next_day_starts_with_the_instances_still_running() -> None:
    cluster = build_cluster(make_claim("a", DEFAULT_START_TIME), make_claim("b", DEFAULT_START_TIME))
    ledger = begin_next_day(
        bill_hour(EMPTY, make_termination_entry("a", DEFAULT_START_TIME + ONE_MINUTE), cluster=cluster)
    )
    assert (get_single_lifetime(ledger).claim, get_single_lifetime(ledger).hours, ledger.since) == (
        "b",
        0.0,
        DEFAULT_START_TIME + ONE_HOUR,
    )
    assert ledger.savings == ()


def make_command_entry(at: datetime, name: str, verdict: str = "INITIALIZED") -> JournalEntry:
    return make_entry(
        at, notes=(DecisionNote(kind="Command", name=name, verdict=verdict, reason="", usd_per_hour=0.5),)
    )


def test_disruption_command_saves_once_from_its_end_until_the_end_of_the_day() -> None:
    entries = (
        make_command_entry(DEFAULT_START_TIME, "x", "PROPOSED"),
        make_command_entry(DEFAULT_START_TIME + 30 * ONE_MINUTE, "x"),
        make_command_entry(DEFAULT_START_TIME + 40 * ONE_MINUTE, "x"),
    )
    report = build_daily_report(bill_hour(EMPTY, *entries), "prod")
    assert (report.commands, report.saved_per_hour_usd, report.saved_by_commands_usd) == (1, 0.5, 0.25)


@pytest.mark.parametrize(
    ("used", "idle"),
    [({}, 1.0), ({"cpu": "4", "memory": "15Gi"}, 0.5), ({"cpu": "8"}, pytest.approx(1 / 3)), ({"cpu": "99"}, 0.25)],
)
def test_idle_ratio_is_unrequested_capacity_weighted_by_price(used: dict[str, str], idle: float) -> None:
    allocatable = parse_resources({"cpu": "8", "memory": "30Gi"})
    idle_ratio = compute_idle_ratio(allocatable, parse_resources(used))
    assert idle_ratio == (idle if used.get("cpu") != "99" else pytest.approx(1 / 3))


def test_empty_capacity_has_an_idle_ratio_of_zero() -> None:
    assert compute_idle_ratio(parse_resources({}), parse_resources({})) == 0.0


def test_daily_report_lists_the_most_expensive_nodes_first_and_covers_a_full_day() -> None:
    ledger = CostLedger(since=get_day_start(DEFAULT_START_TIME), until=get_day_start(DEFAULT_START_TIME))
    for _ in range(24):
        ledger = bill_hour(
            ledger,
            cluster=build_cluster(
                make_claim("a", DEFAULT_START_TIME - 9 * ONE_HOUR), make_claim("b", DEFAULT_START_TIME)
            ),
        )
    report = build_daily_report(ledger, "prod")
    assert [(dear.claim, dear.hours) for dear in report.most_expensive_nodes] == [("a", 24.0), ("b", 16.0)]
    assert is_complete(report)
    assert not is_complete(build_daily_report(bill_hour(EMPTY), "prod"))
    assert report.saved_by_spot_usd == pytest.approx(40 * 0.06)


def test_hours_and_days_start_in_utc() -> None:
    late = DEFAULT_START_TIME.replace(hour=23, minute=59, second=59)
    assert (get_hour_start(late).hour, get_hour_start(late).minute, get_day_start(late).hour) == (23, 0, 0)
