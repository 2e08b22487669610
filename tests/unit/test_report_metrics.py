"""Metrics: one line in CloudWatch's embedded metric format."""

import json
from datetime import timedelta
from typing import Any

import pytest

from shared.report.metrics import ALARMED, EVERY, emit
from tests.unit.actions_world import Outside


def line(*, wanted: str = "all", **counts: float) -> dict[str, Any]:
    [only] = lines(counts, wanted=wanted)
    return only


def lines(counts: dict[str, float], by_zone: tuple[tuple[str, int], ...] = (), *, wanted: str) -> list[dict[str, Any]]:
    outside = Outside(metrics=wanted)
    emit(counts, outside.world(), by_zone)
    return [dict(json.loads(one)) for one in outside.lines]


def names(emf: dict[str, Any]) -> list[str]:
    [metrics] = emf["_aws"]["CloudWatchMetrics"]
    return [one["Name"] for one in metrics["Metrics"]]


def test_the_line_is_what_cloudwatch_reads_and_has_no_more_than_is_published() -> None:
    assert line(PendingPods=3.0, Faults=1.0, Actions=2.0) == {
        "_aws": {
            "Timestamp": 1795248000000,
            "CloudWatchMetrics": [
                {
                    "Namespace": "Joiner",
                    "Dimensions": [["cluster", "service"]],
                    "Metrics": [{"Name": "Faults", "Unit": "Count"}, {"Name": "PendingPods", "Unit": "Count"}],
                }
            ],
        },
        "service": "joiner",
        "cluster": "joiner",
        "Faults": [1.0],
        "PendingPods": [3.0],
    }


@pytest.mark.parametrize(
    ("name", "unit"),
    [("OpenCommands", "Count"), ("PriceAgeSeconds", "Seconds"), ("SavedUsdPerHour", "None")],
)
def test_a_name_says_its_unit(name: str, unit: str) -> None:
    [only] = lines({name: 1.0}, wanted="all")
    [metrics] = only["_aws"]["CloudWatchMetrics"]
    assert metrics["Metrics"] == [{"Name": name, "Unit": unit}]


def test_pods_that_can_be_in_one_zone_only_have_a_line_by_zone_where_all_is_wanted() -> None:
    zones = (("a", 2), ("flexible", 3))
    said = [(one["zone"], one["PendingPodsByEffectiveZone"]) for one in lines({}, zones, wanted="all")]
    assert said == [("a", [2.0]), ("flexible", [3.0])]
    assert lines({}, zones, wanted="alarms") == []


def test_where_there_is_nothing_to_count_nothing_is_said() -> None:
    outside = Outside(metrics="all")
    emit({}, outside.world())
    emit({"Actions": 1.0}, outside.world())
    assert outside.lines == []


@pytest.mark.parametrize("days", [-400, 0, 400])
def test_only_the_worlds_clock_is_looked_at(days: int) -> None:
    outside = Outside()
    outside.clock._now += timedelta(days=days)  # noqa: SLF001 - no clock runs backwards
    emit({"Faults": 1.0}, outside.world())
    assert json.loads(outside.lines[0])["_aws"]["Timestamp"] == outside.clock.now().timestamp() * 1000


def test_two_lines_do_not_share_a_count() -> None:
    outside = Outside(metrics="all")
    emit({"Faults": 1.0}, outside.world())
    emit({"PendingPods": 2.0}, outside.world())
    first, second = map(json.loads, outside.lines)
    assert "PendingPods" not in first
    assert "Faults" not in second


def test_what_rarely_happens_is_said_only_when_it_does() -> None:
    assert names(line(PendingPods=0.0, Faults=0.0)) == ["PendingPods"]
    assert lines({"LaunchFailures": 0.0}, wanted="all") == []


def test_unless_all_is_wanted_only_what_an_alarm_needs_is_paid_for_and_only_when_there_is_something() -> None:
    every = dict.fromkeys(EVERY, 1.0) | {"LeaksEnded": 0.0}
    assert set(names(line(wanted="alarms", **every))) == ALARMED - {"LeaksEnded", "PriceAgeSeconds"}
    assert lines({"PendingPods": 5.0}, wanted="alarms") == []


@pytest.mark.parametrize(("hours", "said"), [(12, []), (13, []), (14, ["PriceAgeSeconds"])])
def test_how_old_prices_are_is_published_once_they_should_have_been_asked_for_again(
    hours: int, said: list[str]
) -> None:
    found = lines({"PriceAgeSeconds": 3600.0 * hours}, wanted="alarms")
    assert [name for one in found for name in names(one)] == said


def test_we_have_no_more_than_twenty_five_metrics() -> None:
    assert ALARMED < EVERY
    assert len(EVERY) <= 25
