"""The cost ledger in the bucket: billed hour by hour, reported once a day, and correct after any interruption."""

import json
from datetime import timedelta

import msgspec
import pytest

from shared.errors import Unreachable
from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.action import TerminateInstances
from shared.model.ec2.commitments import Commitments, ReservedInstances
from shared.report.costs.cost_ledger import ONE_HOUR, CostLedger
from shared.report.costs.daily_report import DailyReport, build_daily_report
from shared.report.costs.ledger_store import LEDGER_KEY, MAX_HOURS_PER_CYCLE, bill_costs, read_ledger
from shared.report.journal.journal import ActionResult, JournalEntry, build_entry_key
from shared.state.cluster_state import ClusterState
from sim.fault_tap import Killed, PortCall, Tap
from tests.support.actions_world import Outside
from tests.unit.shared.report.costs.test_cost_ledger import build_cluster, make_claim

CYCLE_INTERVAL = timedelta(minutes=5)
REPORT = "costs/2026-11-21.json"


class Billing(Outside):
    """A world with a bucket and a clock, in which costs are billed cycle by cycle."""

    def __init__(self, fleet_: ClusterSnapshot | None = None) -> None:
        """Start at eight in the morning."""
        super().__init__()
        self.fleet = fleet_ if fleet_ is not None else build_cluster(make_claim("a", self.clock.get_time() - ONE_HOUR))
        self.snapshot_count = 0
        self.is_down = False

    def take_snapshot(self) -> ClusterSnapshot:
        self.snapshot_count += 1
        if self.is_down:
            raise Unreachable("kube")
        return self.fleet

    def run_cycle(self, tap: Tap | None = None) -> list[str]:
        return [
            problem.message
            for problem in bill_costs(self.build_world(tap=tap), lambda: ClusterState(self.take_snapshot()))
        ]

    def run(self, duration: timedelta) -> None:
        end = self.clock.get_time() + duration
        while self.clock.get_time() < end:
            self.clock.advance(CYCLE_INTERVAL)
            assert self.run_cycle() == []

    def get_ledger(self) -> CostLedger:
        ledger = read_ledger(self.bucket)
        assert ledger is not None
        return ledger

    def get_report(self) -> DailyReport:
        return msgspec.json.decode(self.bucket.get(REPORT), type=DailyReport)


def test_new_ledger_starts_with_the_current_hour() -> None:
    billing = Billing()
    billing.clock.advance(timedelta(minutes=17))
    billing.run_cycle()
    assert billing.get_ledger() == CostLedger(
        since=billing.clock.get_time().replace(minute=0), until=billing.clock.get_time().replace(minute=0)
    )
    assert billing.snapshot_count == 0


def test_hour_is_billed_once_shortly_after_it_ends() -> None:
    billing = Billing()
    billing.run(ONE_HOUR)
    assert (billing.get_ledger().lives, billing.snapshot_count) == ((), 0)
    billing.run(CYCLE_INTERVAL)
    [life] = billing.get_ledger().lives
    assert (life.hours, billing.snapshot_count) == (1.0, 1)
    billing.run(ONE_HOUR - CYCLE_INTERVAL)
    assert billing.snapshot_count == 1


def test_daily_report_is_written_at_midnight_and_a_new_day_starts() -> None:
    billing = Billing()
    billing.run(timedelta(hours=18))
    report = billing.get_report()
    assert (report.day, report.node_hours, report.usd) == ("2026-11-21", 16.0, 0.64)
    assert billing.get_ledger().since == report.until
    [line] = [json.loads(line) for line in billing.lines]
    assert line["message"] == "daily cost report written"
    assert (line["costs"], line["usd"], line["nodeHours"]) == ("2026-11-21", 0.64, 16.0)


def test_billing_after_a_gap_catches_up_a_limited_number_of_hours_per_cycle() -> None:
    billing = Billing()
    billing.run_cycle()
    billing.clock.advance(timedelta(hours=MAX_HOURS_PER_CYCLE + 1, minutes=10))
    billing.run_cycle()
    assert billing.get_ledger().until == billing.get_ledger().since + MAX_HOURS_PER_CYCLE * ONE_HOUR
    billing.run_cycle()
    assert billing.get_ledger().until == billing.get_ledger().since + (MAX_HOURS_PER_CYCLE + 1) * ONE_HOUR


