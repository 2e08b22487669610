"""What is told in the log: one JSON object a line, as much as the deployment wants, and metrics whatever it wants."""

import json

import msgspec
import pytest

from shared.model.action import EvictPod
from shared.model.objects import Problem
from shared.report.journal import Done, Entry, Note, record
from shared.report.metrics import emit
from shared.settings import LEVELS
from shared.world import _emit
from sim.clock import START
from tests.unit.actions_world import Outside

PLAIN = Entry(
    function="disrupt",
    trigger="schedule",
    at=START,
    cluster="abc",
    notes=(Note(kind="Node", name="n", verdict="kept", why="two\nlines"),),
    done=(Done(action=EvictPod(namespace="shop", name="cart", uid="u", node="n", why="drain"), result="done"),),
)
WARNED = msgspec.structs.replace(PLAIN, problems=(Problem(kind="Pod", name="a", message="two\nlines"),))
FAILED = msgspec.structs.replace(PLAIN, error="Unreachable: two\nlines")


@pytest.mark.parametrize(
    ("level", "told"),
    [
        ("DEBUG", ["INFO", "WARNING", "ERROR"]),
        ("INFO", ["INFO", "WARNING", "ERROR"]),
        ("WARNING", ["WARNING", "ERROR"]),
        ("ERROR", ["ERROR"]),
        ("loud", ["INFO", "WARNING", "ERROR"]),
    ],
)
def test_a_level_tells_what_those_behind_it_tell(level: str, told: list[str]) -> None:
    outside = Outside(log_level=level)
    for entry in (PLAIN, WARNED, FAILED):
        record(entry, outside.world())
    assert [json.loads(line)["level"] for line in outside.lines] == told


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_not_told_is_in_the_journal_all_the_same_and_metrics_are_written(level: str) -> None:
    outside = Outside(log_level=level, metrics="all")
    record(PLAIN, outside.world())
    emit({"PendingPods": 2.0}, outside.world())
    assert len(outside.bucket.keys("journal/")) == 1
    assert json.loads(outside.lines[-1])["PendingPods"] == [2.0]


def test_debug_tells_why_besides() -> None:
    said = []
    for level in ("DEBUG", "INFO"):
        outside = Outside(log_level=level)
        record(PLAIN, outside.world())
        [line] = map(json.loads, outside.lines)
        said.append(line.get("notes"))
    assert said == [["Node n: kept: two\nlines"], None]


def test_a_line_is_one_object_whatever_is_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    outside = Outside(log_level="DEBUG", metrics="all")
    world = msgspec.structs.replace(outside.world(), emit=_emit)
    for entry in (PLAIN, WARNED, FAILED):
        record(entry, world)
    emit({"PendingPods": 2.0}, world)
    written = capsys.readouterr().out
    assert written.endswith("\n")
    assert [type(json.loads(line)) for line in written.splitlines()] == [dict] * 4
