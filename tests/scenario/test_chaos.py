"""The simulation itself: what it finds, that it says the same twice, and that the product passes some of it."""

import io
import re

import pytest
from msgspec.structs import replace

from sim.chaos.__main__ import main, regressions
from sim.chaos.aimed import Sightings, with_kills
from sim.chaos.draw import brief_of, script_of
from sim.chaos.draw_faults import known_sites
from sim.chaos.events import Kill, Pause, Scale
from sim.chaos.run import play
from sim.chaos.script import Script, decoded, encoded
from sim.chaos.shrink import shrunk
from sim.chaos.sites import Coverage, Target
from tests.scenario.planted import PLANTS

MOST = 50
BRIEF = (11, 12, 13)
LONG = (1, 2, 3)


@pytest.mark.no_cover  # what runs is what runs in the plays below
@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_bug_is_found_within_fifty_seeds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant, draw, kinds = PLANTS[name]
    plant(monkeypatch)
    found = (seed for seed in range(1, MOST + 1) if kinds & play(draw(seed)).kinds())
    assert next(found, None) is not None


@pytest.mark.parametrize("seed", BRIEF)
def test_launches_that_are_lost_and_overtaken_break_no_promise(seed: int) -> None:
    verdict = play(brief_of(seed))
    assert not verdict.violations, "\n".join(verdict.timeline)


@pytest.mark.parametrize("seed", LONG)
def test_half_an_hour_under_faults_breaks_no_promise(seed: int) -> None:
    verdict = play(script_of(seed))
    assert not verdict.violations, "\n".join(verdict.timeline)


@pytest.mark.no_cover
def test_what_once_failed_fails_no_more() -> None:
    for why, script in regressions():
        assert why, "say why it is kept"
        verdict = play(script)
        assert not verdict.violations, "\n".join([why, *verdict.timeline])


def test_the_same_seed_tells_the_same_story_twice() -> None:
    first, second = play(brief_of(7)), play(brief_of(7))
    assert len(first.timeline) > 20
    assert "\n".join(first.timeline).encode() == "\n".join(second.timeline).encode()
    assert play(replace(brief_of(7), seed=8)).timeline != first.timeline


def test_a_script_is_a_value_that_is_kept_in_a_line() -> None:
    script = script_of(5)
    assert decoded(encoded(script)) == script
    assert script_of(5) == script != script_of(6)
    assert [one.at for one in script.events] == sorted(one.at for one in script.events)


def test_every_place_to_die_at_is_drawn_sooner_or_later() -> None:
    drawn = {one.site for seed in range(2000) for one in script_of(seed).events if hasattr(one, "site")}
    assert set(known_sites()) <= drawn


def test_a_script_is_shrunk_to_what_it_needs() -> None:
    events = tuple(Scale(at=number, name="web", replicas=number) for number in range(20))
    script = Script(seed=1, setting=script_of(1).setting, length=60, events=events)
    needed = {events[3], events[17]}
    assert set(shrunk(script, lambda one: needed <= set(one.events)).events) == needed
    plays: list[Script] = []

    def never(one: Script) -> bool:
        plays.append(one)
        return False

    assert shrunk(script, never, most=5) == script
    assert len(plays) == 5


def test_coverage_names_where_nobody_died() -> None:
    coverage, met = Coverage(), ("a kube.list", "b kube.list")
    struck: list[Target] = [("a kube.list", "before"), ("a kube.list", "after"), ("b kube.list", "after")]
    coverage.add([(place, "before") for place in met], struck)
    assert coverage.missed() == (("b kube.list", "before"),)
    assert coverage.words() == "killed before 1 and after 2 of 2 call sites"


def test_places_that_were_missed_are_aimed_at_in_few_plays_that_met_them() -> None:
    sightings, scripts = Sightings(), [script_of(seed) for seed in (1, 2, 3)]
    places: list[Target] = [(f"lifecycle kube.{name}", "after") for name in "abcd"]
    for number, script in enumerate(scripts):
        sightings.add(script, places[number:])
    aimed = list(sightings.aimed([*places, ("disrupt kube.never", "after")], 3))
    assert [one.seed for one in aimed] == [1, 1]
    told = [[one for one in script.events if isinstance(one, Kill) and one.at == 0] for script in aimed]
    assert [[one.site[-1] for one in some] for some in told] == [["a", "b", "c"], ["d"]]
    assert {(one.function, one.nth, one.when) for some in told for one in some} == {("lifecycle", 1, "after")}


def test_whoever_aims_at_a_place_that_a_play_met_hits_it() -> None:
    script = brief_of(11)
    met = [one for one in play(script).met if one[0].startswith("disrupt table.write")]
    assert met
    for target in met:
        assert target in play(with_kills(script, [target])).struck


def test_the_program_aims_at_places_at_which_nobody_died(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.chaos.__main__.script_of", brief_of)
    monkeypatch.setattr("sim.chaos.__main__.AT_ONCE", (40,))
    out = io.StringIO()
    assert main(["--seeds", "1", "--jobs", "1"], out) == 0
    told = out.getvalue().splitlines()
    [kills] = [line for line in told if line.startswith("kills: ")]
    assert re.search(r", [1-9]\d* plays were aimed at them$", kills)
    assert any("known call sites were not met" in line for line in told)
    assert told[-1] == "1 seeds, 0 violations"


def test_the_program_tells_a_seed_that_fails_and_how_to_play_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTS["skip the limit"][0](monkeypatch)
    crowded = replace(script_of(1).setting, limit_cpu=8, replicas=(("big", 2), ("web", 6)))
    monkeypatch.setattr("sim.chaos.__main__.script_of", lambda seed: replace(brief_of(seed), setting=crowded))
    out = io.StringIO()
    assert main(["--seeds", "1", "--jobs", "1", "--no-aim"], out) == 1
    told = out.getvalue().splitlines()
    assert any(line.startswith("again: python -m sim.chaos --replay ") for line in told)
    assert any(line.startswith("shrunk: ") and not decoded(line.removeprefix("shrunk: ")).events for line in told)
    assert told[-1].startswith("1 seeds, ")
    assert not told[-1].endswith(" 0 violations")


def test_the_program_counts_what_it_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.chaos.__main__.script_of", brief_of)
    out = io.StringIO()
    assert main(["--replay", "11", "--missed"], out) == 0
    told = out.getvalue()
    assert "people: nothing is left" in told
    assert "simulated hours" in told
    assert "never killed" in told
    assert told.endswith("1 seeds, 0 violations\n")


def test_who_is_held_goes_on_where_it_stood() -> None:
    script = next(brief_of(seed) for seed in range(1, 20) if any(isinstance(e, Pause) for e in brief_of(seed).events))
    told = "\n".join(play(script).timeline)
    assert told.count("stands still") == told.count("goes on")
