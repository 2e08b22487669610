"""The simulation itself: what it finds, that it says the same twice, and that the product passes some of it."""

import io
import re

import pytest
from msgspec.structs import replace

from sim.cloud.ec2.fleet import REPLAY_ANSWERS, ReplayAnswer
from sim.fault_simulation.__main__ import load_regressions, main
from sim.fault_simulation.drawing.draw_faults import load_known_sites
from sim.fault_simulation.drawing.draw_script import draw_brief_script, draw_script
from sim.fault_simulation.events.call_sites import KillCoverage, KillTarget
from sim.fault_simulation.events.script import Script, decode_script, encode_script
from sim.fault_simulation.events.script_events import Kill, Pause, Scale
from sim.fault_simulation.run import run_script
from sim.fault_simulation.shrink import shrink_script
from sim.fault_simulation.targeted_kills import SiteSightings, with_kills
from tests.scenario.planted import PLANTS

MAX_SEED = 50
BRIEF = (11, 12, 13)
LONG = (1, 2, 3)


@pytest.mark.no_cover  # what runs is what runs in the plays below
@pytest.mark.parametrize("name", PLANTS)
def test_planted_bug_is_found_within_fifty_seeds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, draw, kinds = PLANTS[name]
    plant(monkeypatch)
    failing_seeds = (seed for seed in range(1, MAX_SEED + 1) if kinds & run_script(draw(seed)).list_violated_kinds())
    assert next(failing_seeds, None) is not None


@pytest.mark.parametrize("seed", BRIEF)
def test_lost_launches_and_lost_leases_violate_no_invariant(seed: int) -> None:
    verdict = run_script(draw_brief_script(seed))
    assert not verdict.violations, "\n".join(verdict.timeline)


