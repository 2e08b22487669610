"""Local search makes small plans cheaper: it removes nodes and places their pods again."""

from itertools import islice, pairwise
from typing import Any

import pytest

from shared.decide.scheduling.optimization.large_neighborhood_search import generate_coin_flips
from shared.decide.scheduling.optimization.packing_problem import PackingProblem
from shared.decide.scheduling.optimization.solver import PackingSolution, solve_packing_problem
from shared.decide.scheduling.search import local_search, plan_search
from shared.decide.scheduling.search.neighborhood import Neighborhood
from shared.model.core.labels import CAPACITY_TYPE, HOSTNAME, ZONE
from shared.model.core.resources import build_resources
from shared.model.core.selectors import build_label_selector
from shared.model.kubernetes.pod import AffinityTerm, Pod
from tests.support.catalogues import (
    make_cluster_snapshot,
    make_instance_type,
    make_node,
    make_node_pool,
    make_pod,
    make_requirements,
)
from tests.support.snapshot_decisions import solve

BOTH = ("on-demand", "spot")
TYPES = tuple(
    make_instance_type(f"{kind}-{cpu:03d}", cpu, cpu * gib, price=cpu * price, capacity_types=BOTH)
    for cpu in (2, 4, 8, 16)
    for kind, gib, price in (("lean", 2, 0.4), ("fat", 8, 0.6))
)
APPS = (
    (("a", 2, "2", "14Gi"), ("b", 1, "5", "1Gi"), ("c", 4, "2", "4Gi")),
    (("a", 1, "3", "9Gi"), ("b", 1, "500m", "4Gi"), ("c", 4, "2", "9Gi"), ("d", 1, "2", "14Gi"), ("e", 2, "3", "1Gi")),
    (("a", 3, "3", "1Gi"), ("b", 2, "1", "14Gi"), ("c", 1, "2", "9Gi")),
)


def make_colocated_pods(app: str, count: int, cpu: str, memory: str = "1Gi", **spec: Any) -> list[Pod]:
    """Return pods that must share a zone with their own app; packing advice does not cover them."""
    near = (AffinityTerm(selector=build_label_selector({"app": app}), topology_key=ZONE),)
    return [make_pod(f"{app}-{n}", cpu, memory, labels={"app": app}, pod_affinity=near, **spec) for n in range(count)]


def make_app_pods(apps: tuple[tuple[str, int, str, str], ...], **spec: Any) -> list[Pod]:
    """Return the pods of the *apps*, each app within one zone."""
    return [pod for app in apps for pod in make_colocated_pods(*app, **spec)]


