"""Disruption settings of the deployment: a budget for all nodes, its time zone, and input errors."""

import zoneinfo
from datetime import UTC, datetime, timedelta

import pytest

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings, parse_disruption_settings
from shared.model.core.calendar.time_zones import get_time_zone
from shared.model.core.metadata import Problem
from shared.model.karpenter.node_pool import DisruptionBudget
from tests.support.catalogues import make_node_pool
from tests.support.disruption_fleet import decide_disruption, get_verdict, make_fleet, make_node_with_pods

NINE_TO_FIVE = '[{"nodes": "0", "schedule": "0 9 * * *", "duration": "8h"}]'


def test_cluster_budgets_use_the_node_pool_format() -> None:
    text = '[{"nodes": "5%"}, {"nodes": "0", "reasons": ["Drifted"], "schedule": "@daily", "duration": "1h30m"}]'
    assert parse_disruption_settings(text, "Europe/Berlin", spot_to_spot=True) == DisruptionSettings(
        spot_to_spot=True,
        budgets=(
            DisruptionBudget(nodes="5%"),
            DisruptionBudget(nodes="0", reasons=("Drifted",), schedule="@daily", duration=timedelta(minutes=90)),
        ),
        time_zone="Europe/Berlin",
    )


def test_empty_disruption_settings_are_the_defaults() -> None:
    assert parse_disruption_settings("", "") == DisruptionSettings()


@pytest.mark.parametrize(
    ("budgets", "zone", "words"),
    [
        ("10%", "UTC", "disruption-budgets: Expected `array`"),
        ('[{"nodes": 5}]', "UTC", "disruption-budgets: Expected `str`, got `int` - at `$[0].nodes`"),
        ('[{"node": "5"}]', "UTC", "unknown field `node`"),
        ('[{"nodes": "5"}, {"nodes": "101%"}]', "UTC", "disruption-budgets[1]: nodes '101%' is neither"),
        ('[{"reasons": ["Expired"]}]', "UTC", "Invalid enum value 'Expired' - at `$[0].reasons[0]`"),
        ('[{"schedule": "0 25 * * *", "duration": "1h"}]', "UTC", "disruption-budgets[0]: hour '25' is not a range"),
        ('[{"schedule": "@daily"}]', "UTC", "disruption-budgets[0]: schedule and duration belong together"),
        ('[{"schedule": "@daily", "duration": "soon"}]', "UTC", "disruption-budgets[0].duration: not a dur"),
        ('[{"nodes": "5"}]', "Berlin", "disruption-time-zone: 'Berlin' is not a time zone"),
    ],
)
def test_invalid_disruption_setting_is_reported_and_blocks_disruption(budgets: str, zone: str, words: str) -> None:
    terms = parse_disruption_settings(budgets, zone)
    assert words in terms.problem
    decision = decide_disruption(make_fleet(make_node_with_pods("a")), terms)
    assert decision.commands == ()
    assert get_verdict(decision, "a") == ("blocked", "Budget", terms.problem)


def test_invalid_disruption_setting_is_one_problem_that_states_its_effect() -> None:
    [problem] = parse_disruption_settings("10%", "UTC").list_problems()
    assert problem == Problem(kind="Setting", name="joiner", message=problem.message)
    assert problem.message.startswith("disruption-budgets: ")
    assert problem.message.endswith("; voluntary disruption stops until the setting is corrected and deployed")
    assert DisruptionSettings().list_problems() == ()


@pytest.mark.parametrize(("zone", "goes"), [("UTC", False), ("America/New_York", True), ("Asia/Tokyo", True)])
def test_cluster_budget_schedules_use_the_configured_time_zone(zone: str, *, goes: bool) -> None:
    cluster = make_fleet(make_node_with_pods("a"), pools=(make_node_pool(budgets=()),))
    assert cluster.taken_at.hour == 12
    decision = decide_disruption(cluster, parse_disruption_settings(NINE_TO_FIVE, zone))
    assert bool(decision.commands) is goes


def test_cluster_budget_with_reasons_applies_only_to_these_reasons() -> None:
    idle = make_fleet(make_node_with_pods("a"), pools=(make_node_pool(budgets=()),))
    for reason, goes in (("Drifted", True), ("Empty", False)):
        decision = decide_disruption(
            idle, parse_disruption_settings(f'[{{"nodes": "0", "reasons": ["{reason}"]}}]', "UTC")
        )
        assert bool(decision.commands) is goes


def test_time_zones_do_not_depend_on_the_system_time_zone_data() -> None:
    zoneinfo.reset_tzpath(to=())
    try:
        berlin = zoneinfo.ZoneInfo.no_cache("Europe/Berlin")
    finally:
        zoneinfo.reset_tzpath()
    summer = datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert summer.astimezone(berlin).hour == summer.astimezone(get_time_zone("Europe/Berlin")).hour == 14
