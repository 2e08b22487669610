"""Mixed sets: spot nodes and a node that is not spot become one node, without spot-to-spot consolidation."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from cli.consolidate.steps import consolidate
from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.disruption_context import DEFAULT_SETTINGS
from shared.decide.disruption.methods import mixed_sets
from shared.decide.disruption.methods.proposed_command import ProposedCommand
from shared.model.cluster import ClusterSnapshot
from tests.support.disruption_fleet import (
    BOTH,
    OPTIONS,
    Machine,
    decide_disruption,
    get_verdict,
    make_budgeted_pool,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
    summarize_commands,
)
from tests.support.snapshot_decisions import validate_command


def make_spot_node(name: str, *sizes: str, cpu: int = 4) -> Machine:
    pods = [make_web_pod(f"{name}-{place}", size) for place, size in enumerate(sizes)]
    return make_node_with_pods(name, *pods, cpu=cpu, capacity_type="spot")


def make_on_demand_node(name: str, *sizes: str, cpu: int = 4) -> Machine:
    return make_node_with_pods(
        name, *(make_web_pod(f"{name}-{place}", size) for place, size in enumerate(sizes)), cpu=cpu
    )


THREE = make_fleet(
    make_on_demand_node("od", "2500m"), make_spot_node("s1", "2500m"), make_spot_node("s2", "2500m"), types=BOTH
)
"""$0.36/h; all pods fit on one spot node of $0.16/h."""
SPARE = make_fleet(make_on_demand_node("od", "500m"), make_spot_node("s1", "500m", cpu=8), types=BOTH)
"""The pods of either node fit on the other one, but a spot node of $0.04/h is enough for all pods."""


def compute_end_price(cluster: ClusterSnapshot, settings: DisruptionSettings = DEFAULT_SETTINGS) -> float:
    return consolidate(cluster, OPTIONS, settings).after.price_usd_per_hour


def count_searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets an entry for each search for mixed sets."""
    calls: list[str] = []

    def record_search(*_: object) -> list[ProposedCommand]:
        calls.append("called")
        return []

    monkeypatch.setattr(mixed_sets.MixedSets, "find_replacements", record_search)
    return calls


def test_on_demand_node_and_two_spot_nodes_become_one_spot_node() -> None:
    """No pair of these nodes saves more than the on-demand node alone."""
    decision = decide_disruption(THREE)
    assert summarize_commands(decision) == [("MultiNode", ["od", "s1", "s2"], ["m.08", "m.16"])]
    assert decision.commands[0].savings_usd_per_hour == pytest.approx(0.36 - 0.16)
    assert validate_command(THREE, decision.commands[0]) is None


def test_without_a_mixed_set_the_three_nodes_end_twice_as_expensive(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compute_end_price(THREE) == pytest.approx(0.16)
    monkeypatch.setattr(mixed_sets, "MAX_CANDIDATES", 0)
    assert compute_end_price(THREE) == pytest.approx(0.24)


def test_on_demand_node_is_not_deleted_before_its_mixed_set_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compute_end_price(SPARE) == pytest.approx(0.04)
    monkeypatch.setattr(mixed_sets, "MAX_CANDIDATES", 0)
    assert compute_end_price(SPARE) == pytest.approx(0.16)


def test_mixed_sets_are_not_needed_with_spot_to_spot_consolidation(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_searches(monkeypatch)
    decide_disruption(THREE, DisruptionSettings(spot_to_spot=True))
    assert not calls
    decide_disruption(THREE)
    assert calls


@pytest.mark.parametrize("make_node", [make_spot_node, make_on_demand_node])
def test_equal_capacity_types_have_no_mixed_sets(
    make_node: Callable[..., Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = count_searches(monkeypatch)
    decide_disruption(make_fleet(*(make_node(name, "2500m") for name in "abc"), types=BOTH))
    assert not calls


def test_mixed_set_stays_within_the_budget() -> None:
    decision = decide_disruption(replace(THREE, node_pools=(make_budgeted_pool("2"),)))
    assert sum(len(command.targets) for command in decision.commands) <= 2


def test_time_limit_before_the_end_keeps_the_usual_result() -> None:
    """The comparison of the ends needs further runs; the time is over when the first of them begins."""
    calls = iter(range(1_000_000))
    usual_calls = 0

    def count_call() -> bool:
        nonlocal usual_calls
        usual_calls = next(calls)
        return False

    decide_disruption(THREE, is_time_over=count_call)
    remaining_calls = iter(range(usual_calls - 1))
    decision = decide_disruption(THREE, is_time_over=lambda: next(remaining_calls, None) is None)
    assert summarize_commands(decision) == [("SingleNode", ["od"], ["m.04", "m.08"])]


def test_verdicts_are_those_of_the_chosen_result() -> None:
    decision = decide_disruption(THREE)
    assert {get_verdict(decision, name)[0] for name in ("od", "s1", "s2")} == {"disrupted"}
