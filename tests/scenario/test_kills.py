"""Whoever dies, wherever: the play ends as it would have."""

from functools import cache
from pathlib import Path

import pytest

from tests.scenario.kill_sites import (
    CLASSIC,
    SWAP,
    SWAP_SITES,
    Killer,
    final_state,
    known,
    recorded,
    recorded_swap,
)


@cache
def undisturbed(path: Path = CLASSIC) -> dict[str, float]:
    played, ends, left = final_state(None, path)
    assert played.passed, [act.failures for act in played.acts]
    assert not left
    return ends


def test_every_place_at_which_a_handler_calls_the_outside_is_known() -> None:
    assert known() == recorded(), "run `python -m tests.scenario.kill_sites` and read the difference"
    assert known(SWAP_SITES) == recorded_swap(), "run `python -m tests.scenario.kill_sites` and read the difference"


@pytest.mark.parametrize("site", known())
def test_a_handler_that_dies_there_changes_nothing_in_the_end(site: str) -> None:
    killer = Killer(site, 1)
    _, ends, left = final_state(killer)
    assert killer.struck
    assert not left
    assert ends == undisturbed()


@pytest.mark.parametrize("site", known(SWAP_SITES))
def test_a_handler_that_dies_while_a_node_is_replaced_changes_nothing_in_the_end(site: str) -> None:
    place, _, number = site.partition(" #")
    killer = Killer(place, int(number), late=True)
    _, ends, left = final_state(killer, SWAP)
    assert killer.struck
    assert not left
    assert ends == undisturbed(SWAP)
