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
    "a spec that is a text": (make_pod_manifest("bad") | {"spec": "later"}, "spec: expected `object`"),
    "an operator that nobody knows": (
        make_pod_manifest("bad", affinity=make_node_affinity("a", "Like", "b")),
        "unknown operator 'Like'",
    ),
    "a number that is none": (
        make_pod_manifest("bad", affinity=make_node_affinity(CPU, "Gt", "many")),
        "Gt takes one integer",
    ),
    "a number without end": (
        make_pod_manifest("bad", affinity=make_node_affinity(CPU, "Gt", "9" * 5000)),
        "Gt takes one integer",
    ),
    "is negative": (make_pod_manifest("bad", requests={"cpu": "-1"}), "cpu: below zero"),
    "an amount that is none": (make_pod_manifest("bad", requests={"memory": "1e999"}), "memory: not a quantity"),
    "a time without its offset": (
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
    "a bound beyond all numbers": (
        make_pod_manifest("bad", affinity=make_node_affinity(CPU, "Gt", str(2**63 - 1))),
        "RequirementsNotMet",
        f"{CPU} DoesNotExist",
    ),
    "a value that no label can have": (make_pod_manifest("bad", nodeSelector={"team": "a b"}), "InvalidPod", "'a b'"),
    "a number as long as a book": (make_pod_manifest("bad", nodeSelector={CPU: "9" * 5000}), "InvalidPod", "999..."),
    "millions of cpus": (
        make_pod_manifest("bad", requests={"cpu": "500M"}),
        "NoInstanceTypeFits",
        "did you mean m (thousandths of a cpu)",
    ),
    "more memory than there is": (
        make_pod_manifest("bad", requests={"memory": "1e99"}),
        "NoInstanceTypeFits",
        "memory",
    ),
    "a topology key that no type has": (
        make_pod_manifest("bad", {"app": "x"}, topologySpreadConstraints=make_spread_constraints("rack")),
        "TopologyNotSatisfied",
        "topology spread over rack",
    ),
    "a skew of nothing": (
        make_pod_manifest("bad", topologySpreadConstraints=make_spread_constraints(ZONE, maxSkew=0)),
        "InvalidPod",
        "maxSkew is 0",
    ),
    "fewer than no domains": (
        make_pod_manifest("bad", topologySpreadConstraints=make_spread_constraints(ZONE, minDomains=-1)),
        "InvalidPod",
        "minDomains is -1",
    ),
    "a wish that nobody knows": (
        make_pod_manifest("bad", topologySpreadConstraints=make_spread_constraints(ZONE, whenUnsatisfiable="Maybe")),
        "InvalidPod",
        "whenUnsatisfiable is 'Maybe'",
    ),
    "a policy that nobody knows": (
        make_pod_manifest("bad", topologySpreadConstraints=make_spread_constraints(ZONE, nodeTaintsPolicy="Maybe")),
        "InvalidPod",
        "nodeTaintsPolicy is 'Maybe'",
    ),
    "spread over nothing": (
        make_pod_manifest("bad", topologySpreadConstraints=make_spread_constraints("")),
        "InvalidPod",
        "topologyKey",
    ),
    "near nothing": (make_pod_manifest("bad", affinity=make_pod_affinity("", app="x")), "InvalidPod", "no topologyKey"),
    "near somebody who is not there": (
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
def test_a_pod_that_cannot_be_read_is_named(bad: Json, words: str) -> None:
    placement, problems = _solve_with_good_pods(bad)
    assert _count_good_pods(placement) == 3
    assert [problem.startswith("shop/bad: ") and words in problem for problem in problems] == [True]


@pytest.mark.parametrize(("bad", "reason", "words"), UNSCHEDULABLE_PODS.values(), ids=UNSCHEDULABLE_PODS.keys())
def test_a_pod_that_asks_for_nonsense_is_told_so(bad: Json, reason: str, words: str) -> None:
    placement, problems = _solve_with_good_pods(bad)
    assert (_count_good_pods(placement), problems) == (3, ())
    assert [(failure.pod, failure.reason, words in failure.message) for failure in placement.unschedulable] == [
        ("shop/bad", reason, True)
    ]


def test_pods_that_wait_for_each_other_in_a_circle_all_wait() -> None:
    circle = [
        make_pod_manifest(app, {"app": app}, affinity=make_pod_affinity(ZONE, app=target_app))
        for app, target_app in ("ab", "bc", "ca")
    ]
    placement, _ = _solve_with_good_pods(*circle)
    assert _count_good_pods(placement) == 3
    assert [(failure.pod, failure.reason) for failure in placement.unschedulable] == [
        (f"shop/{name}", "TopologyNotSatisfied") for name in "abc"
    ]


def test_a_chain_of_pods_is_no_circle() -> None:
    chain = [
        make_pod_manifest(app, {"app": app}, affinity=make_pod_affinity(ZONE, app=target_app))
        for app, target_app in ("ab", "bc")
    ]
    placement, _ = _solve_with_good_pods(*chain, make_pod_manifest("c", {"app": "c"}, nodeSelector={ZONE: "b"}))
    assert placement.unschedulable == ()


def test_a_toleration_that_nobody_understands_tolerates_nothing() -> None:
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


def test_pods_that_ask_for_nothing_are_placed_too() -> None:
    placement = solve(
        build_cluster(*(make_pod_manifest(f"bare-{number}", requests={}) for number in range(40))), options=FILES
    )
    assert (len(placement.new_nodes), placement.unschedulable) == (1, ())


def test_one_poisoned_pod_of_ten_thousand_is_the_only_one_without_a_place() -> None:
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
