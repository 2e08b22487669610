"""Disruption budgets and their schedules."""

from datetime import datetime, timedelta

import pytest

from shared.disruption.budgets import UNLIMITED, allowance, tallies, unreadable
from shared.disruption.cron import is_open, plain_schedule
from shared.model.nodepools import Budget
from shared.model.state import state_nodes
from tests.unit.lifecycle_cases import NOW, POOL, STAGES, Case, changed, claim, cluster, node, true

MIDNIGHT = NOW.replace(hour=0)
HOUR = timedelta(hours=1)


def allowed(*budgets: Budget, total: int = 10, now: datetime = NOW, reason: str = "Empty") -> int:
    return allowance(changed(POOL, budgets=budgets), reason, total, now).count


@pytest.mark.parametrize(
    ("nodes", "total", "count"),
    [
        ("0", 10, 0),
        ("7", 10, 7),
        ("10%", 10, 1),
        ("10%", 11, 2),
        ("10%", 0, 0),
        ("100%", 3, 3),
        ("0%", 10, 0),
        ("101%", 10, 0),
        ("-1", 10, 0),
        ("", 10, 0),
        ("1.5", 10, 0),
        ("10%\n", 10, 0),
    ],
)
def test_a_limit_is_a_count_or_a_percentage_rounded_up_and_anything_else_allows_none(
    nodes: str, total: int, count: int
) -> None:
    assert allowed(Budget(nodes=nodes), total=total) == count


@pytest.mark.parametrize(
    ("budgets", "count"),
    [
        ((), UNLIMITED),
        ((Budget(nodes="5"), Budget(nodes="3")), 3),
        ((Budget(nodes="0", reasons=("Drifted",)), Budget(nodes="3")), 3),
        ((Budget(nodes="0", reasons=("Drifted", "Empty")),), 0),
        ((Budget(nodes="0", reasons=()),), UNLIMITED),
        ((Budget(nodes="x", reasons=("Drifted",)),), 0),
        ((Budget(nodes="5", reasons=("Drifted",), schedule="x", duration=HOUR),), 0),
        ((Budget(nodes="5", schedule="@daily"),), 0),
        ((Budget(nodes="5", duration=HOUR),), 0),
        ((Budget(nodes="0", schedule="@daily", duration=HOUR),), UNLIMITED),
        ((Budget(nodes="0", schedule="@daily", duration=13 * HOUR),), 0),
    ],
)
def test_the_least_of_the_budgets_that_apply_counts(budgets: Case, count: int) -> None:
    assert allowed(*budgets) == count


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (Budget(nodes="many"), "nodes 'many' is neither a number nor a percentage up to 100%"),
        (Budget(nodes="101%"), "nodes '101%' is neither a number nor a percentage up to 100%"),
        (Budget(schedule="0 25 * * *", duration=HOUR), "hour '25' is not a range within 0-23"),
        (Budget(schedule="whenever", duration=HOUR), "schedule 'whenever' is neither five fields nor a descriptor"),
        (Budget(schedule="@daily"), "schedule and duration go together: write both or neither"),
        (Budget(reasons=("Expired",)), "'Expired' is no reason: write some of Drifted, Empty, Underutilized"),
    ],
)
def test_a_budget_that_cannot_be_read_is_named_and_allows_nothing(bad: Budget, words: str) -> None:
    pool = changed(POOL, budgets=(Budget(), bad))
    for reason in ("Drifted", "Empty", "Underutilized"):
        found = allowance(pool, reason, 3, NOW)
        assert (found.count, found.problem) == (0, unreadable(pool, NOW))
        assert found.problem.startswith(f"spec.disruption.budgets[1]: {words}")


def test_nothing_is_wrong_with_a_budget_that_can_be_read() -> None:
    assert unreadable(changed(POOL, budgets=(Budget(reasons=("Empty",)),)), NOW) == ""


@pytest.mark.parametrize(("minutes", "is_active"), [(-1, False), (0, True), (59, True), (60, False)])
def test_a_window_opens_at_its_hit_and_closes_when_its_duration_is_over(
    minutes: int,
    is_active: bool,  # noqa: FBT001
) -> None:
    assert is_open("0 0 * * *", HOUR, MIDNIGHT + timedelta(minutes=minutes)) is is_active


def test_windows_that_overlap_extend_each_other() -> None:
    assert all(is_open("*/30 * * * *", HOUR, MIDNIGHT + timedelta(minutes=one)) for one in range(180))


@pytest.mark.parametrize(
    ("schedule", "plain"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("? * * JAN-mar Mon,2", "* * * 1,2,3 1,2"),
        ("50/4 22/1 */10 */1 1-5/2", "50,54,58 22,23 1,11,21,31 * 1,3,5"),
        ("5-5/2 1,* * * 5/1", "5 * * * 5,6"),
    ],
)
def test_a_schedule_is_read_as_robfig_s_cron_reads_it(schedule: str, plain: str) -> None:
    assert plain_schedule(schedule) == plain


@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "* * * *",
        "* * * * * *",
        "@reboot",
        "@every 1h",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 7",
        "* * * * tue-mon",
        "* * * * 5-1",
        "*/0 * * * *",
        "*/x * * * *",
        "1, * * * *",
        "1-2-3 * * * *",
        "-1 * * * *",
        "L * * * *",
        "* * L * *",
        "* * * * 1#2",
        "* * * * mond",
        "²  * * * *",
        "TZ=UTC * * * *",
    ],
)
def test_what_is_not_a_schedule_is_refused(schedule: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        plain_schedule(schedule)


def test_a_date_that_never_comes_is_refused() -> None:
    with pytest.raises(ValueError, match="never comes"):
        is_open("0 0 31 2 *", HOUR, NOW)


def test_a_step_over_days_is_no_star() -> None:
    tuesday_the_17th = datetime.fromisoformat("2026-11-17T00:30:00Z")
    assert is_open("0 0 */2 * 1", HOUR, tuesday_the_17th)
    assert not is_open("0 0 * * 1", HOUR, tuesday_the_17th)


@pytest.mark.parametrize(
    ("mine", "there", "total", "disrupting"),
    [
        (claim(), node(), 1, 0),
        (claim(), node(ready=False), 1, 1),
        (claim(deleted=NOW), node(), 1, 1),
        (claim(), node(deleted=NOW), 1, 1),
        (claim(deleted=NOW), node(ready=False), 1, 1),
        (claim(), node(fit=False), 0, 0),
        (claim(conditions=true(*STAGES, "InstanceTerminating")), node(), 0, 0),
    ],
)
def test_what_counts_against_a_budget(mine: Case, there: Case, total: int, disrupting: int) -> None:
    counted = tallies(state_nodes(cluster(node_claims=(mine,), nodes=(there,))))
    assert [(one.total, one.disrupting) for one in counted.values()] == ([(total, disrupting)] if total else [])


def test_a_node_that_nobody_manages_counts_for_no_budget() -> None:
    assert tallies(state_nodes(cluster(nodes=(node(),)))) == {}
