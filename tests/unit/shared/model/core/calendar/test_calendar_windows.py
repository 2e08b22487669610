"""Windows of the local calendar: starts and ends on the clock of a time zone, also when the clocks change."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.model.core.calendar.calendar_windows import CalendarWindow, validate_calendar_window
from shared.model.core.calendar.time_zones import get_time_zone

BERLIN = "Europe/Berlin"
ZONES = ("UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia", "America/Sao_Paulo")
SCHEDULES = ("0 20 * * mon-fri", "30 2 * * *", "*/20 * * * *", "15 1,2,3 * * *", "0 0 1 * *", "0 7 * * sat", "@hourly")
INSTANTS = st.datetimes(datetime(2011, 1, 1), datetime(2030, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))  # noqa: DTZ001
WINDOWS = st.builds(
    CalendarWindow,
    schedule=st.sampled_from(SCHEDULES),
    duration=st.integers(1, 3000).map(lambda minutes: timedelta(minutes=minutes)),
    zone=st.sampled_from(ZONES),
)


def make_window(schedule: str, duration: timedelta, zone: str = BERLIN) -> CalendarWindow:
    return CalendarWindow(schedule=schedule, duration=duration, zone=zone)


def build_instant(month: int, day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


NIGHT = make_window("0 20 * * *", timedelta(hours=11))


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [
        (build_instant(3, 27, 19), build_instant(3, 28, 6), 11),
        (build_instant(3, 28, 19), build_instant(3, 29, 5), 10),
        (build_instant(10, 24, 18), build_instant(10, 25, 6), 12),
    ],
)
def test_night_ends_at_seven_on_the_clock_also_when_the_clocks_change(
    start: datetime, end: datetime, hours: int
) -> None:
    assert NIGHT.find_next_start(start - timedelta(hours=1)) == start
    assert NIGHT.find_end(start) == end
    assert end - start == timedelta(hours=hours)


def test_start_in_the_skipped_hour_is_the_first_minute_after_it() -> None:
    window, after_change = make_window("30 2 * * *", timedelta(minutes=30)), build_instant(3, 29, 1)
    assert window.find_next_start(build_instant(3, 28, 12)) == after_change
    assert not window.is_open(after_change - timedelta(minutes=1))
    assert window.is_open(after_change)
    assert window.find_end(after_change) == build_instant(3, 29, 1, 30)


def test_start_in_the_repeated_hour_counts_once() -> None:
    window, first = make_window("30 2 * * *", timedelta(minutes=10)), build_instant(10, 25, 0, 30)
    assert window.find_next_start(build_instant(10, 24, 12)) == first
    assert window.find_next_start(first) == build_instant(10, 26, 1, 30)
    assert not window.is_open(first + timedelta(hours=1))


def test_end_in_the_repeated_hour_is_its_first_occurrence() -> None:
    assert make_window("0 1 * * *", timedelta(minutes=90)).find_end(build_instant(10, 24, 23)) == build_instant(
        10, 25, 0, 30
    )


def test_skipped_day_moves_the_start_to_the_day_after() -> None:
    window = make_window("0 12 30 12 *", timedelta(hours=1), "Pacific/Apia")
    after_change = datetime(2011, 12, 30, 10, tzinfo=UTC)
    assert window.find_next_start(datetime(2011, 12, 29, 12, tzinfo=UTC)) == after_change


def test_windows_without_a_gap_between_them_are_one_window() -> None:
    window = make_window("0 8-17 * * *", timedelta(hours=1), "UTC")
    assert window.find_end(build_instant(5, 4, 9, 30)) == build_instant(5, 4, 18)


def test_window_that_is_always_open_has_no_end() -> None:
    window = make_window("* * * * *", timedelta(hours=2), "UTC")
    assert window.is_open(build_instant(5, 4, 9))
    assert window.find_next_edge(build_instant(5, 4, 9)) is None


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (make_window("0 20 * *", timedelta(hours=1)), "neither five fields nor a descriptor"),
        (make_window("0 24 * * *", timedelta(hours=1)), "hour '24' is not a range within 0-23"),
        (make_window("0 0 31 2 *", timedelta(hours=1)), "never matches: write a date that exists"),
        (make_window("@daily", timedelta(seconds=59)), "the duration is not between 1m and 8784h"),
        (make_window("@daily", timedelta(days=367)), "the duration is not between 1m and 8784h"),
        (make_window("@daily", timedelta(hours=1), "Berlin"), "'Berlin' is not a time zone"),
    ],
)
def test_invalid_window_is_rejected_with_the_fix(window: CalendarWindow, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        validate_calendar_window(window)


@given(WINDOWS, INSTANTS)
@settings(max_examples=100, deadline=None)
def test_last_start_and_next_start_enclose_every_instant(window: CalendarWindow, at: datetime) -> None:
    last_start, next_start = window.find_last_start(at), window.find_next_start(at)
    assert last_start is not None
    assert next_start is not None
    assert last_start <= at < next_start
    assert window.find_next_start(last_start) == next_start
    assert window.find_last_start(next_start) == next_start
    assert window.is_open(last_start)


@given(WINDOWS, INSTANTS)
@settings(max_examples=100, deadline=None)
def test_window_changes_at_its_next_edge_and_not_before(window: CalendarWindow, at: datetime) -> None:
    edge = window.find_next_edge(at)
    if edge is None:
        assert window.is_open(at)
        return
    assert edge > at
    assert window.is_open(edge) is not window.is_open(at)
    for part in range(8):
        assert window.is_open(at + (edge - at) * part / 8) is window.is_open(at)


@given(st.sampled_from(SCHEDULES), st.sampled_from(ZONES), INSTANTS)
@settings(max_examples=100, deadline=None)
def test_every_start_shows_its_time_on_the_clock_or_follows_a_clock_change(
    schedule: str, zone: str, at: datetime
) -> None:
    start = make_window(schedule, timedelta(minutes=1), zone).find_next_start(at)
    assert start is not None
    local, before = (instant.astimezone(get_time_zone(zone)) for instant in (start, start - timedelta(minutes=1)))
    has_changed = local.utcoffset() != before.utcoffset()
    assert local.fold == 0
    assert has_changed or make_window(schedule, timedelta(minutes=1), "UTC").is_open(local.replace(tzinfo=UTC))


@given(WINDOWS, INSTANTS, st.integers(1, 500))
@settings(max_examples=100, deadline=None)
def test_longer_window_is_open_whenever_the_shorter_one_is(window: CalendarWindow, at: datetime, minutes: int) -> None:
    longer = CalendarWindow(
        schedule=window.schedule, duration=window.duration + timedelta(minutes=minutes), zone=window.zone
    )
    assert longer.is_open(at) or not window.is_open(at)
