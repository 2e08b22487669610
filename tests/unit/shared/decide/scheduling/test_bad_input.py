"""Invalid pods: each gets a message that says how to fix it, and the other pods are scheduled."""

from typing import Any

import pytest

from shared.model.decisions.placement import Placement, SchedulingOptions
from tests.support.poison import (
    Json,
    build_cluster,
    make_node_affinity,
    make_pod_affinity,
    make_pod_manifest,
    make_spread_constraints,
)
from tests.support.snapshot_decisions import solve

FILES = SchedulingOptions(readiness="Assumed")
CPU = "karpenter.k8s.aws/instance-cpu"
ZONE = "topology.kubernetes.io/zone"
UNREADABLE_PODS: dict[str, tuple[Json, str]] = {
    "spec is a string": (make_pod_manifest("bad") | {"spec": "later"}, "spec: expected `object`"),
    "unknown affinity operator": (
        make_pod_manifest("bad", affinity=make_node_affinity("a", "Like", "b")),
        "unknown operator 'Like'",
    ),
    "Gt value is not a number": (
        make_pod_manifest("bad", affinity=make_node_affinity(CPU, "Gt", "many")),
        "Gt takes one integer",
    ),
    "Gt value is too long": (
        make_pod_manifest("bad", affinity=make_node_affinity(CPU, "Gt", "9" * 5000)),
        "Gt takes one integer",
    ),
    "negative cpu request": (make_pod_manifest("bad", requests={"cpu": "-1"}), "cpu: below zero"),
    "memory quantity out of range": (make_pod_manifest("bad", requests={"memory": "1e999"}), "memory: not a quantity"),
    "timestamp without an offset": (
        make_pod_manifest("bad")
        | {"metadata": {"name": "bad", "namespace": "shop", "creationTimestamp": "2026-11-21T00:00:00"}},
        "metadata.creationTimestamp",
    ),
}
UNSCHEDULABLE_PODS: dict[str, tuple[Json, str, str]] = {
    "contradictory selectors": (
        make_pod_manifest("bad", nodeSelector={ZONE: "a"}, affinity=make_node_affinity(ZONE, "In", "b")),
        "RequirementsNotMet",
        "contradict each other",
    ),
    "Gt value at the integer limit": (
        make_pod_manifest("bad", affinity=make_node_affinity(CPU, "Gt", str(2**63 - 1))),
        "RequirementsNotMet",
        f"{CPU} DoesNotExist",
    ),
    "invalid label value": (make_pod_manifest("bad", nodeSelector={"team": "a b"}), "InvalidPod", "'a b'"),
    "label value is too long": (make_pod_manifest("bad", nodeSelector={CPU: "9" * 5000}), "InvalidPod", "999..."),
    "cpu request in millions": (
        make_pod_manifest("bad", requests={"cpu": "500M"}),
        "NoInstanceTypeFits",
        "did you mean m (thousandths of a cpu)",
    ),
    "memory request above every instance type": (
        make_pod_manifest("bad", requests={"memory": "1e99"}),
        "NoInstanceTypeFits",
        "memory",
    ),
    "unknown topology key": (
        make_pod_manifest("bad", {"app": "x"}, topologySpreadConstraints=make_spread_constraints("rack")),
        "TopologyNotSatisfied",
        "topology spread over rack",
    ),
    "maxSkew is 0": (
        make_pod_manifest("bad", topologySpreadConstraints=make_spread_constraints(ZONE, maxSkew=0)),
        "InvalidPod",
        "maxSkew is 0",
    ),
    "minDomains is negative": (
        make_pod_manifest("bad", topologySpreadConstraints=make_spread_constraints(ZONE, minDomains=-1)),
        "InvalidPod",
        "minDomains is -1",
    ),
    "unknown whenUnsatisfiable": (
        make_pod_manifest("bad", topologySpreadConstraints=make_spread_constraints(ZONE, whenUnsatisfiable="Maybe")),
        "InvalidPod",
        "whenUnsatisfiable is 'Maybe'",
    ),
    "unknown nodeTaintsPolicy": (
        make_pod_manifest("bad", topologySpreadConstraints=make_spread_constraints(ZONE, nodeTaintsPolicy="Maybe")),
        "InvalidPod",
        "nodeTaintsPolicy is 'Maybe'",
    ),
    "topology spread without a topologyKey": (
        make_pod_manifest("bad", topologySpreadConstraints=make_spread_constraints("")),
        "InvalidPod",
        "topologyKey",
    ),
    "pod affinity without a topologyKey": (
        make_pod_manifest("bad", affinity=make_pod_affinity("", app="x")),
        "InvalidPod",
        "no topologyKey",
    ),
    "pod affinity without a matching pod": (
        make_pod_manifest("bad", affinity=make_pod_affinity(ZONE, app="ghost")),
        "TopologyNotSatisfied",
        "pod affinity over topology.kubernetes.io/zone",
    ),
}


