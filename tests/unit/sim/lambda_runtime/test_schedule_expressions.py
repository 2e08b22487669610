"""Rates and crons on the virtual clock."""

from datetime import UTC, datetime
from itertools import islice

import pytest

from sim.lambda_runtime.schedule_expressions import list_firing_times
from sim.lambda_runtime.stack_template.generated_references import UnsupportedTemplateError

SATURDAY = datetime(2026, 11, 21, 8, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("rate(1 minute)", ["11-21 08:01:30", "11-21 08:02:30"]),
        ("rate(5 minutes)", ["11-21 08:05:30", "11-21 08:10:30"]),
        ("rate(2 hours)", ["11-21 10:00:30", "11-21 12:00:30"]),
        ("rate(1 day)", ["11-22 08:00:30", "11-23 08:00:30"]),
        ("cron(*/10 * * * ? *)", ["11-21 08:10:00", "11-21 08:20:00"]),
        ("cron(15 10 ? * MON-FRI *)", ["11-23 10:15:00", "11-24 10:15:00"]),
        ("cron(0 9 ? * 2-6 *)", ["11-23 09:00:00", "11-24 09:00:00"]),
        ("cron(0 9 ? * 1 *)", ["11-22 09:00:00", "11-29 09:00:00"]),
        ("cron(0 9 ? * 7 *)", ["11-21 09:00:00", "11-28 09:00:00"]),
        ("cron(0 9 ? * 6#4 *)", ["11-27 09:00:00", "12-25 09:00:00"]),
        ("cron(0 9 ? * 2/2 *)", ["11-23 09:00:00", "11-25 09:00:00"]),
        ("cron(0 9 ? * 2-7/5 *)", ["11-21 09:00:00", "11-23 09:00:00"]),
        ("cron(0 0 1 * ? *)", ["12-01 00:00:00", "01-01 00:00:00"]),
        ("cron(0 0 L * ? *)", ["11-30 00:00:00", "12-31 00:00:00"]),
        ("cron(0 0 1 1 ? 2026-2028)", ["01-01 00:00:00", "01-01 00:00:00"]),
        ("cron(0 0 1 12 ? 2026,2031)", ["12-01 00:00:00", "12-01 00:00:00"]),
    ],
)
def test_schedule_expression_fires_as_in_eventbridge(expression: str, expected: list[str]) -> None:
    assert [f"{when:%m-%d %H:%M:%S}" for when in islice(list_firing_times(expression, SATURDAY), 2)] == expected


def test_schedule_of_past_years_never_fires() -> None:
    assert list(list_firing_times("cron(0 0 1 1 ? 2020)", SATURDAY)) == []


def test_cron_schedule_skips_excluded_years() -> None:
    rings = [when.year for when in list_firing_times("cron(0 0 1 1 ? 2027,2030-2031)", SATURDAY)]
    assert rings == [2027, 2030, 2031]


@pytest.mark.parametrize(
    "expression",
    [
        "rate(1 minutes)",
        "rate(5 minute)",
        "rate(0 minutes)",
        "rate(1 week)",
        "every minute",
        "at(2026-11-21T08:00:00)",
        "cron(* * * * *)",
        "cron(* * * * * *)",
        "cron(* * ? * ? *)",
        "cron(61 * * * ? *)",
        "cron(0 0 1 1 ? soon)",
    ],
)
def test_invalid_schedule_expression_is_rejected(expression: str) -> None:
    with pytest.raises(UnsupportedTemplateError):
        list_firing_times(expression, SATURDAY)
