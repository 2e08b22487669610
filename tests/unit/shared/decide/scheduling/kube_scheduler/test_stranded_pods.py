"""A plan simulated without hints, and the plan that is chosen when no hints are given."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.decide.scheduling.kube_scheduler.queue import build_scheduling_queue
from shared.decide.scheduling.kube_scheduler.simulation import SimulatedNode, simulate_scheduling
from shared.decide.scheduling.kube_scheduler.stranded_pods import estimate_relaunch_cost, find_pods_left_pending
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import HOSTNAME, ZONE
from shared.model.core.resources import parse_resources
from shared.model.core.selectors import build_label_selector
from shared.model.core.taints import Taint
from shared.model.decisions.placement import SchedulingOptions
from shared.model.kubernetes.host_ports import HostPort
from shared.model.kubernetes.pod import AffinityTerm, Pod, PreferredTerm, SpreadConstraint
from tests.support.catalogues import make_cluster_snapshot, make_pod, make_requests, make_requirements
from tests.support.snapshot_decisions import solve

WEB = build_label_selector({"app": "web"})


def make_simulated_node(
    name: str, cpu: str = "4", memory: str = "16Gi", zone: str = "a", **fields: object
) -> SimulatedNode:
    allocatable = parse_resources({"cpu": cpu, "memory": memory, "pods": "20"})
    return replace(SimulatedNode(name=name, labels={ZONE: zone}, allocatable=allocatable), **fields)


def list_pending_pods(pods: list[Pod], *waves: list[SimulatedNode], steps: int = 1000) -> list[str]:
    return [
        name.removeprefix("shop/") for name in simulate_scheduling(waves, build_scheduling_queue(pods), max_steps=steps)
    ]


def make_pods(count: int, name: str = "p", cpu: str = "1", memory: str = "1Gi", **fields: Any) -> list[Pod]:
    return [make_pod(f"{name}{number}", cpu, memory, labels={"app": "web"}, **fields) for number in range(count)]


def test_simulation_places_small_pods_where_a_large_pod_was_planned() -> None:
    pods = [*make_pods(1, "large", "4"), *make_pods(2, "small", "2")]
    assert list_pending_pods(pods, [make_simulated_node("n1"), make_simulated_node("n2")]) == ["large0"]


def test_simulation_fills_nodes_in_the_order_they_join() -> None:
    pods = [*make_pods(1, "large", "3"), *make_pods(4, "small")]
    assert list_pending_pods(pods, [make_simulated_node("n1"), make_simulated_node("n2")]) == ["large0"]
    assert list_pending_pods(pods, [make_simulated_node("n1")], [make_simulated_node("n2")]) == []


def test_simulation_schedules_pods_by_priority_then_by_age() -> None:
    first, second = make_pod("first", "3", age=9), make_pod("second", "3", age=1)
    assert list_pending_pods([second, first], [make_simulated_node("n1")]) == ["second"]
    assert list_pending_pods([replace(second, priority=1), first], [make_simulated_node("n1")]) == ["first"]


@pytest.mark.parametrize(
    ("obstacle", "pods", "rooms", "count"),
    [
        ("resources", make_pods(1, cpu="5"), [make_simulated_node("n1")], 1),
        ("taint", make_pods(1), [make_simulated_node("n1", taints=(Taint(key="k", effect="NoSchedule"),))], 1),
        ("label", make_pods(1, node_selector=((ZONE, "b"),)), [make_simulated_node("n1")], 1),
        (
            "one of several affinity terms",
            make_pods(1, required_terms=(make_requirements((ZONE, "In", "b")), make_requirements((ZONE, "In", "a")))),
            [make_simulated_node("n1")],
            0,
        ),
        ("host port", make_pods(2, host_ports=(HostPort(port=80),)), [make_simulated_node("n1")], 1),
        ("missing label", make_pods(1, node_selector=(("rack", "1"),)), [make_simulated_node("n1")], 1),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_simulated_pod_stays_pending_when_no_node_satisfies_its_constraint(
    obstacle: str, pods: list[Pod], rooms: list[SimulatedNode], count: int
) -> None:
    assert obstacle
    assert len(list_pending_pods(pods, rooms)) == count


def test_resource_usage_of_a_simulated_node_lowers_its_capacity_and_score() -> None:
    busy = make_simulated_node("a", used=make_requests("3", "1Gi"))
    assert list_pending_pods(make_pods(2, cpu="2"), [busy]) == ["p0", "p1"]
    assert list_pending_pods([*make_pods(1), make_pod("z", "4", age=-1)], [busy, make_simulated_node("b")]) == ["z"]


def test_preferred_affinity_and_prefer_no_schedule_taints_outweigh_free_resources_in_scores() -> None:
    wish = PreferredTerm(weight=10, requirements=make_requirements((ZONE, "In", "b")))
    last = make_pod("z", "4", age=-1)
    rooms = [make_simulated_node("a"), make_simulated_node("b", zone="b")]
    assert list_pending_pods(
        [*make_pods(1, preferred_terms=(wish,)), replace(last, spec=replace(last.spec, node_selector=((ZONE, "b"),)))],
        rooms,
    )
    avoided = make_simulated_node("a", cpu="8", taints=(Taint(key="k", effect="PreferNoSchedule"),))
    assert list_pending_pods(
        [*make_pods(1), make_pod("z", "4", age=-1, node_selector=((ZONE, "b"),))],
        [avoided, make_simulated_node("b", zone="b")],
    ) == ["z"]


# Pods that mind others

SPREAD = SpreadConstraint(topology_key=ZONE, max_skew=1, selector=WEB)
APART = AffinityTerm(topology_key=HOSTNAME, selector=WEB)
NEAR = AffinityTerm(topology_key=ZONE, selector=build_label_selector({"app": "db"}))


def test_simulated_topology_spread_counts_only_zones_of_existing_nodes() -> None:
    rooms = [make_simulated_node("a", cpu="8"), make_simulated_node("b", cpu="1", zone="b")]
    assert list_pending_pods(make_pods(4, spread=(SPREAD,)), rooms) == ["p3"]
    assert list_pending_pods(make_pods(4, spread=(SPREAD,)), [rooms[0]]) == []
    assert list_pending_pods(make_pods(3, spread=(replace(SPREAD, min_domains=2),)), [rooms[0]]) == ["p1", "p2"]
    assert list_pending_pods(make_pods(1, spread=(replace(SPREAD, topology_key="rack"),)), rooms) == ["p0"]


def test_simulated_pod_anti_affinity_is_symmetric() -> None:
    assert list_pending_pods(
        make_pods(3, pod_anti_affinity=(APART,)), [make_simulated_node("a"), make_simulated_node("b")]
    ) == ["p2"]
    assert list_pending_pods(
        [*make_pods(1, pod_anti_affinity=(APART,), age=9), *make_pods(1, "other")], [make_simulated_node("a")]
    ) == ["other0"]


def test_simulated_pod_with_pod_affinity_waits_for_a_matching_pod_later_in_the_queue() -> None:
    near = make_pod("near", age=9, pod_affinity=(NEAR,))
    assert list_pending_pods([near, make_pod("db", labels={"app": "db"})], [make_simulated_node("a")]) == []
    assert list_pending_pods([near], [make_simulated_node("a")]) == ["near"]
    itself = replace(near, meta=replace(near.meta, labels=(("app", "db"),)))
    assert list_pending_pods([itself], [make_simulated_node("a")]) == []


def test_soft_constraints_only_affect_scores_in_the_simulation() -> None:
    soft = replace(SPREAD, when_unsatisfiable="ScheduleAnyway")
    rooms = [make_simulated_node("a", cpu="64", memory="640Gi"), make_simulated_node("b", cpu="4", zone="b")]
    assert list_pending_pods(
        [*make_pods(2, spread=(soft,)), make_pod("z", "4", age=-1, node_selector=((ZONE, "b"),))], rooms
    ) == ["z"]
    assert list_pending_pods([*make_pods(2), make_pod("z", "4", age=-1, node_selector=((ZONE, "b"),))], rooms) == []
    wish = replace(APART, weight=1)
    assert list_pending_pods(make_pods(3, preferred_pod_anti_affinity=(wish,)), rooms) == []


def test_simulation_ignores_topology_constraints_after_max_steps() -> None:
    assert (
        list_pending_pods(
            make_pods(3, pod_anti_affinity=(APART,)), [make_simulated_node("a"), make_simulated_node("b")], steps=0
        )
        == []
    )


def test_pods_without_requests_count_with_default_requests_in_scores() -> None:
    pods_without_requests = [
        replace(pod, spec=replace(pod.spec, requests=parse_resources({"pods": "1"}))) for pod in make_pods(30)
    ]
    assert (
        len(
            list_pending_pods(
                pods_without_requests, [make_simulated_node("a"), make_simulated_node("b", cpu="0", memory="0")]
            )
        )
        == 0
    )
    assert (
        len(
            list_pending_pods(
                [*pods_without_requests, *(make_pod(f"z{number}") for number in range(11))],
                [make_simulated_node("a"), make_simulated_node("b")],
            )
        )
        == 3
    )


# A plan


def test_plan_with_equal_pods_leaves_no_pods_pending() -> None:
    pods = make_pods(9, cpu="2")
    cluster = make_cluster_snapshot(*pods)
    assert find_pods_left_pending(solve(cluster), cluster, {pod.name: pod for pod in pods}) == ()


def build_mixed_cluster(
    large: tuple[int, str, str], small: tuple[int, str, str]
) -> tuple[ClusterSnapshot, dict[str, Pod]]:
    """Return a cluster with pods of two sizes (count, CPU and memory each), and its pods by name."""
    pods = [
        make_pod(f"{name}{n}", *size) for name, (count, *size) in (("l", large), ("s", small)) for n in range(count)
    ]
    return make_cluster_snapshot(*pods), {pod.name: pod for pod in pods}


HALF = ((6, "3", "4Gi"), (12, "1", "6Gi"))
FULL = ((8, "3", "20Gi"), (24, "900m", "1Gi"))


def test_plan_with_the_lowest_cost_including_relaunches_is_chosen_without_nominations() -> None:
    cluster, pods = build_mixed_cluster(*HALF)
    hinted_plan, unhinted_plan = solve(cluster), solve(cluster, options=SchedulingOptions(pod_nominations="Disabled"))
    assert (round(hinted_plan.price_usd_per_hour, 3), len(find_pods_left_pending(hinted_plan, cluster, pods))) == (
        1.6,
        1,
    )
    assert (round(unhinted_plan.price_usd_per_hour, 3), len(find_pods_left_pending(unhinted_plan, cluster, pods))) == (
        1.7,
        0,
    )
    assert (hinted_plan.second_launches, unhinted_plan.second_launches) == (0, 0)


def test_second_launches_of_a_plan_are_counted_and_priced() -> None:
    cluster, pods = build_mixed_cluster(*FULL)
    placement = solve(cluster, options=SchedulingOptions(pod_nominations="Disabled"))
    pending_pods = find_pods_left_pending(placement, cluster, pods)
    assert (placement.second_launches, pending_pods) == (2, tuple(sorted(pending_pods)))
    relaunch_cost = estimate_relaunch_cost(pending_pods, placement, pods)
    assert 0 < relaunch_cost < placement.price_usd_per_hour
    assert estimate_relaunch_cost((), placement, pods) == 0
    assert estimate_relaunch_cost(pods, placement, pods) >= placement.price_usd_per_hour * 0.5


@pytest.mark.parametrize("sizes", [HALF, FULL, ((20, "3", "11Gi"), (20, "900m", "4Gi"))])
def test_total_cost_never_exceeds_the_total_cost_of_the_greedy_plan(sizes: tuple[tuple[int, str, str], ...]) -> None:
    cluster, pods = build_mixed_cluster(*sizes)

    def compute_total_cost(options: SchedulingOptions) -> float:
        placement = solve(cluster, options=options)
        return placement.price_usd_per_hour + estimate_relaunch_cost(
            find_pods_left_pending(placement, cluster, pods), placement, pods
        )

    greedy = SchedulingOptions(pod_nominations="Disabled", packing="Greedy")
    assert compute_total_cost(SchedulingOptions(pod_nominations="Disabled")) <= compute_total_cost(greedy) + 1e-9


def test_plan_without_catalog_node_pools_or_pods_is_not_simulated() -> None:
    cluster, pods = build_mixed_cluster(*FULL)
    placement = solve(cluster)
    for blind in (replace(cluster, catalog=None), replace(cluster, node_pools=())):
        assert find_pods_left_pending(placement, blind, pods) == ()
    empty = replace(cluster, catalog=Catalog(region="nowhere", instance_types=()))
    assert find_pods_left_pending(placement, empty, pods) == ()
    assert find_pods_left_pending(placement, cluster, {}) == ()