def test_only_journal_entries_of_the_billed_hour_are_read() -> None:
    billing = Billing()
    billing.run_cycle()
    begin = billing.clock.get_time()
    for minutes, function in ((30, "lifecycle"), (90, "lifecycle")):
        action = TerminateInstances(instance_ids=("i-a",), message="drained")
        ends = JournalEntry(
            function=function,
            trigger="schedule",
            at=begin + timedelta(minutes=minutes),
            cluster="",
            results=(ActionResult(action=action, result="done"),),
        )
        billing.bucket.put(build_entry_key(ends, "one"), msgspec.json.encode(ends))
    billing.bucket.put("journal/lifecycle/2026/11/21/080001-odd.json", b"{")
    read: list[str] = []
    billing.clock.advance(ONE_HOUR + CYCLE_INTERVAL)
    billing.run_cycle(lambda call: read.append(call.detail) if call.method == "get" and call.phase == "after" else None)
    assert [life.hours for life in billing.get_ledger().lives] == [0.5]
    assert [key for key in read if key.startswith("journal/")] == [
        "journal/lifecycle/2026/11/21/080001-odd.json",
        "journal/lifecycle/2026/11/21/083000-one.json",
    ]


def test_billing_crash_at_any_call_leads_to_the_same_report() -> None:
    uninterrupted = Billing()
    uninterrupted.run(timedelta(hours=17))
    calls = _list_calls_at_midnight(None)
    assert len(calls) > 5
    for number in range(len(calls)):
        billing = Billing()
        billing.run(timedelta(hours=16))
        billing.clock.advance(CYCLE_INTERVAL)
        with pytest.raises(Killed):
            billing.run_cycle(_make_killing_tap(number))
        billing.run(timedelta(minutes=55))
        assert billing.get_report() == uninterrupted.get_report()
        assert billing.get_ledger() == uninterrupted.get_ledger()


def _list_calls_at_midnight(tap: Tap | None) -> list[PortCall]:
    billing = Billing()
    billing.run(timedelta(hours=16))
    billing.clock.advance(CYCLE_INTERVAL)
    billing.calls.clear()
    billing.run_cycle(tap)
    return [call for call in billing.calls if call.port == "bucket"]


def _make_killing_tap(number: int) -> Tap:
    calls: list[PortCall] = []

    def kill_at_call(call: PortCall) -> None:
        calls.append(call)
        if len(calls) == number + 1:
            raise Killed

    return kill_at_call


def test_existing_daily_report_is_not_overwritten() -> None:
    billing = Billing()
    billing.run(timedelta(hours=16))
    billing.bucket.put(REPORT, msgspec.json.encode(build_daily_report(billing.get_ledger(), "earlier")))
    billing.run(CYCLE_INTERVAL)
    assert billing.get_report().cluster == "earlier"
    assert f"{billing.get_ledger().since:%d}" == "22"


@pytest.mark.parametrize("port", ["bucket", "kube"])
def test_unreachable_bucket_or_api_server_is_reported_and_billed_later(port: str) -> None:
    billing = Billing()
    billing.run_cycle()
    billing.clock.advance(ONE_HOUR + CYCLE_INTERVAL)

    def fail_bucket(call: PortCall) -> None:
        if call.port == "bucket" and port == "bucket":
            raise Unreachable("s3")

    billing.is_down = port == "kube"
    [message] = billing.run_cycle(fail_bucket)
    assert message.startswith("not included yet: Unreachable: ")
    assert billing.get_ledger().until == billing.get_ledger().since


def test_unreadable_ledger_is_replaced_by_a_new_ledger() -> None:
    billing = Billing()
    billing.bucket.put(LEDGER_KEY, b"{")
    billing.run_cycle()
    assert billing.get_ledger().since == billing.clock.get_time()


def test_each_billed_hour_has_what_the_commitments_cover_and_so_has_the_report_of_the_day() -> None:
    billing = Billing()
    reserved = ReservedInstances(reservation_id="ri", instance_type="c5.large", count=1, usd_per_hour=0.05)
    claim = make_claim("a", billing.clock.get_time() - ONE_HOUR)
    fleet = build_cluster(claim)
    assert fleet.catalog is not None
    billing.fleet = msgspec.structs.replace(
        fleet, catalog=msgspec.structs.replace(fleet.catalog, commitments=Commitments(reserved=(reserved,)))
    )
    billing.run(ONE_HOUR + CYCLE_INTERVAL)
    [hour] = billing.get_ledger().commitment_hours
    assert hour.hour == billing.get_ledger().since
    assert hour.committed_usd == 0.05
    billing.run(timedelta(hours=17))
    report = billing.get_report()
    assert len(report.commitment_hours) == (report.until - report.since) / ONE_HOUR
    assert len(billing.get_ledger().commitment_hours) < len(report.commitment_hours)


def test_ledger_without_commitments_has_no_hours_of_them() -> None:
    billing = Billing()
    billing.run(ONE_HOUR + CYCLE_INTERVAL)
    assert b"commitment" not in billing.bucket.get(LEDGER_KEY)
