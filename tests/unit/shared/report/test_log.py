"""Log lines: one schema, the clock of the World, and the level of the settings."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from shared.report.log import LineLevel, add_log_fields, log, write_line
from tests.support.actions_world import Outside

AT = datetime(2026, 11, 21, 8, tzinfo=UTC)


def write_single_line(level: LineLevel = "INFO", message: str = "done", **fields: object) -> dict[str, Any]:
    lines: list[str] = []
    write_line(level, message, fields, AT, lines.append)
    [line] = lines
    return dict(json.loads(line))


def test_log_line_has_the_keys_of_its_invocation() -> None:
    outside = Outside()
    log("WARNING", "late", msgspec.structs.replace(outside.build_world("request-1"), is_cold_start=True), {"pods": 3})
    [line] = map(json.loads, outside.lines)
    assert line["timestamp"].endswith("+00:00")
    del line["timestamp"]
    assert line == {
        "level": "WARNING",
        "message": "late",
        "service": "joiner",
        "cluster": "joiner",
        "function_request_id": "request-1",
        "cold_start": True,
        "pods": 3,
    }


def test_timestamp_is_the_time_of_the_worlds_clock_in_utc() -> None:
    assert write_single_line()["timestamp"] == "2026-11-21T08:00:00.000+00:00"


@pytest.mark.parametrize("message", ["5", "{}", "100 % of %s", "two\nlines", "ü", ""])
def test_message_is_logged_unchanged_on_one_line(message: str) -> None:
    assert write_single_line(message=message)["message"] == message


def test_added_fields_are_on_all_lines_of_the_block_only() -> None:
    with add_log_fields(function="watch", cycle="watch/1"):
        assert write_single_line(function="provision").items() >= {"function": "provision", "cycle": "watch/1"}.items()
    assert not {"function", "cycle"} & write_single_line().keys()


def test_fields_without_a_value_are_omitted() -> None:
    assert "error" not in write_single_line(error=None)


@pytest.mark.parametrize(("min_level", "line_count"), [("DEBUG", 3), ("INFO", 3), ("WARNING", 2), ("ERROR", 1)])
def test_lines_below_the_level_are_not_written(min_level: str, line_count: int) -> None:
    lines: list[str] = []
    levels: tuple[LineLevel, ...] = ("INFO", "WARNING", "ERROR")
    for level in levels:
        write_line(level, "done", {}, AT, lines.append, min_level)
    assert len(lines) == line_count


def test_each_line_goes_to_the_world_that_logs_it() -> None:
    first, second = Outside(), Outside()
    for outside in (first, second, first):
        log("INFO", "done", outside.build_world(), {})
    assert (len(first.lines), len(second.lines)) == (2, 1)
