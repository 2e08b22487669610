"""`joiner demo`: a play on the terminal, as JSON, as a page."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from cli import demo
from cli.main import main
from cli.page import page
from cli.text import Palette, clock_text, columns, dollars, seconds
from sim import play
from sim.clock import START
from sim.embedded import Embedded
from sim.lambdas.template import SynthesisError
from sim.measure import Sample
from sim.play import Judged, Moment, Played
from sim.scenario import MEASURES, Act, Scenario
from tests.unit.plays import deployment, document, narrow

Out = pytest.CaptureFixture[str]
RUNS = {
    "name": "a <b>bold</b> pod",
    "says": "one & only",
    "do": [{"apply": deployment(1)}],
    "within": "4m",
    "expect": {"running": 1, "nodes": 1},
}
FAILS = {"name": "too much", "within": "5s", "expect": {"running": 9}}


@pytest.fixture(autouse=True)
def _few_types(monkeypatch: pytest.MonkeyPatch) -> None:
    def small(seed: int) -> Embedded:
        world = Embedded(seed)
        narrow(world)
        return world

    monkeypatch.setattr(play, "Embedded", small)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(folder: Path, *acts: dict[str, Any], **fields: Any) -> str:
    path = folder / "play.yaml"
    path.write_text(yaml.safe_dump(document(*acts, **fields)), encoding="utf-8")
    return str(path)


def run(folder: Path, *arguments: str, acts: tuple[dict[str, Any], ...] = (RUNS,), **fields: Any) -> int:
    return main(["demo", "--scenario", written(folder, *acts, **fields), *arguments])


def test_a_play_is_shown_as_a_timeline_and_a_table(folder: Path, capsys: Out) -> None:
    assert run(folder, says="to see something") == 0
    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert lines[0] == "small: to see something"
    assert lines[1].split() == ["time", "who", "what", "nodes", "pods", "$/h"]
    assert " 0:00:00  act                   a <b>bold</b> pod" in told.out
    assert "one & only" in told.out
    assert re.search(r"EC2 +\w{6} \S+ spot running +\S+ +\d/\d +0\.\d{3}\n", told.out)
    assert re.search(r"^a <b>bold</b> pod +yes +\d+ s +1 +1 +0\.\d{3} +1 +0$", told.out, re.MULTILINE)
    assert re.search(r"pending pod to CreateFleet +p50 \d+ s +p95 \d+ s", told.out)
    assert "prices are synthetic" in told.out
    assert lines[-1] == "plots: demo.html"
    assert told.err == ""


def test_no_colour_reaches_what_is_no_terminal(folder: Path, capsys: Out) -> None:
    run(folder, "--page", "none", acts=(FAILS,))
    assert "\x1b" not in capsys.readouterr().out


def test_a_terminal_is_painted(folder: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    run(folder, "--page", "none", acts=(FAILS, RUNS))
    told = capsys.readouterr().out
    assert "\x1b[1msmall\x1b[0m" in told
    assert "\x1b[31m    running is 0, expected 9\x1b[0m" in told
    assert re.search("\x1b\\[32m +yes\x1b\\[0m", told)
    assert "\x1b[33m" in told


def test_an_expectation_that_is_not_met_is_one_and_told(folder: Path, capsys: Out) -> None:
    assert run(folder, "--page", "none", acts=(FAILS,)) == 1
    told = capsys.readouterr().out
    assert re.search(r"^too much +NO +- ", told, re.MULTILINE)
    assert "    running is 0, expected 9\n" in told
    assert "too much: NOT as expected" in told


def test_without_a_page_nothing_is_written(folder: Path, capsys: Out) -> None:
    assert run(folder, "--page", "none") == 0
    assert [path.name for path in folder.iterdir()] == ["play.yaml"]
    assert "plots:" not in capsys.readouterr().out


def test_json_is_json_and_the_same_for_the_same_seed(folder: Path, capsys: Out) -> None:
    told = []
    for seed in ("3", "3", "0"):
        assert run(folder, "-o", "json", "--page", "none", "--seed", seed, seed=4) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1] != told[2]
    for own, expected in ((3, told[0]), (0, told[2])):
        assert run(folder, "-o", "json", "--page", "none", seed=own) == 0
        assert capsys.readouterr().out == expected


def test_json_has_seconds_and_numbers(folder: Path, capsys: Out) -> None:
    assert run(folder, "-o", "json", acts=(RUNS, FAILS)) == 1
    told = json.loads(capsys.readouterr().out)
    assert list(told) == [
        "scenario",
        "passed",
        "acts",
        "pendingToCreateFleetSeconds",
        "pendingToRunningSeconds",
        "functionCalls",
        "pricesAreSynthetic",
    ]
    assert (told["scenario"], told["passed"], told["pricesAreSynthetic"]) == ("small", False, True)
    first, second = told["acts"]
    assert (first["passed"], first["failures"], list(first["measures"])) == (True, [], list(MEASURES))
    assert (second["heldAfterSeconds"], second["failures"]) == (None, ["running is 1, expected 9"])
    assert set(told["pendingToRunningSeconds"]) == {"p50", "p95"}
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
def test_a_scenario_that_cannot_be_played_is_one_line(
    folder: Path, capsys: Out, content: bytes | None, words: str
) -> None:
    path = folder / "bad.yaml"
    if content is not None:
        path.write_bytes(content)
    assert main(["demo", "--scenario", str(path)]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"joiner demo: {path}: ")
    assert words in told
    assert told.count("\n") == 1
    assert not (folder / "demo.html").exists()


def test_a_page_that_cannot_be_written_is_named(folder: Path, capsys: Out) -> None:
    assert run(folder, "--page", "nowhere/demo.html", acts=({"name": "none"},)) == 1
    assert capsys.readouterr().err == "joiner demo: nowhere/demo.html: No such file or directory\n"


def test_a_stack_that_cannot_be_synthesised_is_told(folder: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(seed: int) -> Embedded:
        raise SynthesisError(f"no node on PATH, {seed}")

    monkeypatch.setattr(play, "Embedded", broken)
    assert run(folder) == 1
    assert "the stack cannot be synthesised: no node on PATH" in capsys.readouterr().err


def test_help_says_what_may_be_expected_and_how(capsys: Out) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["demo", "--help"])
    told = capsys.readouterr().out
    assert all(f"  {name}" in told for name in MEASURES)
    assert "joiner demo -o json > run.json" in told


# The page


def sample(second: int, running: int = 1) -> Sample:
    at = START.replace(minute=second // 60, second=second % 60)
    return Sample(at=at, running=running, pending=0, nodes=1, managed=0, vcpus=2, cost_usd_per_hour=0.1)


def made(**fields: Any) -> Played:
    act = Judged(
        name="<act>",
        says='"says"',
        began=START,
        ended=sample(60).at,
        held_after=None,
        failures=("nodes is <1>",),
        measures=dict.fromkeys(MEASURES, 0.0),
    )
    moment = Moment(at=START, who="<who>", what="<what>", why="<why>")
    plain = Played(
        scenario=Scenario(name="<name>", says="<says>", acts=(Act(name="a"),)),
        began=START,
        acts=(act,),
        samples=(sample(0), sample(30, 3), sample(60, 3)),
        moments=(moment, msgspec.structs.replace(moment, why="")),
        to_launch=(8.0, None),
        to_running=(None, None),
        calls=3,
    )
    return msgspec.structs.replace(plain, **fields)


def test_a_page_needs_nothing_from_elsewhere() -> None:
    html = page(made())
    assert not re.findall(r"https?://|//[a-z]", html)
    assert not re.findall(r"<script|src=|href=|@import|url\(|<link|<iframe", html)
    assert html.startswith("<!doctype html>")
    assert '<meta charset="utf-8">' in html
    assert "<style>:root" in html


def test_a_page_escapes_whatever_a_scenario_says() -> None:
    html = page(made())
    for word in ("<name>", "<says>", "<act>", '"says"', "nodes is <1>", "<who>", "<what>", "<why>"):
        assert word not in html
    for word in ("&lt;name&gt;", "&quot;says&quot;", "nodes is &lt;1&gt;", "&lt;why&gt;"):
        assert word in html


def test_a_page_has_a_plot_for_pods_nodes_and_cost() -> None:
    html = page(made())
    assert re.findall('aria-label="([^":]+):', html) == ["Pods", "Nodes", "Cost, synthetic $/h"]
    assert html.count("<path") == 6


def test_a_plot_is_steps_up_to_the_end() -> None:
    [path, *_] = re.findall(r'<path class="a" d="([^"]+)"', page(made()))
    assert path == "M44.0 91.3H498.0V18.0H952.0"


def test_what_was_before_the_play_is_not_plotted() -> None:
    early = made(began=sample(30).at)
    assert re.findall(r'<path class="a" d="([^"]+)"', page(early))[0] == "M44.0 18.0H952.0"
    assert "<svg" not in page(made(samples=()))


def test_a_play_of_nothing_has_a_page() -> None:
    html = page(made(samples=(sample(0, 0),), acts=(), moments=()))
    assert "nan" not in html
    assert "<svg" in html


def test_acts_that_passed_and_failed_look_different() -> None:
    passed = msgspec.structs.replace(made().acts[0], failures=(), held_after=61.0)
    html = page(made(acts=(made().acts[0], passed)))
    assert html.count('<span class="yes">yes</span>') == 1
    assert html.count('<span class="no">no</span>') == 1
    assert '<td class="n">61 s' in html


def test_a_page_of_a_real_play_is_written_as_utf8(folder: Path) -> None:
    assert run(folder, "--page", "out.html", says="ünïcode ✓") == 0
    html = (folder / "out.html").read_bytes().decode("utf-8")
    assert "ünïcode ✓" in html
    assert "a &lt;b&gt;bold&lt;/b&gt; pod" in html
    assert "joins the cluster" in html


# Text


@pytest.mark.parametrize(
    ("colour", "enabled", "painted"),
    [("red", True, "\x1b[31mx\x1b[0m"), ("red", False, "x"), ("plain", True, "x"), ("plain", False, "x")],
)
def test_a_palette_paints_known_colours_where_somebody_sees_them(colour: str, enabled: bool, painted: str) -> None:  # noqa: FBT001 - a table's column
    assert Palette(enabled=enabled).paint(colour, "x") == painted


def test_a_line_of_the_timeline_keeps_its_columns_and_cuts_what_is_too_long() -> None:
    line = columns("0:00:00", "w" * 30, "x" * 90, "1+1", "3/4", "0.100")
    assert line == f" 0:00:00  {'w' * 22}{'x' * 72}   1+1     3/4   0.100"
    assert columns("0:00:00", "act", "one", "", "", "") == " 0:00:00  act                   one"


def test_numbers_are_short() -> None:
    assert clock_text(sample(59).at - START) == "0:00:59"
    assert clock_text((sample(60).at - START) * 600) == "10:00:00"
    assert (seconds(None), seconds(0.0), seconds(59.6), dollars(0.0), dollars(12.3456)) == (
        "-",
        "0 s",
        "60 s",
        "0.000",
        "12.346",
    )


def test_a_moment_without_a_state_is_a_line_without_numbers(capsys: Out) -> None:
    timeline = demo.Timeline(made().scenario, Palette(enabled=False))
    timeline.tell(Moment(at=START, who="EC2", what="something"))
    assert capsys.readouterr().out.splitlines()[-1] == " 0:00:00  EC2                   something"
