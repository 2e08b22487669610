"""Quantities, durations and instants."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.model.core.units import (
    format_duration,
    format_instant,
    parse_duration,
    parse_instant,
    parse_nillable_duration,
    parse_quantity,
)


@pytest.mark.parametrize(
    ("text", "per_unit", "count"),
    [
        ("2", 1000, 2000),
        ("100m", 1000, 100),
        ("1e3", 1, 1000),
        ("1E", 1, 10**18),
        ("1Ki", 1, 1024),
        ("1k", 1, 1000),
        ("1.5Gi", 1, 3 * 2**29),
        (".5", 1000, 500),
        ("5.", 1, 5),
        ("+3", 1, 3),
        ("1n", 1, 1),
        ("1u", 1000, 1),
        ("0.1", 1, 1),
        ("-1.5", 1, -2),
        ("0", 1, 0),
    ],
)
def test_quantity_is_parsed_and_rounded_away_from_zero(text: str, per_unit: int, count: int) -> None:
    assert parse_quantity(text, per_unit=per_unit) == count


@pytest.mark.parametrize("text", ["", "Gi", "1 Gi", "1gi", "1K", "0x1", ".", "1\n", "1e333", "\u0661", "nan", "1GiB"])
def test_invalid_quantity_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("0", timedelta()),
        ("0s", timedelta()),
        ("30s", timedelta(seconds=30)),
        ("1h30m", timedelta(minutes=90)),
        ("1.5h", timedelta(minutes=90)),
        ("100ms", timedelta(milliseconds=100)),
        ("5us", timedelta(microseconds=5)),
        ("-1m", timedelta(minutes=-1)),
        ("+1m", timedelta(minutes=1)),
        ("720h", timedelta(days=30)),
    ],
)
def test_go_duration_is_parsed(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration == parse_nillable_duration(text)


@pytest.mark.parametrize("text", ["", "1", "h", "1d", "1h 30m", "never", "-", "-+1h", "1h30", "1e3s"])
def test_invalid_duration_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


def test_duration_beyond_the_maximum_is_rejected() -> None:
    assert parse_duration("2562047h") == timedelta(hours=2562047)
    for text in ("2562048h", "-2562048h", "99999999999h"):
        with pytest.raises(ValueError, match="too long"):
            parse_duration(text)


@pytest.mark.parametrize("text", ["2E", "1e99", "1Ei", "9223372036854775808"])
def test_quantity_beyond_the_maximum_is_clamped(text: str) -> None:
    assert parse_quantity(text) == 2**60
    assert parse_quantity(f"-{text}") == -(2**60)


def test_duration_never_is_none_only_where_allowed() -> None:
    assert parse_nillable_duration("Never") is None
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration("Never")


@pytest.mark.parametrize(
    ("duration", "text"),
    [(None, "Never"), (timedelta(), "0s"), (timedelta(days=30), "720h"), (timedelta(seconds=3661), "1h1m1s")],
)
def test_duration_is_formatted_in_short_form(duration: timedelta | None, text: str) -> None:
    assert format_duration(duration) == text


@pytest.mark.parametrize(
    "text",
    ["2026-11-21T08:00:00Z", "2026-11-21T09:00:00+01:00", "2026-11-21T08:00:00.000000Z", "2026-11-21T08:00:00+00:00"],
)
def test_timestamp_is_parsed_and_formatted_in_utc(text: str) -> None:
    assert parse_instant(text) == datetime(2026, 11, 21, 8, tzinfo=UTC)
    assert parse_instant(text).tzinfo is UTC
    assert format_instant(parse_instant(text)) == "2026-11-21T08:00:00Z"


@pytest.mark.parametrize("text", ["", "today", "2026-11-21T08:00:00", "2026-11-21"])
def test_timestamp_without_utc_offset_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"offset|isoformat"):
        parse_instant(text)