def _solve_with_good_pods(*pods: Json) -> tuple[Placement, tuple[str, ...]]:
    cluster = build_cluster(*(make_pod_manifest(f"good-{number}") for number in range(3)), *pods)
    return solve(cluster, options=FILES), tuple(f"{problem.name}: {problem.message}" for problem in cluster.problems)


def _count_good_pods(placement: Placement) -> int:
    return sum(name.startswith("shop/good-") for node in placement.new_nodes for name in node.pods)


@pytest.mark.parametrize(("bad", "words"), UNREADABLE_PODS.values(), ids=UNREADABLE_PODS.keys())
def test_unreadable_pod_is_reported_and_other_pods_are_scheduled(bad: Json, words: str) -> None:
    placement, problems = _solve_with_good_pods(bad)
    assert _count_good_pods(placement) == 3
    assert [problem.startswith("shop/bad: ") and words in problem for problem in problems] == [True]


@pytest.mark.parametrize(("bad", "reason", "words"), UNSCHEDULABLE_PODS.values(), ids=UNSCHEDULABLE_PODS.keys())
def test_unschedulable_pod_spec_is_reported_with_reason_and_other_pods_are_scheduled(
    bad: Json, reason: str, words: str
) -> None:
    placement, problems = _solve_with_good_pods(bad)
    assert (_count_good_pods(placement), problems) == (3, ())
    assert [(failure.pod, failure.reason, words in failure.message) for failure in placement.unschedulable] == [
        ("shop/bad", reason, True)
    ]


def test_pods_with_circular_pod_affinity_are_all_unschedulable() -> None:
    circle = [
        make_pod_manifest(app, {"app": app}, affinity=make_pod_affinity(ZONE, app=target_app))
        for app, target_app in ("ab", "bc", "ca")
    ]
    placement, _ = _solve_with_good_pods(*circle)
    assert _count_good_pods(placement) == 3
    assert [(failure.pod, failure.reason) for failure in placement.unschedulable] == [
        (f"shop/{name}", "TopologyNotSatisfied") for name in "abc"
    ]


def test_pods_with_a_chain_of_pod_affinity_are_scheduled() -> None:
    chain = [
        make_pod_manifest(app, {"app": app}, affinity=make_pod_affinity(ZONE, app=target_app))
        for app, target_app in ("ab", "bc")
    ]
    placement, _ = _solve_with_good_pods(*chain, make_pod_manifest("c", {"app": "c"}, nodeSelector={ZONE: "b"}))
    assert placement.unschedulable == ()


def test_toleration_with_an_unknown_operator_tolerates_no_taint() -> None:
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    node: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "here"},
        "spec": {"taints": [taint]},
        "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9"}},
    }
    odd = make_pod_manifest("bad", tolerations=[{"key": "team", "value": "a", "operator": "Perhaps"}])
    assert solve(build_cluster(node, odd), options=FILES).existing == ()


def test_pods_without_resource_requests_are_scheduled() -> None:
    placement = solve(
        build_cluster(*(make_pod_manifest(f"bare-{number}", requests={}) for number in range(40))), options=FILES
    )
    assert (len(placement.new_nodes), placement.unschedulable) == (1, ())


def test_one_invalid_pod_among_ten_thousand_is_the_only_unscheduled_pod() -> None:
    manifests = [
        make_pod_manifest(
            f"p{number:05d}", {"app": f"a{number % 20}"}, requests={"cpu": f"{100 + 50 * (number % 20)}m"}
        )
        for number in range(10_000)
    ]
    manifests[4711] = make_pod_manifest("p04711", requests={"cpu": "-3"})
    cluster = build_cluster(*manifests)
    placement = solve(cluster, options=SchedulingOptions(readiness="Assumed", packing="Greedy"))
    assert [problem.name for problem in cluster.problems] == ["shop/p04711"]
    assert placement.unschedulable == ()
    assert sum(len(node.pods) for node in placement.new_nodes) == 9_999
