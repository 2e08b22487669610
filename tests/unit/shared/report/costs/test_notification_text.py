"""The text of a daily cost report, word for word."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from shared.report.costs.cost_ledger import ONE_HOUR, CommandSaving, CostLedger
from shared.report.costs.daily_report import DailyReport, build_daily_report
from shared.report.costs.node_lifetimes import NodeLifetime
from shared.report.costs.notification_text import MAX_LINES_PER_SECTION, format_message, format_subject
from sim.world.memory_ports import SUBJECT_PATTERN

FIRST = datetime(2026, 11, 20, tzinfo=UTC)


def make_lifetime(
    name: str, pool: str, hours: float, kind: str = "m5.large", team: str = "", usd_per_hour: float = 0.1
) -> NodeLifetime:
    return NodeLifetime(
        claim=name,
        instance=f"i-{name}",
        pool=pool,
        instance_type=kind,
        capacity_type="spot",
        label=team,
        launched=FIRST,
        usd_per_hour=usd_per_hour,
        hours=hours,
        usd=hours * usd_per_hour,
        on_demand_usd=hours * 3 * usd_per_hour,
        idle_usd=hours * usd_per_hour / 4,
    )


def make_report(number: int, *lives: NodeLifetime, hours: int = 24, label: str = "team") -> DailyReport:
    begin = FIRST + timedelta(days=number)
    saved = (CommandSaving(command="c", at=begin, usd_per_hour=0.5),) if hours == 24 else ()
    return build_daily_report(
        CostLedger(since=begin, until=begin + hours * ONE_HOUR, lives=lives, savings=saved), "prod", label
    )


BEFORE = make_report(0, make_lifetime("a", "web", 12), make_lifetime("z", "old", 5))
TODAY = make_report(1, make_lifetime("a", "web", 24, team="search"), make_lifetime("b", "batch", 12, kind="c5.large"))


def test_cost_message_groups_costs_and_compares_with_the_previous_day() -> None:
    assert format_subject(TODAY) == "Joiner: prod cost $3.60 on 2026-11-21"
    assert (
        format_message(TODAY, BEFORE)
        == """\
The nodes of prod cost $3.60 on 2026-11-21 (UTC), for 36 node hours.
That is $1.90 (112%) more than on the previous day.
Spot saved $7.20, compared with on-demand prices.
1 disruption command saved $12.00 until the end of the day.
$0.90 (25%) was for capacity that no pod requested.

By NodePool
  web: $2.40 (67%), +$1.20
  batch: $1.20 (33%), +$1.20
  old: no cost, -$0.50

By instance type
  m5.large: $2.40 (67%), +$0.70
  c5.large: $1.20 (33%), +$1.20

By capacity type
  spot: $3.60 (100%), +$1.90

By team
  search: $2.40 (67%), +$2.40
  (none): $1.20 (33%), -$0.50

Most expensive nodes
  a: $2.40 in 24.0 hours, m5.large spot, NodePool web
  b: $1.20 in 12.0 hours, c5.large spot, NodePool batch

For more, run: joiner cost --days 7 --by type. Data: costs/2026-11-21.json in the bucket of the stack.
"""
    )


@pytest.mark.parametrize(
    ("report", "before", "expected_line"),
    [
        (TODAY, None, "There is no report for the previous day."),
        (TODAY, TODAY, "The cost is the same as on the previous day."),
        (BEFORE, TODAY, "That is $1.90 (53%) less than on the previous day."),
        (
            TODAY,
            make_report(0, make_lifetime("a", "web", 6), hours=6),
            "The report of the previous day ($0.60) covers only 00:00 to 06:00.",
        ),
        (make_report(1, make_lifetime("a", "web", 6), hours=6), BEFORE, "The report covers only 00:00 to 06:00."),
    ],
)
def test_reports_are_compared_only_if_both_cover_full_days(
    report: DailyReport, before: DailyReport | None, expected_line: str
) -> None:
    words = format_message(report, before)
    assert words.splitlines()[1] == expected_line
    assert ("web: $2.40 (67%), " in words) is (report is TODAY and expected_line.startswith(("That", "The cost")))


def test_long_sections_list_the_most_expensive_lines_and_one_sum() -> None:
    report = make_report(
        1,
        *(make_lifetime(f"n{number}", f"pool-{number:02}", 1 + number) for number in range(MAX_LINES_PER_SECTION + 3)),
        label="",
    )
    words = format_message(report, None)
    assert words.count("  pool-") == MAX_LINES_PER_SECTION
    assert "  3 more: $0.60\n" in words
    assert "By team" not in words


def test_cost_message_covers_days_without_nodes_or_prices() -> None:
    assert "By NodePool\n  none\n" in format_message(make_report(1), None)
    assert "Dearest" not in format_message(make_report(1), None)
    unpriced = format_message(make_report(1, make_lifetime("a", "web", 7, usd_per_hour=0.0)), None)
    assert "7.0 node hours have no known price and are not included in the cost." in unpriced
    assert "  web: $0.00\n" in unpriced


@pytest.mark.parametrize("usd", [0.0, 999.99, 1234567.89])
def test_subject_is_valid_for_sns_with_the_longest_cluster_name(usd: float) -> None:
    longest = msgspec.structs.replace(TODAY, cluster="a" * 60, usd=usd)
    assert SUBJECT_PATTERN.fullmatch(format_subject(longest))
