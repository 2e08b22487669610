"""A small version of `make bench-kubernetes`: the timings have values, whatever they are on a busy computer."""

from datetime import timedelta

import pytest

from tests.kubernetes import timings

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]


def test_bursts_reactions_and_cost_are_measured() -> None:
    with timings.start_arena() as arena:
        assert timings.measure_burst(arena, 30, spread_count=10) > 0
        assert 0 < arena.count_planned_zones("spread").total() <= 10  # the others fit on nodes for earlier pods
        assert timings.measure_cost_excess(arena) >= -1
        median, late = timings.compute_reaction_percentiles(timings.measure_reactions(arena, 3))
        assert 0 <= median <= late
        assert not arena.reporter.failed_invocations


def test_scale_down_ends_when_nothing_changes_any_more() -> None:
    with timings.start_arena(consolidates=True) as arena:
        seconds_by_step = timings.measure_scale_down(arena, (4, 2), timedelta(seconds=5))
        assert [*seconds_by_step] == ["4 to 2"]
        assert seconds_by_step["4 to 2"] < 60
