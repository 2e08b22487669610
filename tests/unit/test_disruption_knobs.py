"""Time zones, windows and thresholds as annotations of a NodePool."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.disruption.budgets import UNLIMITED, allowance
from shared.disruption.cron import is_open
from shared.disruption.knobs import knobs_of, time_zone
from shared.model.labels import (
    BUDGET_TIME_ZONE,
    DISRUPTION_WINDOWS,
    EXPIRY_JITTER,
    IMAGE_SOAK,
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
        (EXPIRY_JITTER, "51", "is no part of a lifetime: write a number from 0 to 50"),
        (EXPIRY_JITTER, "much", "is no part of a lifetime"),
        (IMAGE_SOAK, "soon", "not a duration"),
        (IMAGE_SOAK, "-1h", "is less than nothing"),
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


def test_what_is_said_of_lifetimes_is_read() -> None:
    knobs = knobs_of(noted(**{EXPIRY_JITTER: "10%", IMAGE_SOAK: "24h"}))
    assert (knobs.expiry_jitter_percent, knobs.image_soak, knobs.problems) == (10, timedelta(days=1), ())
    assert knobs_of(noted(**{EXPIRY_JITTER: "0"})).problems == ()


def test_thresholds_are_read() -> None:
    knobs = knobs_of(noted(**{MINIMUM_SAVINGS_USD: "0.05", MINIMUM_SAVINGS_PERCENT: "7.5%", "team": "a"}))
    assert (knobs.minimum_usd_per_hour, knobs.minimum_percent, knobs.problems) == (0.05, 7.5, ())


NEW_YORK = "America/New_York"


def hours_open(schedule: str, duration: timedelta, zone: str, start: datetime, hours: int) -> str:
    """Answer for every half hour from *start* whether it is open: ``#``, else ``.``."""
    moments = (start + timedelta(minutes=30 * number) for number in range(2 * hours))
    return "".join("#" if is_open(schedule, duration, one, time_zone(zone)) else "." for one in moments)


@pytest.mark.parametrize(
    ("schedule", "lasts", "zone", "start", "opened"),
    [
        # Spring: at 01:00 UTC Berlin's clocks go from 02:00 to 03:00, at 07:00 UTC New York's.
        ("30 1 * * *", 2, BERLIN, at(3, 29, 0), ".####......."),
        ("0 2 * * *", 2, BERLIN, at(3, 29, 0), "..####......"),
        ("30 2 * * *", 1, BERLIN, at(3, 29, 0), "..##........"),
        ("0 3 * * *", 1, BERLIN, at(3, 29, 0), "..##........"),
        ("0 2 * * *", 2, NEW_YORK, at(3, 8, 6), "..####......"),
        ("0 4 * * *", 1, BERLIN, at(3, 29, 0), "....##......"),
        # The night before and the one after: the same clock, another hour of UTC.
        ("0 4 * * *", 1, BERLIN, at(3, 28, 0), "......##...."),
        ("0 4 * * *", 1, BERLIN, at(3, 30, 0), "....##......"),
        # Autumn: at 01:00 UTC Berlin's clocks go from 03:00 back to 02:00.
        ("0 2 * * *", 1, BERLIN, at(10, 25, 0), "##.........."),
        ("30 2 * * *", 2, BERLIN, at(10, 25, 0), ".####......."),
        ("0 3 * * *", 1, BERLIN, at(10, 25, 0), "....##......"),
        ("0 1 * * *", 3, BERLIN, at(10, 24, 22), "..######...."),
        ("0 1 * * *", 1, NEW_YORK, at(11, 1, 4), "..##........"),
        # What comes every hour comes in the hour that is there twice, too.
        ("0 * * * *", 0.5, BERLIN, at(10, 25, 0), "#.#.#.#.#.#."),
        ("0 * * * *", 0.5, BERLIN, at(3, 29, 0), "#.#.#.#.#.#."),
    ],
)
def test_windows_over_a_change_of_clocks(schedule: str, lasts: float, zone: str, start: datetime, opened: str) -> None:
    assert hours_open(schedule, timedelta(hours=lasts), zone, start, len(opened) // 2) == opened


@pytest.mark.parametrize(
    ("day", "from_", "until"),
    [
        (at(3, 27, 0), at(3, 27, 21), at(3, 28, 5)),
        (at(3, 28, 0), at(3, 28, 21), at(3, 29, 5)),
        (at(3, 29, 0), at(3, 29, 20), at(3, 30, 4)),
        (at(10, 23, 0), at(10, 23, 20), at(10, 24, 4)),
        (at(10, 24, 0), at(10, 24, 20), at(10, 25, 4)),
        (at(10, 25, 0), at(10, 25, 21), at(10, 26, 5)),
    ],
)
def test_a_window_of_eight_hours_lasts_eight_hours_in_the_nights_when_clocks_change(
    day: datetime, from_: datetime, until: datetime
) -> None:
    some = noted(**{DISRUPTION_WINDOWS: "0 22 * * * 8h", BUDGET_TIME_ZONE: BERLIN})
    knobs, minute = knobs_of(some), timedelta(minutes=1)
    noon = [day + timedelta(hours=12), day + timedelta(hours=32)]
    assert [knobs.is_open(one) for one in (from_ - minute, from_, until - minute, until, *noon)] == [
        False, True, True, False, False, False
    ]  # fmt: skip


@pytest.mark.parametrize(("now", "goes"), [(at(3, 29, 0, 59), True), (at(3, 29, 1), False), (at(3, 29, 2), True)])
def test_a_budget_in_the_hour_that_is_skipped_holds_right_after_it(now: datetime, *, goes: bool) -> None:
    closed = (Budget(nodes="0", schedule="0 2 * * *", duration=HOUR),)
    allowed = allowance(noted(closed, **{BUDGET_TIME_ZONE: BERLIN}), "Empty", 9, now).count
    assert (allowed == UNLIMITED) is goes


@given(
    st.sampled_from(("0 2 * * *", "30 2 * * *", "0 3 * * *", "15 1 * * *", "0 22 * * *", "59 23 * * *")),
    st.integers(1, 24),
    st.sampled_from((BERLIN, NEW_YORK, "Australia/Lord_Howe", "Asia/Tokyo", "UTC")),
    st.integers(0, 364),
)
def test_a_daily_window_opens_once_a_day_and_lasts_as_long_as_it_says(
    schedule: str, hours: int, zone: str, day: int
) -> None:
    """Whatever clocks do: over two days it is open twice as long as it lasts, give or take the hour that they move."""
    start = at(1, 1, 0) + timedelta(days=day)
    opened = hours_open(schedule, timedelta(hours=hours), zone, start, 48).count("#") / 2
    assert abs(opened - 2 * hours) <= 1
