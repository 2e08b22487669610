"""The trace of a pod as text and as JSON."""

import json
from pathlib import Path

import pytest

from cli.explain.pod_trace.build_trace import build_pod_trace
from cli.explain.pod_trace.waterfall import build_trace_document, render_waterfall
from tests.unit.cli.explain.explained_journals import PLAIN, build_journal_evidence, run, write_journal
from tests.unit.cli.explain.pod_trace.traced_journals import TRACED_ENTRIES, make_trace_cluster

Out = pytest.CaptureFixture[str]
WATERFALL = """\
pod shop/cart on node n1 (NodeClaim c1)
recorded time: 1m, from 2026-11-21 08:00:00 to 08:01:00; longest step: Node created, 28s (47%)

STEP               AT (UTC)         TOOK  FROM
pod created        08:00:00           0s  Pod        ▏
unschedulable      08:00:05           5s  journal    ███
planned            08:00:05           0s  journal       ▏
  new node, cheapest instance type m5.large
NodeClaim created  08:00:06           1s  NodeClaim     █
CreateFleet        08:00:05           0s  journal       ▏
  1 x spot
instance launched  08:00:07           1s  NodeClaim      █
Node created       08:00:35          28s  Node           ███████████████████
registered         08:00:40           5s  NodeClaim                          ███
initialized        08:00:50          10s  NodeClaim                            ███████
pod bound          08:00:52           2s  Pod                                          █
  on node n1
pod ready          08:01:00           8s  Pod                                           █████
"""


def test_waterfall_shows_times_durations_and_bars() -> None:
    trace = build_pod_trace(build_journal_evidence(*TRACED_ENTRIES, live=make_trace_cluster()), "shop/cart")
    text = render_waterfall(trace, "the journal", PLAIN, 100)
    assert text == f"{WATERFALL}\nthe journal\n"
    page = Path(__file__).parents[5] / "docs" / "guide" / "pod-trace.md"
    assert WATERFALL in page.read_text(encoding="utf-8")


def test_document_has_each_step_with_seconds() -> None:
    trace = build_pod_trace(build_journal_evidence(*TRACED_ENTRIES, live=make_trace_cluster()), "shop/cart")
    document = build_trace_document(trace)
    assert (document["totalSeconds"], document["longestStep"], document["waiting"]) == (60, "Node created", False)
    registered = next(step for step in document["steps"] if step["name"] == "registered")
    assert {key: value for key, value in registered.items() if key != "at"} == {
        "name": "registered",
        "status": "recorded",
        "offsetSeconds": 40,
        "seconds": 5,
        "source": "NodeClaim",
        "nodeClaim": "c1",
        "message": "",
        "failed": False,
    }


def test_command_prints_the_waterfall_and_json(tmp_path: Path, capsys: Out) -> None:
    journal = write_journal(tmp_path, *TRACED_ENTRIES)
    assert run("pod", "cart", journal, "--trace") == 0
    text = capsys.readouterr().out
    assert "pod bound          not recorded" in text
    assert text.splitlines()[0] == "pod shop/cart on node n1 (NodeClaim c1)"
    assert run("pod", "cart", journal, "--trace", "-o", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["apiVersion"], document["name"], document["totalSeconds"]) == ("joiner/v1", "shop/cart", 45)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("node", "n1", "--trace"), "--trace needs a pod, not a node"),
        (("pod", "cart", "--otlp", "http://localhost:1"), "--otlp needs --trace"),
    ],
)
def test_wrong_usage_says_how_to_write_it(
    arguments: tuple[str, ...], message: str, tmp_path: Path, capsys: Out
) -> None:
    kind, name, *flags = arguments
    with pytest.raises(SystemExit) as exit_info:
        run(kind, name, str(tmp_path), *flags)
    assert exit_info.value.code == 2
    assert message in capsys.readouterr().err


def test_unknown_pod_is_an_error(tmp_path: Path, capsys: Out) -> None:
    assert run("pod", "nothing-like-it", write_journal(tmp_path, *TRACED_ENTRIES), "--trace") == 1
    assert "pod nothing-like-it not found" in capsys.readouterr().err
