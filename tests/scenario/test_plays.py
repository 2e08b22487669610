"""The plays that are shipped, played: by the handlers that are deployed, wired by the template that is deployed."""

from pathlib import Path

import pytest

from sim.faults import Call
from sim.play import Moment, Played, Stage
from sim.scenario import read_scenario

SCENARIOS = sorted((Path(__file__).parents[2] / "examples" / "scenarios").glob("*.yaml"))


def play(path: Path, seed: int | None = None) -> tuple[Played, Stage]:
    scenario = read_scenario(path)
    stage = Stage(scenario, scenario.seed if seed is None else seed, ignored)
    return stage.play(), stage


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_act_meets_its_expectation(path: Path) -> None:
    scenario = read_scenario(path)
    stage = Stage(scenario, scenario.seed, ignored)
    misfortune, bindings = stage.world.tap, list[str]()

    def tap(call: Call) -> None:
        if call.detail.endswith("/binding"):
            bindings.append(call.detail)
        misfortune(call)

    stage.world.tap = tap
    played = stage.play()
    assert {act.name: act.failures for act in played.acts if act.failures} == {}
    assert stage.world.machines.broken == []
    assert bindings == [], "no pod is bound by us"


def test_the_same_seed_is_the_same_play_byte_for_byte_and_another_is_another() -> None:
    [path] = [path for path in SCENARIOS if path.stem == "no-capacity"]
    one, other = (play(path) for _ in range(2))
    assert one[0] == other[0]
    assert one[1].world.lines == other[1].world.lines
    assert journal(one[1]) == journal(other[1])
    assert play(path, seed=1)[1].world.lines != one[1].world.lines


def test_at_the_end_every_queue_is_empty_and_nothing_is_left_over() -> None:
    [path] = [path for path in SCENARIOS if path.stem == "no-capacity"]
    _, stage = play(path)
    world = stage.world
    assert world.living() == ()
    assert all('"result":null' not in row.body for row in world.table.rows("launch-group"))
    assert not [
        queue for queue in ("dead-letters", "interruption") if world.runtime.queue(f"demo-joiner-{queue}").messages
    ]


def journal(stage: Stage) -> list[tuple[str, bytes]]:
    return [(key, stage.world.bucket.get(key)) for key in stage.world.bucket.keys("")]


def ignored(moment: Moment) -> None:
    del moment
