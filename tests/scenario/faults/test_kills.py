"""Whoever dies, wherever: the play ends as it would have."""

from functools import cache
from pathlib import Path

import pytest

from sim.cloud.ec2.fleet import REPLAY_ANSWERS, ReplayAnswer
from tests.scenario.kill_sites import (
    CLASSIC,
    SWAP,
    SWAP_SITES,
    Killer,
    SecondKiller,
    compute_final_state,
    read_sites,
    record_sites,
    record_swap_sites,
)

LAUNCHED_SITE = "provision ec2.create_fleet after"
REPETITION_SITES = (
    "provision table.read launch-group before",
    "provision table.write launch-group before",
    "provision table.write launch-group after",
    "provision ec2.ensure_launch_template after",
    "provision ec2.create_fleet before",
    LAUNCHED_SITE,
    "provision ec2.describe_launch_group before",
)


@cache
def run_undisturbed(path: Path = CLASSIC) -> dict[str, float]:
    played, ends, leftovers = compute_final_state(None, path)
    assert played.passed, [act.failures for act in played.acts]
    assert not leftovers
    return ends


def test_recorded_kill_sites_match_the_calls_made_by_the_handlers() -> None:
    assert read_sites() == record_sites(), "run `python -m tests.scenario.kill_sites` and read the difference"
    assert read_sites(SWAP_SITES) == record_swap_sites(), (
        "run `python -m tests.scenario.kill_sites` and read the difference"
    )


@pytest.mark.parametrize("site", read_sites())
def test_handler_killed_at_any_call_leads_to_the_same_final_state(site: str) -> None:
    killer = Killer(site, 1)
    _, ends, leftovers = compute_final_state(killer)
    assert killer.struck
    assert not leftovers
    assert ends == run_undisturbed()


@pytest.mark.parametrize("site", read_sites(SWAP_SITES))
def test_handler_killed_during_a_node_replacement_leads_to_the_same_final_state(site: str) -> None:
    place, _, number = site.partition(" #")
    killer = Killer(place, int(number), late=True)
    _, ends, leftovers = compute_final_state(killer, SWAP)
    assert killer.struck
    assert not leftovers
    assert ends == run_undisturbed(SWAP)


@pytest.mark.parametrize("answer", REPLAY_ANSWERS)
def test_lost_launch_reaches_the_same_final_state_with_every_replay_answer(
    answer: ReplayAnswer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sim.cloud.ec2.fleet.REPLAY_ANSWERS", (answer,))
    killer = Killer(LAUNCHED_SITE)
    _, ends, leftovers = compute_final_state(killer)
    assert killer.struck
    assert not leftovers
    assert ends == run_undisturbed()


@pytest.mark.parametrize("site", REPETITION_SITES)
def test_crash_during_a_repeated_launch_does_not_change_the_final_state(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sim.cloud.ec2.fleet.REPLAY_ANSWERS", ("empty",))
    killer = SecondKiller(LAUNCHED_SITE, site)
    _, ends, leftovers = compute_final_state(killer)
    assert killer.struck
    assert not leftovers
    assert ends == run_undisturbed()
