"""`joiner consolidate` and `joiner rebalance --plan` merge steps to their net change."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from cli.consolidate.cost_gaps import plan_rebalance
from cli.consolidate.page import build_step_documents
from cli.consolidate.steps import ConsolidationStep, StepLimits, consolidate
from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.disruption_controller import decide_node_disruption
from tests.support.catalogues import make_instance_type
from tests.support.disruption_fleet import OPTIONS, make_fleet, make_node_with_pods, make_web_pod

TYPES = tuple(
    make_instance_type(f"m.{cpu:02d}", cpu, capacity_types=("spot", "on-demand"), price=price)
    for cpu, price in ((2, 0.1), (4, 0.17), (8, 0.3))
)
CLUSTER = make_fleet(
    *(
        make_node_with_pods(f"n{number}", make_web_pod(f"{number}", cpu), cpu=2)
        for number, cpu in enumerate(("100m", "500m", "1500m"))
    ),
    types=TYPES,
)
"""The first run deletes n0 and replaces n1 with a node; the second run replaces that node and n2 with one node."""
TERMS = DisruptionSettings(frees_limits=True)


def list_deleted_nodes(steps: Sequence[ConsolidationStep]) -> list[list[str]]:
    return [document["delete"] for document in build_step_documents(steps, CLUSTER)]


def test_nodes_that_a_later_run_removes_are_not_launched() -> None:
    result = consolidate(CLUSTER, OPTIONS, TERMS)
    assert list_deleted_nodes(result.steps) == [["n0"], ["n1", "n2"]]
    documents = build_step_documents(result.steps, CLUSTER)
    [node] = documents[1]["replaceWith"]
    assert node["pods"] == ["shop/0", "shop/1", "shop/2"]
    assert [fleet_node.name for fleet_node in result.after.fleet_nodes] == [node["name"]]
    prices = [result.before.price_usd_per_hour, *(step.price_usd_per_hour for step in result.steps)]
    assert prices[-1] == pytest.approx(result.after.price_usd_per_hour)
    assert [document["savings"] for document in documents] == pytest.approx(
        [before - after for before, after in pairwise(prices)]
    )
    assert documents[1]["message"].startswith("replaces 2 nodes ($0.2000/h) with ")


def test_steps_of_the_next_run_are_shown_as_they_are() -> None:
    result = consolidate(CLUSTER, OPTIONS, TERMS, StepLimits(max_runs=1))
    assert list_deleted_nodes(result.steps) == [["n0"], ["n1"]]


def test_interrupted_simulation_shows_the_steps_as_they_were_found(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = 0

    def decide(*arguments: Any, **keywords: Any) -> object:
        nonlocal runs
        runs += 1
        if runs > 2:
            raise KeyboardInterrupt
        return decide_node_disruption(*arguments, **keywords)

    monkeypatch.setattr("cli.consolidate.steps.decide_node_disruption", decide)
    result = consolidate(CLUSTER, OPTIONS, TERMS)
    assert result.stopped == "interrupted"
    assert [len(nodes) for nodes in list_deleted_nodes(result.steps)] == [1, 1, 2]


def test_rebalance_plan_merges_its_steps() -> None:
    plan = plan_rebalance(CLUSTER, OPTIONS, TERMS, lambda _: None)
    assert list_deleted_nodes(plan.steps) == [["n0"], ["n1", "n2"]]
