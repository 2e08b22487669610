"""Whoever dies, wherever: the play ends as it would have."""

from functools import cache
from pathlib import Path

import pytest

from tests.scenario.kill_sites import (
    CLASSIC,
    SWAP,
    SWAP_SITES,
    Killer,
    compute_final_state,
    read_sites,
    record_sites,
    record_swap_sites,
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