@pytest.mark.parametrize("seed", BRIEF)
@pytest.mark.parametrize("answer", REPLAY_ANSWERS)
def test_each_response_to_a_repeated_client_token_breaks_no_promise(
    answer: ReplayAnswer, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sim.cloud.ec2.fleet.REPLAY_ANSWERS", (answer,))
    verdict = run_script(draw_brief_script(seed))
    assert not verdict.violations, "\n".join(verdict.timeline)


@pytest.mark.parametrize("seed", LONG)
def test_half_an_hour_of_random_faults_violates_no_invariant(seed: int) -> None:
    verdict = run_script(draw_script(seed))
    assert not verdict.violations, "\n".join(verdict.timeline)


@pytest.mark.no_cover
def test_recorded_regression_scripts_violate_no_invariant() -> None:
    for reason, script in load_regressions():
        assert reason, "say why it is kept"
        verdict = run_script(script)
        assert not verdict.violations, "\n".join([reason, *verdict.timeline])


def test_same_seed_produces_the_same_timeline() -> None:
    first, second = run_script(draw_brief_script(7)), run_script(draw_brief_script(7))
    assert len(first.timeline) > 20
    assert "\n".join(first.timeline).encode() == "\n".join(second.timeline).encode()
    assert run_script(replace(draw_brief_script(7), seed=8)).timeline != first.timeline


def test_script_round_trips_through_its_encoded_line() -> None:
    script = draw_script(5)
    assert decode_script(encode_script(script)) == script
    assert draw_script(5) == script != draw_script(6)
    assert [event.at for event in script.events] == sorted(event.at for event in script.events)


def test_every_known_kill_site_is_drawn_by_some_seed() -> None:
    sites = {event.site for seed in range(2000) for event in draw_script(seed).events if hasattr(event, "site")}
    assert set(load_known_sites()) <= sites


def test_script_is_shrunk_to_the_events_that_cause_the_failure() -> None:
    events = tuple(Scale(at=number, name="web", replicas=number) for number in range(20))
    script = Script(seed=1, setup=draw_script(1).setup, length_seconds=60, events=events)
    needed = {events[3], events[17]}
    assert set(shrink_script(script, lambda one: needed <= set(one.events)).events) == needed
    plays: list[Script] = []

    def record_and_reject(candidate: Script) -> bool:
        plays.append(candidate)
        return False

    assert shrink_script(script, record_and_reject, max_runs=5) == script
    assert len(plays) == 5


def test_kill_coverage_lists_call_sites_that_were_never_killed() -> None:
    coverage, met = KillCoverage(), ("a kube.list", "b kube.list")
    struck: list[KillTarget] = [("a kube.list", "before"), ("a kube.list", "after"), ("b kube.list", "after")]
    coverage.add([(place, "before") for place in met], struck)
    assert coverage.find_missed_targets() == (("b kube.list", "before"),)
    assert coverage.format_summary() == "killed before 1 and after 2 of 2 call sites"


def test_missed_kill_sites_are_targeted_in_as_few_scripts_as_possible() -> None:
    sightings, scripts = SiteSightings(), [draw_script(seed) for seed in (1, 2, 3)]
    places: list[KillTarget] = [(f"lifecycle kube.{name}", "after") for name in "abcd"]
    for number, script in enumerate(scripts):
        sightings.add(script, places[number:])
    aimed = list(sightings.build_targeted_scripts([*places, ("disrupt kube.never", "after")], 3))
    assert [aimed_script.seed for aimed_script in aimed] == [1, 1]
    kill_groups = [[event for event in script.events if isinstance(event, Kill) and event.at == 0] for script in aimed]
    assert [[kill.site[-1] for kill in kills] for kills in kill_groups] == [["a", "b", "c"], ["d"]]
    assert {(kill.function, kill.nth, kill.when) for kills in kill_groups for kill in kills} == {
        ("lifecycle", 1, "after")
    }


def test_targeted_script_kills_at_a_call_site_that_its_run_reached() -> None:
    script = draw_brief_script(11)
    met = [reached for reached in run_script(script).reached_targets if reached[0].startswith("disrupt table.write")]
    assert met
    for target in met:
        assert target in run_script(with_kills(script, [target])).killed_targets


def test_command_line_runs_extra_scripts_for_call_sites_without_a_kill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.fault_simulation.__main__.draw_script", draw_brief_script)
    monkeypatch.setattr("sim.fault_simulation.__main__.TARGETS_PER_RUN", (40,))
    out = io.StringIO()
    assert main(["--seeds", "1", "--jobs", "1"], out) == 0
    lines = out.getvalue().splitlines()
    [kills] = [line for line in lines if line.startswith("kills: ")]
    assert re.search(r", [1-9]\d* of the runs were for further call sites$", kills)
    assert any("known call sites were not reached" in line for line in lines)
    assert lines[-1] == "1 seeds, 0 violations"


def test_command_line_prints_a_failing_seed_with_its_replay_command(monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTS["ignore NodePool limit"][0](monkeypatch)
    crowded = replace(draw_script(1).setup, limit_cpu=8, replicas=(("big", 2), ("web", 6)))
    monkeypatch.setattr(
        "sim.fault_simulation.__main__.draw_script", lambda seed: replace(draw_brief_script(seed), setup=crowded)
    )
    out = io.StringIO()
    assert main(["--seeds", "1", "--jobs", "1", "--no-aim"], out) == 1
    lines = out.getvalue().splitlines()
    assert any(line.startswith("again: python -m sim.fault_simulation --replay ") for line in lines)
    assert any(
        line.startswith("shrunk: ") and not decode_script(line.removeprefix("shrunk: ")).events for line in lines
    )
    assert lines[-1].startswith("1 seeds, ")
    assert not lines[-1].endswith(" 0 violations")


def test_command_line_prints_simulated_hours_and_kill_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.fault_simulation.__main__.draw_script", draw_brief_script)
    out = io.StringIO()
    assert main(["--replay", "11", "--missed"], out) == 0
    output = out.getvalue()
    assert "user: nothing is left" in output
    assert "simulated hours" in output
    assert "never killed" in output
    assert output.endswith("1 seeds, 0 violations\n")


def test_paused_function_resumes_where_it_stopped() -> None:
    script = next(
        draw_brief_script(seed)
        for seed in range(1, 20)
        if any(isinstance(e, Pause) for e in draw_brief_script(seed).events)
    )
    timeline = "\n".join(run_script(script).timeline)
    assert timeline.count(" pauses ") == timeline.count(" resumes")
