"""Time zones, windows and thresholds as annotations of a NodePool."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.decide.disruption.budgets.budget import UNLIMITED_DISRUPTIONS, compute_allowed_disruptions
from shared.decide.disruption.budgets.node_pool_annotations import parse_disruption_annotations
from shared.model.core.calendar.cron_schedule import is_schedule_active
from shared.model.core.calendar.time_zones import get_time_zone
from shared.model.core.labels import (
    BUDGET_TIME_ZONE,
    DISRUPTION_WINDOWS,
    EXPIRY_JITTER,
    IMAGE_SOAK,
    MINIMUM_SAVINGS_PERCENT,
    MINIMUM_SAVINGS_USD,
)
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.karpenter.node_pool import DisruptionBudget, NodePool
from tests.support.catalogues import make_node_pool

BERLIN = "Europe/Berlin"
ONE_HOUR = timedelta(hours=1)


def make_annotated_pool(budgets: tuple[DisruptionBudget, ...] = (), /, **annotations: str) -> NodePool:
    return make_node_pool(meta=ObjectMeta(name="default", annotations=build_pairs(annotations)), budgets=budgets)


def build_instant(month: int, day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "opened"),
    [
        (build_instant(1, 15, 8), True),
        (build_instant(1, 15, 7, 59), False),
        (build_instant(1, 15, 9), False),
        (build_instant(7, 15, 7), True),
        (build_instant(7, 15, 8), False),
    ],
)
def test_schedule_with_a_time_zone_follows_daylight_saving_time(now: datetime, *, opened: bool) -> None:
    assert is_schedule_active("0 9 * * *", ONE_HOUR, now, get_time_zone(BERLIN)) is opened


def test_schedule_in_the_skipped_hour_starts_right_after_it() -> None:
    assert is_schedule_active("30 2 * * *", ONE_HOUR, build_instant(3, 29, 1, 30), get_time_zone(BERLIN))


def test_repeated_hour_does_not_extend_a_daily_window() -> None:
    assert is_schedule_active("30 2 * * *", ONE_HOUR, build_instant(10, 25, 1), get_time_zone(BERLIN))
    assert not is_schedule_active("30 2 * * *", ONE_HOUR, build_instant(10, 25, 3), get_time_zone(BERLIN))


def test_budget_schedule_uses_the_time_zone_of_the_node_pool() -> None:
    closed = (DisruptionBudget(nodes="0", schedule="0 9 * * *", duration=ONE_HOUR),)
    assert (
        compute_allowed_disruptions(make_annotated_pool(closed), "Empty", 9, build_instant(7, 15, 7)).count
        == UNLIMITED_DISRUPTIONS
    )
    assert (
        compute_allowed_disruptions(
            make_annotated_pool(closed, **{BUDGET_TIME_ZONE: BERLIN}), "Empty", 9, build_instant(7, 15, 7)
        ).count
        == 0
    )


def test_disruption_windows_use_the_time_zone_of_the_node_pool() -> None:
    night = {DISRUPTION_WINDOWS: "0 22 * * * 8h", BUDGET_TIME_ZONE: BERLIN}
    assert parse_disruption_annotations(make_annotated_pool(**night)).is_window_open(build_instant(7, 15, 20))
    assert not parse_disruption_annotations(make_annotated_pool(**night)).is_window_open(build_instant(7, 15, 19))


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        (BUDGET_TIME_ZONE, "Berlin", "is not a time zone"),
        (BUDGET_TIME_ZONE, "../etc", "is not a time zone"),
        (MINIMUM_SAVINGS_USD, "much", "is not an amount"),
        (MINIMUM_SAVINGS_USD, "-1", "is below zero"),
        (MINIMUM_SAVINGS_USD, "nan", "is below zero"),
        (MINIMUM_SAVINGS_PERCENT, "101", "more than 100%"),
        (EXPIRY_JITTER, "51", "is not a percentage of the lifetime: write a number from 0 to 50"),
        (EXPIRY_JITTER, "much", "is not a percentage of the lifetime"),
        (IMAGE_SOAK, "soon", "not a duration"),
        (IMAGE_SOAK, "-1h", "is negative"),
        (DISRUPTION_WINDOWS, "0 22 * * * 0h", "has no duration"),
        (DISRUPTION_WINDOWS, "0 99 * * * 8h", "hour"),
        (DISRUPTION_WINDOWS, "0 22 * * *", "is not a schedule and a duration"),
        (DISRUPTION_WINDOWS, "@daily soon", "not a duration"),
    ],
)
def test_invalid_disruption_annotation_is_reported_and_blocks_disruption(key: str, text: str, words: str) -> None:
    allowed_disruptions = compute_allowed_disruptions(
        make_annotated_pool(**{key: text}), "Empty", 9, build_instant(1, 1, 1)
    )
    assert allowed_disruptions.count == 0
    assert key in allowed_disruptions.problem
    assert words in allowed_disruptions.problem


def test_expiry_jitter_and_image_soak_annotations_are_parsed() -> None:
    settings = parse_disruption_annotations(make_annotated_pool(**{EXPIRY_JITTER: "10%", IMAGE_SOAK: "24h"}))
    assert (settings.expiry_jitter_percent, settings.image_soak, settings.problems) == (10, timedelta(days=1), ())
    assert parse_disruption_annotations(make_annotated_pool(**{EXPIRY_JITTER: "0"})).problems == ()


def test_minimum_savings_annotations_are_parsed() -> None:
    settings = parse_disruption_annotations(
        make_annotated_pool(**{MINIMUM_SAVINGS_USD: "0.05", MINIMUM_SAVINGS_PERCENT: "7.5%", "team": "a"})
    )
    assert (settings.minimum_usd_per_hour, settings.minimum_percent, settings.problems) == (0.05, 7.5, ())


NEW_YORK = "America/New_York"


def draw_open_half_hours(schedule: str, duration: timedelta, zone: str, start: datetime, hours: int) -> str:
    """Return one character for each half hour from *start*: ``#`` if the schedule is open, else ``.``."""
    moments = (start + timedelta(minutes=30 * number) for number in range(2 * hours))
    return "".join(
        "#" if is_schedule_active(schedule, duration, moment, get_time_zone(zone)) else "." for moment in moments
    )


