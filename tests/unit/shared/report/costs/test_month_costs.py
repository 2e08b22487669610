"""The costs of the month: from the reports of its days and the ledger of today, stored in one row."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from shared.errors import Unreachable
from shared.model.decisions.month_costs import MonthCosts
from shared.report.costs.cost_ledger import CommitmentHour, CostLedger
from shared.report.costs.daily_report import DailyReport
from shared.report.costs.ledger_store import LEDGER_KEY
from shared.report.costs.month_costs import compute_month_costs, read_month_costs, update_month_costs
from shared.report.costs.node_lifetimes import NodeLifetime
from tests.support.actions_world import Outside

DAY = datetime(2026, 11, 21, tzinfo=UTC)


def write_costs(outside: Outside, reports: dict[str, float], today_usd: float, day: datetime = DAY) -> None:
    for date, usd in reports.items():
        report = DailyReport(
            day=date,
            cluster="joiner",
            since=day,
            until=day,
            usd=usd,
            node_hours=1,
            saved_by_spot_usd=0,
            idle_usd=0,
        )
        outside.bucket.put(f"costs/{date}.json", msgspec.json.encode(report))
    lives = (NodeLifetime(claim="a", usd=today_usd),)
    ledger = CostLedger(since=day, until=day + timedelta(hours=5), lives=lives)
    outside.bucket.put(LEDGER_KEY, msgspec.json.encode(ledger))


def test_month_has_the_reports_of_its_days_and_the_ledger() -> None:
    outside = Outside()
    write_costs(outside, {"2026-10-31": 99.0, "2026-11-19": 5.0, "2026-11-20": 7.0}, 1.5)
    costs = compute_month_costs(outside.bucket, None, DAY + timedelta(hours=6))
    assert costs is not None
    assert (costs.past_days, costs.usd) == ((("2026-11-19", 5.0), ("2026-11-20", 7.0)), 13.5)


def test_reports_that_are_known_are_not_read_again() -> None:
    outside = Outside()
    write_costs(outside, {"2026-11-19": 5.0, "2026-11-20": 7.0}, 0.0)
    previous = MonthCosts(month="2026-11", until=DAY, past_days=(("2026-11-19", 4.0),))
    costs = compute_month_costs(outside.bucket, previous, DAY)
    assert costs is not None
    assert costs.past_days == (("2026-11-19", 4.0), ("2026-11-20", 7.0))


def test_new_month_begins_at_zero_while_the_ledger_is_still_of_the_last_one() -> None:
    outside = Outside()
    write_costs(outside, {"2026-11-20": 7.0}, 3.0)
    costs = compute_month_costs(outside.bucket, None, datetime(2026, 12, 1, tzinfo=UTC))
    assert costs is not None
    assert (costs.month, costs.usd) == ("2026-12", 0.0)


def test_day_with_a_report_and_a_ledger_counts_once() -> None:
    outside = Outside()
    write_costs(outside, {"2026-11-21": 8.0}, 8.0)
    costs = compute_month_costs(outside.bucket, None, DAY)
    assert costs is not None
    assert costs.usd == 8.0


@pytest.mark.parametrize(("settings", "usd"), [({"monthly_budget_usd": 100.0}, 3.0), ({}, None)])
def test_row_is_written_only_if_there_is_a_budget(settings: dict[str, Any], usd: float | None) -> None:
    outside = Outside(**settings)
    write_costs(outside, {}, 3.0, datetime(*outside.clock.get_time().timetuple()[:3], tzinfo=UTC))
    update_month_costs(outside.build_world())
    row = read_month_costs(outside.build_world())
    assert (None if row is None else row[0].usd) == usd


def test_costs_that_cannot_be_read_are_a_problem() -> None:
    outside = Outside(monthly_budget_usd=100.0)

    def fail(_: object) -> None:
        raise Unreachable("no bucket")

    costs, (problem,) = update_month_costs(outside.build_world(tap=fail))
    assert costs is None
    assert "the budget is not updated: Unreachable" in problem.message


def test_covered_usage_counts_at_the_rates_of_the_commitments() -> None:
    outside = Outside()
    write_costs(outside, {"2026-11-20": 7.0}, 3.0)
    hour = CommitmentHour(hour=DAY, committed_usd=2.0, unused_usd=1.0, covered_usd=1.5, uncovered_usd=0.5, paid_usd=1.0)
    for key, kind in (("costs/2026-11-20.json", DailyReport), (LEDGER_KEY, CostLedger)):
        costs_document = msgspec.json.decode(outside.bucket.get(key), type=kind)
        with_hours = msgspec.structs.replace(costs_document, commitment_hours=(hour, hour))
        outside.bucket.put(key, msgspec.json.encode(with_hours))
    costs = compute_month_costs(outside.bucket, None, DAY + timedelta(hours=6))
    assert costs is not None
    assert (costs.past_days, costs.today_usd) == ((("2026-11-20", 6.0),), 2.0)
