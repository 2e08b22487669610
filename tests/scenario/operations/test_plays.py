"""The example scenarios, run by the deployed handlers and wired by the deployed template."""

from pathlib import Path

import pytest

from sim.fault_tap import PortCall
from sim.scenarios.runner import ScenarioResult, ScenarioRunner, TimelineEntry
from sim.scenarios.scenario import read_scenario

SCENARIOS = sorted((Path(__file__).parents[3] / "examples" / "scenarios").glob("*.yaml"))


def run_play(path: Path, seed: int | None = None) -> tuple[ScenarioResult, ScenarioRunner]:
    scenario = read_scenario(path)
    stage = ScenarioRunner(scenario, scenario.seed if seed is None else seed, ignore_entry)
    return stage.run_scenario(), stage


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_act_of_an_example_scenario_meets_its_expectations(path: Path) -> None:
    scenario = read_scenario(path)
    stage = ScenarioRunner(scenario, scenario.seed, ignore_entry)
    scenario_tap, bindings = stage.world.tap, list[str]()

    def record_bindings(call: PortCall) -> None:
        if call.detail.endswith("/binding"):
            bindings.append(call.detail)
        scenario_tap(call)

    stage.world.tap = record_bindings
    played = stage.run_scenario()
    assert {act.name: act.failures for act in played.acts if act.failures} == {}
    assert stage.world.instance_booter.boot_failures == []
    assert bindings == [], "no pod is bound by us"


def test_same_seed_produces_identical_output_and_a_different_seed_does_not() -> None:
    [path] = [path for path in SCENARIOS if path.stem == "no-capacity"]
    first_play, second_play = (run_play(path) for _ in range(2))
    assert first_play[0] == second_play[0]
    assert first_play[1].world.log_lines == second_play[1].world.log_lines
    assert read_journal(first_play[1]) == read_journal(second_play[1])
    assert run_play(path, seed=1)[1].world.log_lines != first_play[1].world.log_lines


def test_scenario_ends_with_empty_queues_and_no_leftover_instances() -> None:
    [path] = [path for path in SCENARIOS if path.stem == "no-capacity"]
    _, stage = run_play(path)
    world = stage.world
    assert world.list_active_instances() == ()
    assert all('"result":null' not in row.body for row in world.table.list_rows("launch-group"))
    assert not [
        queue for queue in ("dead-letters", "interruption") if world.runtime.get_queue(f"demo-joiner-{queue}").messages
    ]


def read_journal(stage: ScenarioRunner) -> list[tuple[str, bytes]]:
    return [(key, stage.world.bucket.get(key)) for key in stage.world.bucket.list_keys("")]


def ignore_entry(entry: TimelineEntry) -> None:
    del entry