@pytest.mark.parametrize(
    ("schedule", "lasts", "zone", "start", "opened"),
    [
        # Spring: at 01:00 UTC Berlin's clocks go from 02:00 to 03:00, at 07:00 UTC New York's.
        ("30 1 * * *", 2, BERLIN, build_instant(3, 29, 0), ".####......."),
        ("0 2 * * *", 2, BERLIN, build_instant(3, 29, 0), "..####......"),
        ("30 2 * * *", 1, BERLIN, build_instant(3, 29, 0), "..##........"),
        ("0 3 * * *", 1, BERLIN, build_instant(3, 29, 0), "..##........"),
        ("0 2 * * *", 2, NEW_YORK, build_instant(3, 8, 6), "..####......"),
        ("0 4 * * *", 1, BERLIN, build_instant(3, 29, 0), "....##......"),
        # The nights before and after: the same local time, but another hour in UTC.
        ("0 4 * * *", 1, BERLIN, build_instant(3, 28, 0), "......##...."),
        ("0 4 * * *", 1, BERLIN, build_instant(3, 30, 0), "....##......"),
        # Autumn: at 01:00 UTC Berlin's clocks go from 03:00 back to 02:00.
        ("0 2 * * *", 1, BERLIN, build_instant(10, 25, 0), "##.........."),
        ("30 2 * * *", 2, BERLIN, build_instant(10, 25, 0), ".####......."),
        ("0 3 * * *", 1, BERLIN, build_instant(10, 25, 0), "....##......"),
        ("0 1 * * *", 3, BERLIN, build_instant(10, 24, 22), "..######...."),
        ("0 1 * * *", 1, NEW_YORK, build_instant(11, 1, 4), "..##........"),
        # An hourly schedule also opens in the repeated hour.
        ("0 * * * *", 0.5, BERLIN, build_instant(10, 25, 0), "#.#.#.#.#.#."),
        ("0 * * * *", 0.5, BERLIN, build_instant(3, 29, 0), "#.#.#.#.#.#."),
    ],
)
def test_schedule_windows_follow_daylight_saving_time_changes(
    schedule: str, lasts: float, zone: str, start: datetime, opened: str
) -> None:
    assert draw_open_half_hours(schedule, timedelta(hours=lasts), zone, start, len(opened) // 2) == opened


@pytest.mark.parametrize(
    ("day", "from_", "until"),
    [
        (build_instant(3, 27, 0), build_instant(3, 27, 21), build_instant(3, 28, 5)),
        (build_instant(3, 28, 0), build_instant(3, 28, 21), build_instant(3, 29, 5)),
        (build_instant(3, 29, 0), build_instant(3, 29, 20), build_instant(3, 30, 4)),
        (build_instant(10, 23, 0), build_instant(10, 23, 20), build_instant(10, 24, 4)),
        (build_instant(10, 24, 0), build_instant(10, 24, 20), build_instant(10, 25, 4)),
        (build_instant(10, 25, 0), build_instant(10, 25, 21), build_instant(10, 26, 5)),
    ],
)
def test_eight_hour_window_lasts_eight_hours_on_nights_of_clock_changes(
    day: datetime, from_: datetime, until: datetime
) -> None:
    node_pool = make_annotated_pool(**{DISRUPTION_WINDOWS: "0 22 * * * 8h", BUDGET_TIME_ZONE: BERLIN})
    settings, minute = parse_disruption_annotations(node_pool), timedelta(minutes=1)
    noon = [day + timedelta(hours=12), day + timedelta(hours=32)]
    assert [settings.is_window_open(moment) for moment in (from_ - minute, from_, until - minute, until, *noon)] == [
        False, True, True, False, False, False
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("now", "goes"),
    [(build_instant(3, 29, 0, 59), True), (build_instant(3, 29, 1), False), (build_instant(3, 29, 2), True)],
)
def test_budget_scheduled_in_the_skipped_hour_applies_right_after_it(now: datetime, *, goes: bool) -> None:
    closed = (DisruptionBudget(nodes="0", schedule="0 2 * * *", duration=ONE_HOUR),)
    allowed = compute_allowed_disruptions(
        make_annotated_pool(closed, **{BUDGET_TIME_ZONE: BERLIN}), "Empty", 9, now
    ).count
    assert (allowed == UNLIMITED_DISRUPTIONS) is goes


@given(
    st.sampled_from(("0 2 * * *", "30 2 * * *", "0 3 * * *", "15 1 * * *", "0 22 * * *", "59 23 * * *")),
    st.integers(1, 24),
    st.sampled_from((BERLIN, NEW_YORK, "Australia/Lord_Howe", "Asia/Tokyo", "UTC")),
    st.integers(0, 364),
)
def test_daily_window_opens_once_a_day_for_its_duration(schedule: str, hours: int, zone: str, day: int) -> None:
    """Over two days the window is open for twice its duration, plus or minus the hour of a clock change."""
    start = build_instant(1, 1, 0) + timedelta(days=day)
    opened = draw_open_half_hours(schedule, timedelta(hours=hours), zone, start, 48).count("#") / 2
    assert abs(opened - 2 * hours) <= 1
