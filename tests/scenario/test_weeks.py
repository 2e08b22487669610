"""Hours of a simulated week, played: what must not happen does not, and it pays."""

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from sim.weeks import __main__ as command
from sim.weeks.churn import DAY, Happening, happenings, wanted
from sim.weeks.figures import Figures, figures, lines
from sim.weeks.plot import plot
from sim.weeks.week import Week, play
from sim.weeks.witness import Witness
from sim.weeks.workloads import FLEET, POOLS, SERVICES, SPOT, Limit, job, set_up
from sim.weeks.world import WeekWorld
from tests.scenario.worlds import CLAIMS

HOURS = 1.5
SIZE = 0.2
MONDAY_NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def at(minutes: float, kind: str, name: str = "", replicas: int = 0) -> Happening:
    made = {"after": timedelta(minutes=minutes).total_seconds(), "kind": kind, "name": name, "replicas": replicas}
    happening = msgspec.convert(made, Happening, strict=False)
    some = job(name, 2, timedelta(minutes=6), is_guarded=True) if kind == "apply" else None
    return msgspec.structs.replace(happening, manifest=some)


CHURN = (
    at(0, "scale", "web", 24),
    at(0, "scale", "api", 4),
    at(5, "apply", "job"),
    at(15, "deploy", "mail"),
    at(16, "delete", "mail"),
    at(18, "interrupt"),
    at(20, "scale", "web", 3),
    at(50, "release"),
)


@cache
def played(*, consolidates: bool) -> Week:
    return play(HOURS / 24, 1, size=SIZE, churn=CHURN, consolidates=consolidates, has_ideal=consolidates)


def judged() -> Figures:
    return figures(played(consolidates=True), played(consolidates=False))


@pytest.mark.parametrize("consolidates", [True, pytest.param(False, marks=pytest.mark.no_cover)])
def test_no_budget_is_violated_and_no_function_fails(*, consolidates: bool) -> None:
    week = played(consolidates=consolidates)
    assert week.violations == ()
    assert week.failed == ()
    assert week.interrupted == 1
    assert week.samples[-1].waiting == 0


def test_consolidation_pays_and_comes_near_to_what_is_possible() -> None:
    found = judged()
    assert found.mean_usd_per_hour < found.without_usd_per_hour
    ideals = [one.ideal for one in played(consolidates=True).samples if one.ideal is not None]
    assert all(one.bound <= one.repacked for one in ideals if one.bound is not None)
    assert len(ideals) == 2
    assert ideals[0].bound is not None
    assert played(consolidates=True).exchanges > 0
    assert played(consolidates=False).exchanges == 0


def test_nobody_is_sent_back_and_forth() -> None:
    assert played(consolidates=True).restless == ()


def test_evictions_say_why() -> None:
    reasons = {one.reason for one in played(consolidates=True).evictions}
    assert {"Underutilized", "Drifted"} <= reasons <= {"Underutilized", "Drifted", "Empty", ""}


def test_the_plot_is_well_formed_and_shows_every_line() -> None:
    svg = plot(played(consolidates=True), played(consolidates=False))
    root = ET.fromstring(svg)  # noqa: S314 - our own
    kinds = {one.get("class") for one in root.iter("{http://www.w3.org/2000/svg}polyline")}
    assert kinds == {"line ours", "line without", "line ideal"}
    assert [one.get("class") for one in root.iter("{http://www.w3.org/2000/svg}circle")] == ["bound"]
    assert "prefers-color-scheme:dark" in svg
    assert "new images" in svg


def test_the_figures_are_a_table() -> None:
    table = list(lines(judged()))
    assert all(line.startswith("|") and line.count("|") == 3 for line in table)
    assert any("violations" in line and line.endswith("| 0 |") for line in table)


