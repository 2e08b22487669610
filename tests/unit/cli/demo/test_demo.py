"""`joiner demo`: a scenario on the terminal, as JSON, as a page."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from cli.demo.timeline import Timeline
from cli.fleet.document.node_columns import NODE_STATES
from cli.fleet.document.pod_columns import NO_NODE
from cli.main import main
from cli.terminal.text import Palette, format_clock, format_seconds, format_timeline_row, format_usd_cell
from sim.lambda_runtime.stack_template.synthesis import SynthesisError
from sim.scenarios import runner
from sim.scenarios.runner import ActResult, ScenarioResult, TimelineEntry
from sim.scenarios.scenario import MEASURE_DESCRIPTIONS, Act, Scenario
from sim.time.virtual_clock import DEFAULT_START_TIME
from sim.world.embedded_world import EmbeddedWorld
from sim.world.measurements import ClusterSample
from tests.support.cli.page_assets import read_embedded_document, write_fake_assets
from tests.support.plays import make_deployment, make_scenario_document, narrow

Out = pytest.CaptureFixture[str]
RUNS = {
    "name": "a <b>bold</b> pod",
    "says": "one & only",
    "do": [{"apply": make_deployment(1)}],
    "within": "4m",
    "expect": {"running": 1, "nodes": 1},
}
FAILS = {"name": "too much", "within": "5s", "expect": {"running": 9}}


@pytest.fixture(autouse=True)
def _few_types(monkeypatch: pytest.MonkeyPatch) -> None:
    def build_small_world(seed: int) -> EmbeddedWorld:
        world = EmbeddedWorld(seed)
        narrow(world)
        return world

    monkeypatch.setattr(runner, "EmbeddedWorld", build_small_world)


@pytest.fixture
def folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cli.ui.page.ASSET_FOLDER", write_fake_assets(tmp_path_factory.mktemp("assets")))
    return tmp_path


def write_scenario(folder: Path, *acts: dict[str, Any], **fields: Any) -> str:
    path = folder / "play.yaml"
    path.write_text(yaml.safe_dump(make_scenario_document(*acts, **fields)), encoding="utf-8")
    return str(path)


def run(folder: Path, *arguments: str, acts: tuple[dict[str, Any], ...] = (RUNS,), **fields: Any) -> int:
    return main(["demo", "--scenario", write_scenario(folder, *acts, **fields), *arguments])


def test_demo_prints_a_timeline_and_a_results_table(folder: Path, capsys: Out) -> None:
    assert run(folder, says="to see something") == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0] == "small: to see something"
    assert lines[1].split() == ["time", "source", "event", "nodes", "pods", "$/h"]
    assert " 0:00:00  act                   a <b>bold</b> pod" in captured.out
    assert "one & only" in captured.out
    assert re.search(r"EC2 +\w{6} \S+ spot running +\S+ +\d/\d +0\.\d{3}\n", captured.out)
    assert re.search(r"^a <b>bold</b> pod +yes +\d+ s +1 +1 +0\.\d{3} +1 +0$", captured.out, re.MULTILINE)
    assert re.search(r"pending pod to CreateFleet +p50 \d+ s +p95 \d+ s", captured.out)
    assert "prices are synthetic" in captured.out
    assert lines[-1] == "page: demo.html; open it in a browser to watch the 1 acts"
    assert "fleet  " in captured.out
    assert captured.err == ""


def test_output_without_a_terminal_has_no_colors(folder: Path, capsys: Out) -> None:
    run(folder, "--page", "none", acts=(FAILS,))
    assert "\x1b" not in capsys.readouterr().out


def test_terminal_output_is_colored(folder: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    run(folder, "--page", "none", acts=(FAILS, RUNS))
    output = capsys.readouterr().out
    assert "\x1b[1msmall\x1b[0m" in output
    assert "\x1b[31m    running is 0, expected 9\x1b[0m" in output
    assert re.search("\x1b\\[32m +yes\x1b\\[0m", output)
    assert "\x1b[33m" in output


def test_unmet_expectation_exits_with_1_and_is_reported(folder: Path, capsys: Out) -> None:
    assert run(folder, "--page", "none", acts=(FAILS,)) == 1
    output = capsys.readouterr().out
    assert re.search(r"^too much +NO +- ", output, re.MULTILINE)
    assert "    running is 0, expected 9\n" in output
    assert "too much: NOT as expected" in output


def test_demo_without_page_writes_no_files(folder: Path, capsys: Out) -> None:
    assert run(folder, "--page", "none") == 0
    assert [path.name for path in folder.iterdir()] == ["play.yaml"]
    assert "page:" not in capsys.readouterr().out


def test_json_output_is_identical_for_the_same_seed(folder: Path, capsys: Out) -> None:
    outputs = []
    for seed in ("3", "3", "0"):
        assert run(folder, "-o", "json", "--page", "none", "--seed", seed, seed=4) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] != outputs[2]
    for other_seed, expected in ((3, outputs[0]), (0, outputs[2])):
        assert run(folder, "-o", "json", "--page", "none", seed=other_seed) == 0
        assert capsys.readouterr().out == expected


def test_json_output_has_seconds_and_measures(folder: Path, capsys: Out) -> None:
    assert run(folder, "-o", "json", acts=(RUNS, FAILS)) == 1
    document = json.loads(capsys.readouterr().out)
    assert list(document) == [
        "apiVersion",
        "scenario",
        "passed",
        "acts",
        "pendingToCreateFleetSeconds",
        "pendingToRunningSeconds",
        "functionCalls",
        "pricesAreSynthetic",
    ]
    assert (document["scenario"], document["passed"], document["pricesAreSynthetic"]) == ("small", False, True)
    first, second = document["acts"]
    assert (first["passed"], first["failures"], list(first["measures"])) == (True, [], list(MEASURE_DESCRIPTIONS))
    assert (second["metAfterSeconds"], second["failures"]) == (None, ["running is 1, expected 9"])
    assert set(document["pendingToRunningSeconds"]) == {"p50", "p95"}
    assert (folder / "demo.html").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory"),
        (b"acts: [", "not YAML"),
        (b"name: x\nacts: [{name: a, expect: {runing: 1}}]", "act 'a': expect: 'runing' is not measured"),
        (b"name: x\nacts: [{name: a, do: [{scale: {name: w, replicas: 1}}]}]", "act 'a': step 1: deployments.apps"),
        (b"name: x\nacts: [{name: a}]\nmanaged: {instanceType: m99}", "managed: instanceType: EC2 has no type 'm99'"),
    ],
)
def test_invalid_scenario_prints_a_one_line_error(folder: Path, capsys: Out, content: bytes | None, words: str) -> None:
    path = folder / "bad.yaml"
    if content is not None:
        path.write_bytes(content)
    assert main(["demo", "--scenario", str(path)]) == 1
    error_output = capsys.readouterr().err
    assert error_output.startswith(f"joiner demo: {path}: ")
    assert words in error_output
    assert error_output.count("\n") == 1
    assert not (folder / "demo.html").exists()


def test_unwritable_page_path_is_reported(folder: Path, capsys: Out) -> None:
    assert run(folder, "--page", "nowhere/demo.html", acts=({"name": "none"},)) == 1
    assert capsys.readouterr().err == "joiner demo: nowhere/demo.html: No such file or directory\n"


def test_failed_stack_synthesis_is_reported(folder: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_synthesis(seed: int) -> EmbeddedWorld:
        raise SynthesisError(f"no node on PATH, {seed}")

    monkeypatch.setattr(runner, "EmbeddedWorld", fail_synthesis)
    assert run(folder) == 1
    assert "the stack cannot be synthesized: no node on PATH" in capsys.readouterr().err


def test_help_lists_all_measures_and_examples(capsys: Out) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["demo", "--help"])
    help_text = capsys.readouterr().out
    assert all(f"  {name}" in help_text for name in MEASURE_DESCRIPTIONS)
    assert "joiner demo -o json > run.json" in help_text


# The page


def make_sample(second: int, running: int = 1) -> ClusterSample:
    at = DEFAULT_START_TIME.replace(minute=second // 60, second=second % 60)
    return ClusterSample(
        sampled_at=at,
        running_pods=running,
        pending_pods=0,
        joiner_nodes=1,
        managed_nodes=0,
        vcpus=2,
        cost_usd_per_hour=0.1,
    )


def make_result(**fields: Any) -> ScenarioResult:
    act = ActResult(
        name="<act>",
        description='"says"',
        started_at=DEFAULT_START_TIME,
        ended_at=make_sample(60).sampled_at,
        met_after_seconds=None,
        failures=("nodes is <1>",),
        measures=dict.fromkeys(MEASURE_DESCRIPTIONS, 0.0),
    )
    moment = TimelineEntry(at=DEFAULT_START_TIME, source="<who>", message="<what>", reason="<why>")
    plain = ScenarioResult(
        scenario=Scenario(name="<name>", says="<says>", acts=(Act(name="a"),)),
        started_at=DEFAULT_START_TIME,
        acts=(act,),
        samples=(make_sample(0), make_sample(30, 3), make_sample(60, 3)),
        timeline=(moment, msgspec.structs.replace(moment, reason="")),
        seconds_to_launch=(8.0, None),
        seconds_to_running=(None, None),
        invocation_count=3,
    )
    return msgspec.structs.replace(plain, **fields)


def test_html_page_is_written_as_utf8_and_contains_the_document(folder: Path) -> None:
    assert run(folder, "--page", "out.html", says="ünïcode ✓") == 0
    html = (folder / "out.html").read_bytes().decode("utf-8")
    assert html.startswith("<!doctype html>")
    document = read_embedded_document(html)
    assert (document.source.title, document.source.notes[0]) == ("Joiner demo: small", "ünïcode ✓")
    assert [(marker.title, marker.text) for marker in document.markers if marker.kind == "act"] == [
        ("1. a <b>bold</b> pod", "one & only")
    ]
    assert "<b>" not in html


def test_document_has_the_exact_places_of_pods_and_states_of_nodes(folder: Path) -> None:
    assert run(folder, "--page", "out.html") == 0
    document = read_embedded_document((folder / "out.html").read_text(encoding="utf-8"))
    strings, nodes = document.strings, document.nodes
    assert [strings[name] for name in nodes.claim if name is not None] == [strings[nodes.claim[0] or 0]]
    states = [
        NODE_STATES[state] for node, state in zip(document.node_states.node, document.node_states.state, strict=True)
    ]
    assert states[-2:] == ["registered", "ready"]
    [web] = [pod for pod, name in enumerate(document.pods.name) if strings[name].startswith("web-")]
    places = [place for pod, place in zip(document.pod_places.pod, document.pod_places.node, strict=True) if pod == web]
    assert places == [NO_NODE, 0]
    assert document.totals.cost_usd > 0
    assert document.decisions[0].kind == "deploy"
    assert [decision.kind for decision in document.decisions if decision.nodes == (0,)][:2] == ["launch", "launch"]


def test_missing_script_is_reported_with_the_fix(folder: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.ui.page.ASSET_FOLDER", folder / "nowhere")
    assert run(folder, acts=({"name": "none"},)) == 1
    error_output = capsys.readouterr().err
    assert error_output.startswith("joiner demo: demo.html was not written: fleet.js is not built: run `make ui`")
    assert "`--page none`" in error_output


def test_terminal_shows_the_fleet_line_and_prints_the_timeline_at_the_end(
    folder: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.demo.timeline.is_terminal", lambda: True)
    assert run(folder, "--page", "none", acts=({"name": "none"},)) == 0
    output = capsys.readouterr().out
    assert output.count("small: ") == 1
    assert "no pods" in output


# Text


@pytest.mark.parametrize(
    ("colour", "enabled", "painted"),
    [("red", True, "\x1b[31mx\x1b[0m"), ("red", False, "x"), ("", True, "x"), ("", False, "x")],
)
def test_palette_colors_text_only_if_enabled(colour: str, enabled: bool, painted: str) -> None:  # noqa: FBT001 - a table's column
    assert Palette(enabled=enabled).colorize(colour, "x") == painted


def test_timeline_row_keeps_its_columns_and_truncates_long_text() -> None:
    line = format_timeline_row("0:00:00", "w" * 30, "x" * 90, "1+1", "3/4", "0.100")
    assert line == f" 0:00:00  {'w' * 22}{'x' * 72}   1+1     3/4   0.100"
    assert format_timeline_row("0:00:00", "act", "one", "", "", "") == " 0:00:00  act                   one"


def test_times_seconds_and_prices_are_formatted_briefly() -> None:
    assert format_clock(make_sample(59).sampled_at - DEFAULT_START_TIME) == "0:00:59"
    assert format_clock((make_sample(60).sampled_at - DEFAULT_START_TIME) * 600) == "10:00:00"
    assert (
        format_seconds(None),
        format_seconds(0.0),
        format_seconds(59.6),
        format_usd_cell(0.0),
        format_usd_cell(12.3456),
    ) == (
        "-",
        "0 s",
        "60 s",
        "0.000",
        "12.346",
    )


def test_timeline_entry_without_state_has_no_numbers(capsys: Out) -> None:
    timeline = Timeline(make_result().scenario, Palette(enabled=False))
    timeline.print_moment(TimelineEntry(at=DEFAULT_START_TIME, source="EC2", message="something"))
    assert capsys.readouterr().out.splitlines()[-1] == " 0:00:00  EC2                   something"