def disable_plan_improvement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the improvement of plans."""
    monkeypatch.setattr(plan_search, "improve_plans", lambda *_: [])


@pytest.mark.parametrize("apps", APPS)
def test_local_search_lowers_the_price_of_pods_that_the_optimizer_does_not_cover(
    apps: tuple[tuple[str, int, str, str], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = make_cluster_snapshot(*make_app_pods(apps), types=TYPES)
    placement = solve(cluster)
    disable_plan_improvement(monkeypatch)
    assert not placement.unschedulable
    assert placement.price_usd_per_hour < 0.95 * solve(cluster).price_usd_per_hour


def test_local_search_keeps_pods_with_zone_affinity_in_one_zone() -> None:
    placement = solve(make_cluster_snapshot(*make_app_pods(APPS[1]), types=TYPES))
    for app, *_ in APPS[1]:
        nodes = [
            new_node
            for new_node in placement.new_nodes
            if any(name.startswith(f"shop/{app}-") for name in new_node.pods)
        ]
        assert len({new_node.requirements[ZONE].values for new_node in nodes}) == 1


def test_node_keeps_the_capacity_type_required_by_a_pod_added_later() -> None:
    spot = make_requirements((CAPACITY_TYPE, "In", ("spot",)))
    plain = [make_pod(f"p-{n:03d}", f"{300 + 7 * n}m", "1Gi") for n in range(60)]
    placement = solve(
        make_cluster_snapshot(*plain, *make_colocated_pods("late", 6, "500m", required_terms=(spot,)), types=TYPES)
    )
    nodes = [new_node for new_node in placement.new_nodes if any("late" in name for name in new_node.pods)]
    assert nodes
    assert {new_node.requirements[CAPACITY_TYPE].values for new_node in nodes} == {frozenset(("spot",))}
    other_nodes = [new_node for new_node in placement.new_nodes if new_node not in nodes]
    assert {new_node.requirements[CAPACITY_TYPE].values for new_node in other_nodes} == {frozenset(BOTH)}


def test_local_search_does_not_relax_preferences_to_save_cost() -> None:
    apart = (AffinityTerm(selector=build_label_selector({"app": "x"}), topology_key=HOSTNAME, weight=10),)
    pods = [make_pod(f"x-{n}", "500m", "1Gi", labels={"app": "x"}, preferred_pod_anti_affinity=apart) for n in range(4)]
    placement = solve(make_cluster_snapshot(*pods, *make_app_pods(APPS[2][:2]), types=TYPES))
    assert all(sum(name.startswith("shop/x-") for name in new_node.pods) <= 1 for new_node in placement.new_nodes)


def test_local_search_keeps_pods_that_fit_existing_nodes() -> None:
    cluster = make_cluster_snapshot(
        *make_app_pods(APPS[0]), types=TYPES, nodes=(make_node("old", cpu="4", memory="30Gi"),)
    )
    placement = solve(cluster)
    assert placement.existing
    assert (
        placement.price_usd_per_hour
        <= solve(make_cluster_snapshot(*make_app_pods(APPS[0]), types=TYPES)).price_usd_per_hour
    )


def test_node_pool_limits_hold_for_nodes_planned_by_local_search() -> None:
    limit = make_node_pool(limits=build_resources({"cpu": 16_000}))
    placement = solve(make_cluster_snapshot(*make_app_pods(APPS[2]), types=TYPES, node_pools=(limit,)))
    cores = {instance_type.name: instance_type.capacity["cpu"] for instance_type in TYPES}
    assert sum(max(cores[name] for name in new_node.instance_types) for new_node in placement.new_nodes) <= 16_000


def test_local_search_skips_plans_with_too_many_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = make_cluster_snapshot(*make_app_pods(APPS[0]), types=TYPES)
    monkeypatch.setattr(local_search, "MAX_PODS", 6)
    placement = solve(cluster)
    disable_plan_improvement(monkeypatch)
    assert placement == solve(cluster)


def test_local_search_stops_at_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, call_counter = make_cluster_snapshot(*make_app_pods(APPS[0]), types=TYPES), iter(range(1_000_000))
    monkeypatch.setattr(local_search, "MAX_EFFORT_STEPS", 10**9)
    monkeypatch.setattr(local_search, "MAX_FAILED_TRIALS_PER_NODE", 10**9)
    placement = solve(cluster, is_over=lambda: next(call_counter) > 100)
    assert not placement.unschedulable


def test_coin_flips_are_reproducible_and_balanced() -> None:
    first, second = list(islice(generate_coin_flips(), 64)), list(islice(generate_coin_flips(), 64))
    assert first == second
    assert 20 < sum(first) < 44


def test_optimizer_ignores_types_that_cost_more_than_a_larger_type(monkeypatch: pytest.MonkeyPatch) -> None:
    types = (
        make_instance_type("cheap-large", 8, 32, price=0.1),
        make_instance_type("dear-small", 4, 16, price=0.2),
        make_instance_type("dear-huge", 64, 256, price=0.3),
    )
    offered: list[set[str]] = []

    def solve_and_record(problem: PackingProblem) -> tuple[PackingSolution, ...]:
        offered.append({bin_type.name for bin_type in problem.bin_types})
        return solve_packing_problem(problem)

    monkeypatch.setattr(plan_search, "solve_packing_problem", solve_and_record)
    solve(make_cluster_snapshot(make_pod("a", "1", "1Gi"), types=types))
    assert offered == [{"cheap-large"}]


@pytest.mark.parametrize(("node_count", "anchors"), [(1, [0, 0, 0, 0]), (3, [0, 0, 1, 1, 0, 2, 1, 0])])
def test_every_node_has_its_turn_and_the_wasteful_half_has_twice_as_many(node_count: int, anchors: list[int]) -> None:
    assert [local_search.choose_anchor(turn, node_count) for turn in range(len(anchors))] == anchors


def test_a_saving_starts_again_with_the_most_wasteful_node(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []
    choose_anchor = local_search.choose_anchor

    def record_turn(turn: int, node_count: int) -> int:
        turns.append(turn)
        return choose_anchor(turn, node_count)

    monkeypatch.setattr(local_search, "choose_anchor", record_turn)
    monkeypatch.setattr(local_search, "MAX_STARTS", 1)
    solve(make_cluster_snapshot(*make_app_pods(APPS[1]), types=TYPES))
    assert turns.count(0) > 1
    assert all(turn in (0, turn_before + 1) for turn_before, turn in pairwise(turns))


def test_a_neighborhood_tries_its_first_node_alone_and_with_each_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    removed_counts: set[int] = set()
    run_trial = Neighborhood.run_trial

    def record_trial(neighborhood: Any, removed_nodes: list[Any], *arguments: Any) -> Any:
        removed_counts.add(len(removed_nodes))
        return run_trial(neighborhood, removed_nodes, *arguments)

    monkeypatch.setattr(Neighborhood, "run_trial", record_trial)
    solve(make_cluster_snapshot(*make_app_pods(APPS[1]), types=TYPES))
    assert removed_counts == {1, 2}
