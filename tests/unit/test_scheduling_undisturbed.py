"""The collector is kept off while a plan is made, and is as it was before when that is done or has failed."""

import gc

import pytest

from shared.scheduling.solve import solve
from shared.scheduling.undisturbed import undisturbed
from tests.unit.catalogues import pod, world


@undisturbed
def is_on(*, fails: bool = False) -> bool:
    """Whether the collector is."""
    if fails:
        raise ValueError("on purpose")
    return gc.isenabled()


def test_the_collector_is_off_meanwhile_and_on_again_afterwards_whatever_happened() -> None:
    assert not is_on()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="on purpose"):
        is_on(fails=True)
    assert gc.isenabled()


def test_who_had_it_off_keeps_it_off() -> None:
    gc.disable()
    try:
        assert not is_on()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_plan_is_made_without_it() -> None:
    seen: list[bool] = []

    def is_over() -> bool:
        seen.append(gc.isenabled())
        return False

    assert solve(world(pod("web")), is_over=is_over).new_nodes
    assert seen
    assert not any(seen)
