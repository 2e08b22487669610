"""Whoever dies, wherever: the play ends as it would have."""

from functools import cache

import pytest

from tests.scenario.kill_sites import Killer, final_state, known, recorded


@cache
def undisturbed() -> dict[str, float]:
    played, ends, left = final_state(None)
    assert played.passed, [act.failures for act in played.acts]
    assert not left
    return ends


def test_every_place_at_which_a_handler_calls_the_outside_is_known() -> None:
    assert known() == recorded(), "run `python -m tests.scenario.kill_sites` and read the difference"


@pytest.mark.parametrize("site", known())
def test_a_handler_that_dies_there_changes_nothing_in_the_end(site: str) -> None:
    killer = Killer(site, 1)
    _, ends, left = final_state(killer)
    assert killer.struck
    assert not left
    assert ends == undisturbed()