@pytest.mark.parametrize("output", ["text", "json"])
def test_the_command_prints_the_figures_and_writes_the_plot(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[tuple[float, int, float]] = []

    def both(days: float, seed: int, size: float) -> tuple[Week, Week]:
        asked.append((days, seed, size))
        return played(consolidates=True), played(consolidates=False)

    monkeypatch.setattr(command, "both", both)
    assert command.main(["--days", "2", "--seed", "3", "-o", output, "--plot", str(tmp_path / "weeks.svg")]) == 0
    assert asked == [(2, 3, 1)]
    assert (tmp_path / "weeks.svg").read_text().startswith("<svg")
    printed = capsys.readouterr().out
    if output == "json":
        assert msgspec.json.decode(printed)["figures"] == msgspec.to_builtins(judged())
    else:
        assert printed.splitlines() == list(lines(judged()))


def test_every_hour_says_how_far_it_has_come(capsys: pytest.CaptureFixture[str]) -> None:
    for one in played(consolidates=True).samples:
        command.told(one)
    assert len(capsys.readouterr().err.splitlines()) == 2


# What happens


def test_the_same_seed_is_the_same_week_and_another_is_another() -> None:
    assert happenings(2, 1) == happenings(2, 1)
    assert happenings(2, 1) != happenings(2, 2)


def test_a_week_has_everything_in_it() -> None:
    found = happenings(7, 1)
    assert {one.kind for one in found} == {"scale", "deploy", "apply", "delete", "interrupt", "release"}
    assert [one.after for one in found if one.kind == "release"] == [DAY * 3.5]
    assert list(found) == sorted(found, key=lambda one: one.after)
    assert {one.name for one in found if one.kind == "deploy"} == {one.name for one in FLEET}


def test_load_is_highest_at_its_hour_and_lower_at_the_weekend() -> None:
    [web] = [one for one in FLEET if one.name == "web"]
    monday, sunday = (datetime(2026, 11, day, web.peak, tzinfo=UTC) for day in (23, 22))
    night = monday.replace(hour=3)
    assert wanted(web, night, 1) < wanted(web, sunday, 1) < wanted(web, monday, 1)


def test_where_there_is_no_spot_machine_none_is_taken() -> None:
    assert not WeekWorld(1).happen(at(0, "interrupt"))


# Who watches


@pytest.mark.parametrize(
    ("limit", "reason", "now", "allows"),
    [
        (Limit(percent=20), "Empty", MONDAY_NOON, 3),
        (Limit(count=2), "Empty", MONDAY_NOON, 2),
        (Limit(count=2, reasons=("Drifted",)), "Empty", MONDAY_NOON, None),
        (Limit(count=1, office_hours=True), "Empty", MONDAY_NOON, 1),
        (Limit(count=1, office_hours=True), "Empty", MONDAY_NOON.replace(hour=17), None),
        (Limit(count=1, office_hours=True), "Empty", MONDAY_NOON.replace(day=22), None),
    ],
)
def test_a_limit_allows_what_it_says(limit: Limit, reason: str, now: datetime, allows: int | None) -> None:
    assert limit.allows(reason, 11, now) == allows


def test_a_pool_allows_the_least_of_its_limits() -> None:
    pools = {one.name: one for one in POOLS}
    assert pools[SERVICES].allows("Underutilized", 20, MONDAY_NOON) == 1
    assert pools[SERVICES].allows("Empty", 20, MONDAY_NOON) == 4
    assert pools[SPOT].allows("Empty", 20, MONDAY_NOON) == 3


def watched() -> tuple[WeekWorld, Witness]:
    world = WeekWorld(1)
    world.apply(set_up(0.7))
    witness = Witness(world)
    world.run(timedelta(minutes=6))
    assert witness.violations == []
    return world, witness


def test_whoever_breaks_a_rule_is_seen() -> None:
    world, witness = watched()
    api = world.live.api
    lie = {"status": {"disruptionsAllowed": 9}}
    api.patch("poddisruptionbudgets.policy", "web", lie, "default", "status")
    for name in _pods(world, "web")[:4]:
        api.evict("default", name)
    for claim in api.list(CLAIMS):
        reason = {"type": "DisruptionReason", "status": "True", "reason": "Drifted", "message": "Drifted"}
        known = [*claim["status"]["conditions"], reason | {"lastTransitionTime": "2026-11-21T08:00:00Z"}]
        api.patch(CLAIMS, claim["metadata"]["name"], {"status": {"conditions": known}}, "", "status")
    api.evict("default", _pods(world, "ledger")[0])
    for one in world.living():
        world.cloud.kill(one.instance_id)
    text = "\n".join(witness.violations)
    assert "was evicted: web has" in text
    assert "nodes of services go (Drifted), allowed are" in text
    assert "was evicted (Drifted) past do-not-disrupt" in text
    assert "ended under" in text


def _pods(world: WeekWorld, app: str) -> list[str]:
    pods = world.live.pods("default")
    return [one["metadata"]["name"] for one in pods if one["metadata"]["labels"].get("app") == app]
