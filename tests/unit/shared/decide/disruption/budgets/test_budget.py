"""Disruption budgets and their schedules."""

from datetime import datetime, timedelta

import pytest

from shared.decide.disruption.budgets.budget import (
    UNLIMITED_DISRUPTIONS,
    compute_allowed_disruptions,
    count_disruptions,
    find_budget_problem,
)
from shared.model.core.calendar.cron_schedule import expand_schedule, is_schedule_active
from shared.model.karpenter.node_pool import DisruptionBudget
from shared.state.cluster_state import ClusterState
from tests.support.lifecycle_cases import (
    NOW,
    POOL,
    STAGES,
    Case,
    make_claim,
    make_cluster,
    make_node,
    make_true_conditions,
    replace_fields,
)

MIDNIGHT = NOW.replace(hour=0)
ONE_HOUR = timedelta(hours=1)


def count_allowed_disruptions(
    *budgets: DisruptionBudget, total: int = 10, now: datetime = NOW, reason: str = "Empty"
) -> int:
    return compute_allowed_disruptions(replace_fields(POOL, budgets=budgets), reason, total, now).count


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
def test_budget_is_a_count_or_a_rounded_up_percentage_and_invalid_values_allow_none(
    nodes: str, total: int, count: int
) -> None:
    assert count_allowed_disruptions(DisruptionBudget(nodes=nodes), total=total) == count


@pytest.mark.parametrize(
    ("budgets", "count"),
    [
        ((), UNLIMITED_DISRUPTIONS),
        ((DisruptionBudget(nodes="5"), DisruptionBudget(nodes="3")), 3),
        ((DisruptionBudget(nodes="0", reasons=("Drifted",)), DisruptionBudget(nodes="3")), 3),
        ((DisruptionBudget(nodes="0", reasons=("Drifted", "Empty")),), 0),
        ((DisruptionBudget(nodes="0", reasons=()),), UNLIMITED_DISRUPTIONS),
        ((DisruptionBudget(nodes="x", reasons=("Drifted",)),), 0),
        ((DisruptionBudget(nodes="5", reasons=("Drifted",), schedule="x", duration=ONE_HOUR),), 0),
        ((DisruptionBudget(nodes="5", schedule="@daily"),), 0),
        ((DisruptionBudget(nodes="5", duration=ONE_HOUR),), 0),
        ((DisruptionBudget(nodes="0", schedule="@daily", duration=ONE_HOUR),), UNLIMITED_DISRUPTIONS),
        ((DisruptionBudget(nodes="0", schedule="@daily", duration=13 * ONE_HOUR),), 0),
    ],
)
def test_smallest_active_budget_applies(budgets: Case, count: int) -> None:
    assert count_allowed_disruptions(*budgets) == count


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (DisruptionBudget(nodes="many"), "nodes 'many' is neither a number nor a percentage up to 100%"),
        (DisruptionBudget(nodes="101%"), "nodes '101%' is neither a number nor a percentage up to 100%"),
        (DisruptionBudget(schedule="0 25 * * *", duration=ONE_HOUR), "hour '25' is not a range within 0-23"),
        (
            DisruptionBudget(schedule="whenever", duration=ONE_HOUR),
            "schedule 'whenever' is neither five fields nor a descriptor",
        ),
        (DisruptionBudget(schedule="@daily"), "schedule and duration belong together: set both or neither"),
        (
            DisruptionBudget(reasons=("Expired",)),
            ("'Expired' is not a disruption reason: use Drifted, Empty, Underutilized"),
        ),
    ],
)
def test_invalid_budget_is_reported_and_allows_no_disruption(bad: DisruptionBudget, words: str) -> None:
    pool = replace_fields(POOL, budgets=(DisruptionBudget(), bad))
    for reason in ("Drifted", "Empty", "Underutilized"):
        allowed_disruptions = compute_allowed_disruptions(pool, reason, 3, NOW)
        assert (allowed_disruptions.count, allowed_disruptions.problem) == (0, find_budget_problem(pool, NOW))
        assert allowed_disruptions.problem.startswith(f"spec.disruption.budgets[1]: {words}")


def test_valid_budget_has_no_problem() -> None:
    assert find_budget_problem(replace_fields(POOL, budgets=(DisruptionBudget(reasons=("Empty",)),)), NOW) == ""


@pytest.mark.parametrize(("minutes", "is_active"), [(-1, False), (0, True), (59, True), (60, False)])
def test_budget_window_starts_at_its_schedule_and_ends_after_its_duration(
    minutes: int,
    is_active: bool,  # noqa: FBT001
) -> None:
    assert is_schedule_active("0 0 * * *", ONE_HOUR, MIDNIGHT + timedelta(minutes=minutes)) is is_active


def test_overlapping_budget_windows_extend_each_other() -> None:
    assert all(
        is_schedule_active("*/30 * * * *", ONE_HOUR, MIDNIGHT + timedelta(minutes=minute)) for minute in range(180)
    )


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
def test_cron_schedule_is_parsed_like_robfig_cron(schedule: str, plain: str) -> None:
    assert expand_schedule(schedule) == plain


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
def test_invalid_cron_schedule_is_rejected(schedule: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        expand_schedule(schedule)


def test_cron_schedule_that_never_matches_is_rejected() -> None:
    with pytest.raises(ValueError, match="never matches"):
        is_schedule_active("0 0 31 2 *", ONE_HOUR, NOW)


def test_cron_day_of_month_step_is_not_treated_as_a_star() -> None:
    tuesday_the_17th = datetime.fromisoformat("2026-11-17T00:30:00Z")
    assert is_schedule_active("0 0 */2 * 1", ONE_HOUR, tuesday_the_17th)
    assert not is_schedule_active("0 0 * * 1", ONE_HOUR, tuesday_the_17th)


@pytest.mark.parametrize(
    ("node_claim", "existing_node", "total", "disrupting"),
    [
        (make_claim(), make_node(), 1, 0),
        (make_claim(), make_node(ready=False), 1, 1),
        (make_claim(deleted=NOW), make_node(), 1, 1),
        (make_claim(), make_node(deleted=NOW), 1, 1),
        (make_claim(deleted=NOW), make_node(ready=False), 1, 1),
        (make_claim(), make_node(fit=False), 0, 0),
        (make_claim(conditions=make_true_conditions(*STAGES, "InstanceTerminating")), make_node(), 0, 0),
    ],
)
def test_disrupting_and_not_ready_nodes_count_against_a_budget(
    node_claim: Case, existing_node: Case, total: int, disrupting: int
) -> None:
    counts = count_disruptions(ClusterState(make_cluster(node_claims=(node_claim,), nodes=(existing_node,))).nodes)
    assert [(count.total, count.disrupting) for count in counts.values()] == ([(total, disrupting)] if total else [])


def test_unmanaged_node_counts_for_no_budget() -> None:
    assert count_disruptions(ClusterState(make_cluster(nodes=(make_node(),))).nodes) == {}
