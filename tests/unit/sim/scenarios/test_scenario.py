"""Tests of scenario files: a file is read as a whole or refused, with the file, the act and the field."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from sim.scenarios.scenario import MEASURE_DESCRIPTIONS, Scenario, ScenarioError, meets_expectation, read_scenario
from tests.support.plays import make_scenario_document

SHIPPED = sorted((Path(__file__).parents[4] / "examples" / "scenarios").glob("*.yaml"))
SCALE = {"scale": {"name": "web", "replicas": 1}}

ScenarioWriter = Callable[..., Path]


@pytest.fixture
def write_scenario(tmp_path: Path) -> ScenarioWriter:
    def write(content: object) -> Path:
        path = tmp_path / "play.yaml"
        path.write_bytes(content if isinstance(content, bytes) else yaml.safe_dump(content).encode())
        return path

    return write


def make_act(**fields: Any) -> dict[str, Any]:
    return {"name": "first", **fields}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_scenario_is_valid(path: Path) -> None:
    scenario = read_scenario(path)
    assert scenario.says
    assert all(scenario_act.expect for scenario_act in scenario.acts)


def test_shipped_scenarios_exist() -> None:
    assert {path.stem for path in SHIPPED} >= {"classic", "no-capacity", "bad-input"}


def test_omitted_scenario_fields_have_defaults(write_scenario: ScenarioWriter) -> None:
    scenario = read_scenario(write_scenario({"name": "bare", "acts": [{"name": "wait"}]}))
    assert isinstance(scenario, Scenario)
    assert (scenario.seed, scenario.managed, scenario.set_up, scenario.says) == (0, None, (), "")
    assert (scenario.acts[0].time_limit, scenario.acts[0].hold, scenario.acts[0].do) == ("5m", "0s", ())


def test_all_measures_and_step_kinds_are_accepted(write_scenario: ScenarioWriter) -> None:
    steps = [
        SCALE,
        {"apply": {"kind": "Node", "metadata": {"name": "n"}}},
        {"delete": {"kind": "Node", "name": "n"}},
        {"fault": {"kind": "kill"}},
        {"wait": "5s"},
    ]
    read = read_scenario(
        write_scenario(make_scenario_document(make_act(do=steps, expect=dict.fromkeys(MEASURE_DESCRIPTIONS, ">= 0"))))
    )
    assert len(read.acts[0].do) == 5


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (make_act(do=[{}]), "act 'first': step 1 must be one of scale, apply, delete, fault, wait"),
        (make_act(do=[SCALE, SCALE | {"wait": "1s"}]), "act 'first': step 2 must be one of"),
        (
            make_act(do=[{"wait": "soon"}]),
            "act 'first': step 1: wait: not a duration: 'soon'; write it as 90s or 1m30s",
        ),
        (make_act(do=[{"wait": "-5s"}]), "act 'first': step 1: wait: '-5s' is less than nothing"),
        (make_act(within="5"), "act 'first': within: not a duration: '5'"),
        (make_act(within="-5m"), "act 'first': within: '-5m' is less than nothing"),
        (make_act(hold="x"), "act 'first': hold: not a duration"),
        (
            make_act(do=[{"fault": {"kind": "apiDown", "lasts": "?"}}]),
            "act 'first': step 1: fault: lasts: not a duration",
        ),
        (make_act(expect={"runing": 1}), "act 'first': expect: 'runing' is not measured; known are running, pending"),
        (make_act(expect={"running": "many"}), "act 'first': expect: running: 'many' is no number and no comparison"),
        (make_act(expect={"running": ">= "}), "act 'first': expect: running: '>= ' is no number"),
        (
            make_act(do=[{"apply": {"metadata": {"name": "a"}}}]),
            "act 'first': step 1: apply: kind: a manifest must have",
        ),
        (make_act(do=[{"apply": {"kind": "Pod"}}]), "act 'first': step 1: apply: metadata.name: a manifest must have"),
        (make_act(do=[{"apply": {"kind": "Pod", "metadata": {"name": ""}}}]), "apply: metadata.name"),
        (make_act(do=[{"apply": {"kind": 3, "metadata": {"name": "a"}}}]), "apply: kind"),
        (make_act(do=[{"apply": {"kind": "Pod", "metadata": []}}]), "apply: metadata.name"),
        (make_act(do=[{"fault": {"kind": "flood"}}]), "`$.acts[0].do[0].fault.kind`"),
        (
            make_act(do=[{"fault": {"kind": "noCapacity", "capacityType": "cheap"}}]),
            "`$.acts[0].do[0].fault.capacityType`",
        ),
        (make_act(do=[{"scale": {"name": "web"}}]), "missing required field `replicas` - at `$.acts[0].do[0].scale`"),
        (make_act(do=[{"delete": {"name": "web"}}]), "missing required field `kind` - at `$.acts[0].do[0].delete`"),
        (make_act(does=[]), "unknown field `does` - at `$.acts[0]`"),
        (make_act(expect={"running": True}), "`$.acts[0].expect[...]`"),
    ],
)
def test_invalid_act_is_rejected_with_file_act_and_field(
    write_scenario: ScenarioWriter, bad: dict[str, Any], words: str
) -> None:
    path = write_scenario(make_scenario_document(bad))
    with pytest.raises(ScenarioError) as refused:
        read_scenario(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"acts: [", "not YAML: while parsing"),
        (b"\xff\xfe\xff", "not UTF-8"),
        (b"", "Expected `object`, got `null`"),
        (b"- 1", "Expected `object`, got `array`"),
        ({"acts": []}, "missing required field `name`"),
        ({"name": "none", "acts": []}, "acts: there must be one at least"),
        ({"name": "x", "acts": [{"name": "a"}], "setUp": [{"kind": "Pod"}]}, "setUp: manifest 1: metadata.name"),
        ({"name": "x", "acts": [{"name": "a"}], "seed": "a"}, "`$.seed`"),
        ({"name": "x", "acts": [{"name": "a"}], "managed": {"instancetype": "a"}}, "unknown field `instancetype`"),
    ],
)
def test_invalid_scenario_file_is_rejected_in_one_line(
    write_scenario: ScenarioWriter, content: object, words: str
) -> None:
    path = write_scenario(content)
    with pytest.raises(ScenarioError) as refused:
        read_scenario(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_missing_scenario_file_is_reported_by_name(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"nowhere\.yaml: No such file or directory"):
        read_scenario(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize(
    ("expectation", "measured", "is_met"),
    [
        (2, 2.0, True),
        (2.5, 2, False),
        ("2", 2, None),
        ("== 2", 2, True),
        ("!= 2", 2, False),
        (">= 2", 2, True),
        ("> 2", 2, False),
        ("<=2", 2, True),
        (" < -0.5 ", -1, True),
        ("=> 2", 2, None),
    ],
)
def test_expectation_is_a_number_or_a_comparison(
    expectation: float | str,
    measured: float,
    is_met: bool | None,  # noqa: FBT001 - a table's column
) -> None:
    if is_met is None:
        with pytest.raises(ValueError, match="no comparison"):
            meets_expectation(expectation, measured)
    else:
        assert meets_expectation(expectation, measured) is is_met
