"""Priority under limits: who gets nodes if limits or capacity are short, and what the other pods are told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.model.core.labels import LIMIT_USD
from shared.model.core.metadata import ObjectMeta
from shared.model.core.resources import Resources, build_resources
from shared.model.decisions.placement import SchedulingOptions
from shared.model.kubernetes.pod import Pod
from tests.support.catalogues import (
    locate_pods,
    make_cluster_snapshot,
    make_instance_type,
    make_node,
    make_node_pool,
    make_pod,
)
from tests.support.snapshot_decisions import solve

BY_PRIORITY = SchedulingOptions(priority_under_limits=True)
TYPES = (make_instance_type("m.04", 4),)
LIMITS = {
    "cpu": make_node_pool(limits=build_resources({"cpu": 8000})),
    "nodes": make_node_pool(limits=build_resources({"nodes": 2})),
    "usd": make_node_pool(meta=ObjectMeta(name="default", annotations=((LIMIT_USD, "0.45"),))),
}


def make_ranked_pod(name: str, priority: int, cpu: str = "3") -> Pod:
    return replace(make_pod(name, cpu), priority=priority)


def list_placed(pods: tuple[Pod, ...], limit: str, options: SchedulingOptions = BY_PRIORITY) -> list[str]:
    cluster = make_cluster_snapshot(*pods, types=TYPES, node_pools=(LIMITS[limit],))
    return sorted(name for name, place in locate_pods(solve(cluster, options=options)).items() if place == "default")


@pytest.mark.parametrize("limit", LIMITS)
def test_pods_of_higher_priority_get_the_nodes_if_limits_are_short(limit: str) -> None:
    pods = (
        make_ranked_pod("low-1", 0, "4"),
        make_ranked_pod("low-2", 0, "4"),
        make_ranked_pod("middle", 5),
        make_ranked_pod("high", 9),
    )
    assert list_placed(pods, limit) == ["high", "middle"]
    assert list_placed(pods, limit, SchedulingOptions()) == ["low-1", "low-2"]


def test_message_of_a_refused_pod_names_the_pods_of_higher_priority() -> None:
    pods = (make_ranked_pod("low", 0, "4"), make_ranked_pod("middle", 5), make_ranked_pod("high", 9))
    cluster = make_cluster_snapshot(*pods, types=TYPES, node_pools=(LIMITS["usd"],))
    (refused_pod,) = solve(cluster, options=BY_PRIORITY).unschedulable
    assert refused_pod.pod == "shop/low"
    assert refused_pod.message.endswith(
        "is left of its limit of $0.4500/h: increase joiner.dev/limit-usd-per-hour; 2 pods of higher priority took the "
        "room, such as shop/high (priority 9; this pod: 0)"
    )


def test_cheaper_plan_without_the_pod_of_high_priority_is_not_used() -> None:
    pods = (make_ranked_pod("high", 9, "15"), *(make_ranked_pod(f"low-{number}", 0, "2") for number in range(2)))
    pool = make_node_pool(limits=Resources(amounts=(("nodes", 1),)))
    placement = solve(make_cluster_snapshot(*pods, node_pools=(pool,)), options=BY_PRIORITY)
    assert locate_pods(placement)["high"] == "default"


def test_pods_of_lower_priority_still_use_what_is_left() -> None:
    pods = (make_ranked_pod("high", 9), make_ranked_pod("low", 0, "4"), make_ranked_pod("small", 0, "500m"))
    assert list_placed(pods, "usd") == ["high", "low", "small"]


def test_without_a_shortage_priority_changes_nothing() -> None:
    pods = tuple(make_ranked_pod(f"p{number}", number % 3, str(1 + number % 4)) for number in range(20))
    cluster = make_cluster_snapshot(*pods)
    assert solve(cluster, options=BY_PRIORITY) == solve(cluster)


def test_pod_of_high_priority_is_placed_on_the_existing_node_first() -> None:
    pool = make_node_pool(limits=Resources(amounts=(("nodes", 0),)))
    pods = (make_ranked_pod("low", 0, "4"), make_ranked_pod("high", 9))
    cluster = make_cluster_snapshot(*pods, nodes=(make_node("running"),), node_pools=(pool,))
    assert locate_pods(solve(cluster, options=BY_PRIORITY)) == {"high": "running", "low": "LimitExceeded"}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=10), st.integers(0, 6))
def test_no_pod_is_refused_while_an_equal_pod_of_lower_priority_gets_a_node(
    demands: list[tuple[int, int]], nodes: int
) -> None:
    pods = tuple(make_ranked_pod(f"p{number}", *_format(demand)) for number, demand in enumerate(demands))
    pool = make_node_pool(limits=Resources(amounts=(("nodes", nodes),)))
    locations = locate_pods(solve(make_cluster_snapshot(*pods, types=TYPES, node_pools=(pool,)), options=BY_PRIORITY))
    for number, (priority, cpu) in enumerate(demands):
        if locations[f"p{number}"] == "LimitExceeded":
            assert not any(
                locations[f"p{other}"] == "default" and other_priority < priority and other_cpu >= cpu
                for other, (other_priority, other_cpu) in enumerate(demands)
            )


def _format(demand: tuple[int, int]) -> tuple[int, str]:
    return demand[0], str(demand[1])
