"""Whoever dies, wherever: the play ends as it would have."""

import itertools
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from sim.cloud.ec2.fleet import REPLAY_ANSWERS, ReplayAnswer
from tests.scenario.forked_kills import ForkedPlays, run_forked_plays
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

SITES_PER_PLAY_COUNT = 16
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


def split_sites(sites: Sequence[str]) -> list[tuple[str, ...]]:
    """Return *sites* in parts of `SITES_PER_PLAY_COUNT`; the sites of a part are spread over the whole list."""
    count = -(-len(sites) // SITES_PER_PLAY_COUNT)
    return [tuple(sites[number::count]) for number in range(count)]


@pytest.mark.parametrize("sites", split_sites(read_sites()), ids=itertools.count())
def test_handler_killed_at_any_call_leads_to_the_same_final_state(sites: tuple[str, ...]) -> None:
    assert_same_ends(run_forked_plays(sites), sites)


@pytest.mark.parametrize("sites", split_sites(read_sites(SWAP_SITES)), ids=itertools.count())
def test_handler_killed_during_a_node_replacement_leads_to_the_same_final_state(sites: tuple[str, ...]) -> None:
    assert_same_ends(run_forked_plays(sites, SWAP, late=True), sites)


def assert_same_ends(plays: ForkedPlays, sites: tuple[str, ...]) -> None:
    assert plays.undisturbed.passed, [act.failures for act in plays.undisturbed.acts]
    assert not plays.undisturbed_end.leftovers
    assert sorted(plays.states) == sorted(sites), "the play does not reach all sites"
    different = {site: state for site, state in plays.states.items() if state != plays.undisturbed_end}
    assert not different, "\n\n".join(f"killed at {site}: {state}" for site, state in sorted(different.items()))


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
