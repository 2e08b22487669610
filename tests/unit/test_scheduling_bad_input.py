"""Pods that are wrong in themselves: each is named with what to do, and the others get their places."""

from typing import Any

import pytest

from shared.scheduling.placement import Options, Placement
from shared.scheduling.solve import solve
from tests.unit.poison import Json, manifest, near, seen, spread, term

FILES = Options(readiness="Assumed")
CPU = "karpenter.k8s.aws/instance-cpu"
ZONE = "topology.kubernetes.io/zone"
WRONG: dict[str, tuple[Json, str]] = {
    "a spec that is a text": (manifest("bad") | {"spec": "later"}, "spec: expected `object`"),
    "an operator that nobody knows": (manifest("bad", affinity=term("a", "Like", "b")), "unknown operator 'Like'"),
    "a number that is none": (manifest("bad", affinity=term(CPU, "Gt", "many")), "Gt takes one integer"),
    "a number without end": (manifest("bad", affinity=term(CPU, "Gt", "9" * 5000)), "Gt takes one integer"),
    "less than nothing": (manifest("bad", requests={"cpu": "-1"}), "cpu: below zero"),
    "an amount that is none": (manifest("bad", requests={"memory": "1e999"}), "memory: not a quantity"),
    "a time without its offset": (
        manifest("bad")
        | {"metadata": {"name": "bad", "namespace": "shop", "creationTimestamp": "2026-11-21T00:00:00"}},
        "metadata.creationTimestamp",
    ),
}
UNPLACED: dict[str, tuple[Json, str, str]] = {
    "contradictory selectors": (
        manifest("bad", nodeSelector={ZONE: "a"}, affinity=term(ZONE, "In", "b")),
        "RequirementsNotMet",
        "contradict each other",
    ),
    "a bound beyond all numbers": (
        manifest("bad", affinity=term(CPU, "Gt", str(2**63 - 1))),
        "RequirementsNotMet",
        f"{CPU} DoesNotExist",
    ),
    "a value that no label can have": (manifest("bad", nodeSelector={"team": "a b"}), "InvalidPod", "'a b'"),
    "a number as long as a book": (manifest("bad", nodeSelector={CPU: "9" * 5000}), "InvalidPod", "999..."),
    "millions of cpus": (manifest("bad", requests={"cpu": "500M"}), "NoInstanceTypeFits", "did you write M (millions)"),
    "more memory than there is": (manifest("bad", requests={"memory": "1e99"}), "NoInstanceTypeFits", "memory"),
    "a topology key that no type has": (
        manifest("bad", {"app": "x"}, topologySpreadConstraints=spread("rack")),
        "TopologyNotSatisfied",
        "topology spread over rack",
    ),
    "a skew of nothing": (
        manifest("bad", topologySpreadConstraints=spread(ZONE, maxSkew=0)),
        "InvalidPod",
        "maxSkew is 0",
    ),
    "fewer than no domains": (
        manifest("bad", topologySpreadConstraints=spread(ZONE, minDomains=-1)),
        "InvalidPod",
        "minDomains is -1",
    ),
    "a wish that nobody knows": (
        manifest("bad", topologySpreadConstraints=spread(ZONE, whenUnsatisfiable="Maybe")),
        "InvalidPod",
        "whenUnsatisfiable is 'Maybe'",
    ),
    "a policy that nobody knows": (
        manifest("bad", topologySpreadConstraints=spread(ZONE, nodeTaintsPolicy="Maybe")),
        "InvalidPod",
        "nodeTaintsPolicy is 'Maybe'",
    ),
    "spread over nothing": (manifest("bad", topologySpreadConstraints=spread("")), "InvalidPod", "topologyKey"),
    "near nothing": (manifest("bad", affinity=near("", app="x")), "InvalidPod", "no topologyKey"),
    "near somebody who is not there": (
        manifest("bad", affinity=near(ZONE, app="ghost")),
        "TopologyNotSatisfied",
        "pod affinity over topology.kubernetes.io/zone",
    ),
}


def _planned(*pods: Json) -> tuple[Placement, tuple[str, ...]]:
    cluster = seen(*(manifest(f"good-{number}") for number in range(3)), *pods)
    return solve(cluster, options=FILES), tuple(f"{one.name}: {one.message}" for one in cluster.problems)


def _good(placement: Placement) -> int:
    return sum(name.startswith("shop/good-") for node in placement.new_nodes for name in node.pods)


@pytest.mark.parametrize(("bad", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_pod_that_cannot_be_read_is_named(bad: Json, words: str) -> None:
    placement, problems = _planned(bad)
    assert _good(placement) == 3
    assert [one.startswith("shop/bad: ") and words in one for one in problems] == [True]


@pytest.mark.parametrize(("bad", "reason", "words"), UNPLACED.values(), ids=UNPLACED.keys())
def test_a_pod_that_asks_for_nonsense_is_told_so(bad: Json, reason: str, words: str) -> None:
    placement, problems = _planned(bad)
    assert (_good(placement), problems) == (3, ())
    assert [(one.pod, one.reason, words in one.message) for one in placement.unschedulable] == [
        ("shop/bad", reason, True)
    ]


def test_pods_that_wait_for_each_other_in_a_circle_all_wait() -> None:
    circle = [manifest(one, {"app": one}, affinity=near(ZONE, app=other)) for one, other in ("ab", "bc", "ca")]
    placement, _ = _planned(*circle)
    assert _good(placement) == 3
    assert [(one.pod, one.reason) for one in placement.unschedulable] == [
        (f"shop/{name}", "TopologyNotSatisfied") for name in "abc"
    ]


def test_a_chain_of_pods_is_no_circle() -> None:
    chain = [manifest(one, {"app": one}, affinity=near(ZONE, app=other)) for one, other in ("ab", "bc")]
    placement, _ = _planned(*chain, manifest("c", {"app": "c"}, nodeSelector={ZONE: "b"}))
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
    odd = manifest("bad", tolerations=[{"key": "team", "value": "a", "operator": "Perhaps"}])
    assert solve(seen(node, odd), options=FILES).existing == ()


def test_pods_that_ask_for_nothing_are_placed_too() -> None:
    placement = solve(seen(*(manifest(f"bare-{number}", requests={}) for number in range(40))), options=FILES)
    assert (len(placement.new_nodes), placement.unschedulable) == (1, ())


def test_one_poisoned_pod_of_ten_thousand_is_the_only_one_without_a_place() -> None:
    many = [
        manifest(f"p{number:05d}", {"app": f"a{number % 20}"}, requests={"cpu": f"{100 + 50 * (number % 20)}m"})
        for number in range(10_000)
    ]
    many[4711] = manifest("p04711", requests={"cpu": "-3"})
    cluster = seen(*many)
    placement = solve(cluster, options=Options(readiness="Assumed", packing="Greedy"))
    assert [one.name for one in cluster.problems] == ["shop/p04711"]
    assert placement.unschedulable == ()
    assert sum(len(node.pods) for node in placement.new_nodes) == 9_999
