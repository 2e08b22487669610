"""Tests of the table of `python -m sim.benchmarks.launch_costs`."""

import json
import sys
from collections.abc import Callable

import pytest

from sim.benchmarks import launch_costs
from sim.world.launch_costs import LaunchCost


def make_cost(planned: float, realized: float, types: int) -> LaunchCost:
    return LaunchCost(
        planned_usd_per_hour=planned,
        realized_usd_per_hour=realized,
        instance_type_count=types,
        offering_count=3 * types,
    )


@pytest.fixture
def print_costs(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    costs_by_seed = {1: [make_cost(1, 1.1, 10)], 2: [make_cost(1, 1.2, 20), make_cost(2, 2.1, 30)], 3: []}
    monkeypatch.setattr(launch_costs, "measure_seed", lambda seed, _: costs_by_seed[seed])

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["launch_costs", "--seeds", "3", *arguments])
        launch_costs.main()
        return capfd.readouterr().out

    return run


def test_realized_cost_is_compared_over_all_launches_and_for_the_worst_seed(print_costs: Callable[..., str]) -> None:
    [row] = json.loads(print_costs("--tolerances", "15", "-o", "json"))
    assert row["launches"] == 3
    assert round(row["excess_percent"], 6) == 10
    assert round(row["worst_seed_percent"], 6) == 10
    assert (row["median_instance_types"], row["median_offerings"]) == (20, 60)


def test_table_has_a_row_for_each_tolerance(print_costs: Callable[..., str]) -> None:
    heading, *rows = print_costs("--tolerances", "0,15").splitlines()
    assert heading.split()[0] == "tolerance"
    assert [row.split()[0] for row in rows] == ["0%", "15%"]
