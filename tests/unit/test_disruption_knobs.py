"""Time zones, windows and thresholds as annotations of a NodePool."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.disruption.budgets import UNLIMITED, allowance
from shared.disruption.cron import is_open
from shared.disruption.knobs import knobs_of, time_zone
from shared.model.labels import (
    BUDGET_TIME_ZONE,
    DISRUPTION_WINDOWS,
    MINIMUM_SAVINGS_PERCENT,
    MINIMUM_SAVINGS_USD,
)
from shared.model.nodepools import Budget, NodePool
from shared.model.objects import Meta, pairs
from tests.unit.catalogues import pool

BERLIN = "Europe/Berlin"
HOUR = timedelta(hours=1)


def noted(budgets: tuple[Budget, ...] = (), /, **annotations: str) -> NodePool:
    return pool(meta=Meta(name="default", annotations=pairs(annotations)), budgets=budgets)


def at(month: int, day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "opened"),
    [
        (at(1, 15, 8), True),
        (at(1, 15, 7, 59), False),
        (at(1, 15, 9), False),
        (at(7, 15, 7), True),
        (at(7, 15, 8), False),
    ],
)
def test_a_schedule_in_a_time_zone_follows_its_clocks(now: datetime, *, opened: bool) -> None:
    assert is_open("0 9 * * *", HOUR, now, time_zone(BERLIN)) is opened


def test_an_hour_that_is_skipped_is_right_after_it() -> None:
    assert is_open("30 2 * * *", HOUR, at(3, 29, 1, 30), time_zone(BERLIN))


def test_an_hour_that_comes_twice_opens_a_daily_window_no_longer() -> None:
    assert is_open("30 2 * * *", HOUR, at(10, 25, 1), time_zone(BERLIN))
    assert not is_open("30 2 * * *", HOUR, at(10, 25, 3), time_zone(BERLIN))


def test_a_budget_is_read_in_the_pools_time_zone() -> None:
    closed = (Budget(nodes="0", schedule="0 9 * * *", duration=HOUR),)
    assert allowance(noted(closed), "Empty", 9, at(7, 15, 7)).count == UNLIMITED
    assert allowance(noted(closed, **{BUDGET_TIME_ZONE: BERLIN}), "Empty", 9, at(7, 15, 7)).count == 0


def test_windows_are_in_the_same_time_zone() -> None:
    night = {DISRUPTION_WINDOWS: "0 22 * * * 8h", BUDGET_TIME_ZONE: BERLIN}
    assert knobs_of(noted(**night)).is_open(at(7, 15, 20))
    assert not knobs_of(noted(**night)).is_open(at(7, 15, 19))


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        (BUDGET_TIME_ZONE, "Berlin", "is no time zone"),
        (BUDGET_TIME_ZONE, "../etc", "is no time zone"),
        (MINIMUM_SAVINGS_USD, "much", "is no amount"),
        (MINIMUM_SAVINGS_USD, "-1", "is no amount from 0"),
        (MINIMUM_SAVINGS_USD, "nan", "is no amount from 0"),
        (MINIMUM_SAVINGS_PERCENT, "101", "more than everything"),
        (DISRUPTION_WINDOWS, "0 22 * * * 0h", "lasts no time"),
        (DISRUPTION_WINDOWS, "0 99 * * * 8h", "hour"),
        (DISRUPTION_WINDOWS, "0 22 * * *", "is not a schedule and a duration"),
        (DISRUPTION_WINDOWS, "@daily soon", "not a duration"),
    ],
)
def test_what_cannot_be_read_allows_nothing_and_is_named(key: str, text: str, words: str) -> None:
    found = allowance(noted(**{key: text}), "Empty", 9, at(1, 1, 1))
    assert found.count == 0
    assert key in found.problem
    assert words in found.problem


def test_thresholds_are_read() -> None:
    knobs = knobs_of(noted(**{MINIMUM_SAVINGS_USD: "0.05", MINIMUM_SAVINGS_PERCENT: "7.5%", "team": "a"}))
    assert (knobs.minimum_usd_per_hour, knobs.minimum_percent, knobs.problems) == (0.05, 7.5, ())
