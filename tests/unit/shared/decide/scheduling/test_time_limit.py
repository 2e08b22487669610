"""The time limit expires: planned nodes stay valid, and pods that were not reached wait for the next run."""

from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from shared.decide.scheduling.packing import new_node_placement
from shared.decide.scheduling.templates.node_claim_builder import build_node_claims
from shared.model.core.labels import HOSTNAME, ZONE
from shared.model.core.resources import build_resources
from shared.model.core.selectors import build_label_selector
from shared.model.decisions.action import CreateNodeClaim, FollowUp, PublishEvent
from shared.model.decisions.placement import Placement, SchedulingOptions
from shared.model.kubernetes.pod import AffinityTerm, Pod, SpreadConstraint
from tests.support.catalogues import (
    count_pods_per_new_node,
    locate_pods,
    make_cluster_snapshot,
    make_instance_type,
    make_node,
    make_node_class,
    make_node_pool,
    make_pod,
)
from tests.support.snapshot_decisions import build_placement_actions, plan_with_buffers, solve

WEB = build_label_selector({"app": "web"})
APART = (AffinityTerm(topology_key=HOSTNAME, selector=WEB),)
GREEDY = SchedulingOptions(packing="Greedy")
EXPENSIVE_LARGE_TYPES = (make_instance_type("small", 4, 16, price=0.2), make_instance_type("large", 64, 256, price=9.6))


def make_deadline(checks: int) -> Callable[[], bool]:
    """Return an `is_over` function that returns true once it has been called *checks* times."""
    ticks = count()
    return lambda: next(ticks) >= checks


def make_pods(number: int, cpu: str = "1", **spec: Any) -> list[Pod]:
    return [make_pod(f"{cpu}-{index:03d}", cpu, labels={"app": "web"}, **spec) for index in range(number)]


def list_unreached_pods(placement: Placement) -> list[str]:
    return [failure.pod for failure in placement.unschedulable if failure.reason == "NotReached"]


def test_all_pods_are_scheduled_without_a_time_limit() -> None:
    placement = solve(make_cluster_snapshot(*make_pods(9)))
    assert not placement.unschedulable
    assert placement.next_pod == ""


@pytest.mark.parametrize("looks", [0, 1, 7, 40])
def test_planned_nodes_are_kept_and_unreached_pods_reported_when_the_time_limit_expires(
    monkeypatch: pytest.MonkeyPatch, looks: int
) -> None:
    monkeypatch.setattr(new_node_placement, "NODES_PER_DEADLINE_CHECK", 1)
    pods = [*make_pods(30, "2", pod_anti_affinity=APART), *make_pods(30, "1", pod_anti_affinity=APART)]
    cluster = make_cluster_snapshot(*pods)
    placement = solve(cluster, options=GREEDY, is_over=make_deadline(looks))
    unreached_pods = list_unreached_pods(placement)
    assert count_pods_per_new_node(placement) == [1] * (len(pods) - len(unreached_pods))
    assert unreached_pods
    assert len(unreached_pods) == len(placement.unschedulable)
    assert placement.next_pod in unreached_pods
    assert "next run" in placement.unschedulable[0].message


def test_next_run_continues_with_the_pods_that_were_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_node_placement, "NODES_PER_DEADLINE_CHECK", 1)
    cluster = make_cluster_snapshot(*make_pods(20, "2", pod_anti_affinity=APART))
    first = solve(cluster, is_over=make_deadline(8))
    later = solve(replace(cluster, node_claims=build_node_claims(first, cluster)))
    assert 0 < len(first.new_nodes) < 20
    assert len(first.new_nodes) + len(later.new_nodes) == 20
    assert not later.unschedulable


def test_unschedulable_pod_keeps_its_failure_reason_when_the_time_limit_expires(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(new_node_placement, "NODES_PER_DEADLINE_CHECK", 1)
    placement = solve(make_cluster_snapshot(make_pod("huge", "900"), *make_pods(9)), is_over=make_deadline(2))
    assert {failure.pod: failure.reason for failure in placement.unschedulable}["shop/huge"] == "NoInstanceTypeFits"
    assert len(list_unreached_pods(placement)) == 9


def test_optimizer_does_not_search_cheaper_plans_after_the_time_limit() -> None:
    calls: list[None] = []

    def is_over() -> bool:
        calls.append(None)
        return True

    placement = solve(make_cluster_snapshot(*make_pods(60), types=EXPENSIVE_LARGE_TYPES), is_over=is_over)
    assert placement.price_usd_per_hour == placement.greedy_usd_per_hour == 9.6
    assert len(calls) == 1


def test_optimizer_tries_other_plans_within_the_time_limit() -> None:
    placement = solve(make_cluster_snapshot(*make_pods(60), types=EXPENSIVE_LARGE_TYPES), is_over=make_deadline(3))
    assert round(placement.price_usd_per_hour, 6) == 3.0


def test_unreached_pods_get_no_failed_scheduling_event_and_requeue_the_run_immediately(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(new_node_placement, "NODES_PER_DEADLINE_CHECK", 1)
    cluster = make_cluster_snapshot(*make_pods(20, "2", pod_anti_affinity=APART))
    placement = plan_with_buffers(cluster, options=GREEDY, is_over=make_deadline(8)).without_buffer_pods()
    actions = build_placement_actions(cluster, placement)
    assert any(isinstance(action, CreateNodeClaim) for action in actions)
    assert not [
        action for action in actions if isinstance(action, PublishEvent) and action.reason == "FailedScheduling"
    ]
    follow_ups = [action for action in actions if isinstance(action, FollowUp) and action.function == "provision"]
    assert follow_ups[0].after == timedelta()
    assert placement.next_pod in follow_ups[0].message


def test_complete_plan_does_not_requeue_the_run_immediately() -> None:
    cluster = make_cluster_snapshot(*make_pods(2), node_classes=(make_node_class(),))
    actions = build_placement_actions(cluster, solve(cluster))
    assert all(
        action.after > timedelta()
        for action in actions
        if isinstance(action, FollowUp) and action.function == "provision"
    )


def test_preference_is_retried_after_a_pod_that_relaxed_it_frees_capacity() -> None:
    soft = SpreadConstraint(topology_key=ZONE, max_skew=1, selector=WEB, when_unsatisfiable="ScheduleAnyway")
    only_a = make_node_pool("a", weight=9, labels=(("near", "yes"),), limits=build_resources({"cpu": 4_000}))
    placement = solve(
        make_cluster_snapshot(*make_pods(6, "2", spread=(soft,)), node_pools=(only_a, make_node_pool("b"))),
        options=GREEDY,
    )
    zones: dict[str, int] = {}
    for new_node in placement.new_nodes:
        [zone] = new_node.requirements[ZONE].values
        zones[zone] = zones.get(zone, 0) + len(new_node.pods)
    assert set(zones.values()) == {2}


def test_existing_nodes_of_all_zones_are_used_for_spread_pods() -> None:
    nodes = tuple(make_node(f"n{number}", "2", labels={ZONE: "abc"[number % 3]}) for number in range(9))
    spread = (SpreadConstraint(topology_key=ZONE, max_skew=1, selector=WEB),)
    placement = solve(make_cluster_snapshot(*make_pods(9, "2", spread=spread), nodes=nodes, node_pools=()))
    assert sorted(locate_pods(placement).values()) == [f"n{number}" for number in range(9)]
