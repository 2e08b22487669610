"""Log levels: one JSON object per line, filtered by the configured level; metrics at every level."""

import json

import msgspec
import pytest

from shared.model.core.metadata import Problem
from shared.model.decisions.action import EvictPod
from shared.production_world import write_to_stdout
from shared.report.journal.journal import ActionResult, DecisionNote, JournalEntry, record_entry
from shared.report.metrics.emf import emit_metrics
from shared.settings_text import LOG_LEVELS
from sim.time.virtual_clock import DEFAULT_START_TIME
from tests.support.actions_world import Outside

PLAIN = JournalEntry(
    function="disrupt",
    trigger="schedule",
    at=DEFAULT_START_TIME,
    cluster="abc",
    notes=(DecisionNote(kind="Node", name="n", verdict="kept", reason="two\nlines"),),
    results=(
        ActionResult(action=EvictPod(namespace="shop", name="cart", uid="u", node="n", message="drain"), result="done"),
    ),
)
WARNED = msgspec.structs.replace(PLAIN, problems=(Problem(kind="Pod", name="a", message="two\nlines"),))
FAILED = msgspec.structs.replace(PLAIN, error="Unreachable: two\nlines")


@pytest.mark.parametrize(
    ("level", "expected_levels"),
    [
        ("DEBUG", ["INFO", "WARNING", "ERROR"]),
        ("INFO", ["INFO", "WARNING", "ERROR"]),
        ("WARNING", ["WARNING", "ERROR"]),
        ("ERROR", ["ERROR"]),
        ("loud", ["INFO", "WARNING", "ERROR"]),
    ],
)
def test_log_level_includes_more_severe_levels(level: str, expected_levels: list[str]) -> None:
    outside = Outside(log_level=level)
    for entry in (PLAIN, WARNED, FAILED):
        record_entry(entry, outside.build_world())
    assert [json.loads(line)["level"] for line in outside.lines] == expected_levels


@pytest.mark.parametrize("level", LOG_LEVELS)
def test_journal_entries_and_metrics_are_written_at_every_log_level(level: str) -> None:
    outside = Outside(log_level=level, metrics="all")
    record_entry(PLAIN, outside.build_world())
    emit_metrics({"PendingPods": 2.0}, outside.build_world())
    assert len(outside.bucket.list_keys("journal/")) == 1
    assert json.loads(outside.lines[-1])["PendingPods"] == [2.0]


def test_debug_log_line_contains_the_notes() -> None:
    notes = []
    for level in ("DEBUG", "INFO"):
        outside = Outside(log_level=level)
        record_entry(PLAIN, outside.build_world())
        [line] = map(json.loads, outside.lines)
        notes.append(line.get("notes"))
    assert notes == [["Node n: kept: two\nlines"], None]


def test_log_line_is_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    outside = Outside(log_level="DEBUG", metrics="all")
    world = msgspec.structs.replace(outside.build_world(), emit=write_to_stdout)
    for entry in (PLAIN, WARNED, FAILED):
        record_entry(entry, world)
    emit_metrics({"PendingPods": 2.0}, world)
    output = capsys.readouterr().out
    assert output.endswith("\n")
    assert [type(json.loads(line)) for line in output.splitlines()] == [dict] * 4
