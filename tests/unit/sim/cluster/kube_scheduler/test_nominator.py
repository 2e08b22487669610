"""Tests of kube-scheduler and `status.nominatedNodeName`: a hint to the scheduler that reserves room."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.cluster_objects import HOST, ZONE, Bench

CLOSED = [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]
OPEN: dict[str, Any] = {"spec": {"taints": []}}


def nominate(bench: Bench, pod: str, node: str | None) -> None:
    bench.api.patch("pods", pod, {"status": {"nominatedNodeName": node}}, "default", "status")


def get_nominated_node(bench: Bench, pod: str) -> str:
    return str(bench.api.get("pods", pod, "default")["status"].get("nominatedNodeName", ""))


def open_node(bench: Bench, node: str) -> None:
    bench.api.patch("nodes", node, OPEN)
    bench.advance_seconds()


def make_bench_with_pending_pods(*pods: tuple[str, str], **fields: Any) -> Bench:
    """Return a bench with a tainted node n of 4 CPUs and the pending *pods*."""
    bench = Bench()
    bench.create_node("n", taints=CLOSED)
    for name, cpu in pods:
        bench.create_pod(name, cpu=cpu, **fields)
    bench.advance_seconds()
    return bench


def test_nominated_node_is_tried_before_other_nodes() -> None:
    bench = make_bench_with_pending_pods(("p", "1"))
    bench.create_node("a", cpu="64", taints=CLOSED)
    bench.advance_seconds()
    nominate(bench, "p", "n")
    bench.api.patch("nodes", "n", OPEN)
    bench.api.patch("nodes", "a", OPEN)
    bench.advance_seconds()
    assert bench.get_node_name("p") == "n"


def test_nominated_pod_reserves_capacity_until_it_is_bound() -> None:
    bench = make_bench_with_pending_pods(("a-first", "3"), ("b-nominated", "3"))
    nominate(bench, "b-nominated", "n")
    open_node(bench, "n")
    assert (bench.get_node_name("a-first"), bench.get_node_name("b-nominated")) == ("", "n")
    assert get_nominated_node(bench, "b-nominated") == ""


@pytest.mark.parametrize(("priority", "first"), [(0, ""), (-1, ""), (1, "n")])
def test_nominated_pod_reserves_capacity_only_from_equal_or_lower_priority(priority: int, first: str) -> None:
    bench = make_bench_with_pending_pods(("b-nominated", "3"))
    nominate(bench, "b-nominated", "n")
    bench.api.create("priorityclasses.scheduling.k8s.io", {"metadata": {"name": "mine"}, "value": priority})
    bench.create_pod("a-first", cpu="3", spec={"priorityClassName": "mine"})
    open_node(bench, "n")
    assert bench.get_node_name("a-first") == first


def test_nomination_does_not_block_pods_that_fit_alongside() -> None:
    bench = make_bench_with_pending_pods(("a-first", "1"), ("b-nominated", "3"))
    nominate(bench, "b-nominated", "n")
    open_node(bench, "n")
    assert (bench.get_node_name("a-first"), bench.get_node_name("b-nominated")) == ("n", "n")


@pytest.mark.parametrize("node", ["n", "gone"])
def test_nomination_is_cleared_after_a_failed_scheduling_attempt(node: str) -> None:
    bench = make_bench_with_pending_pods(("p", "1"))
    nominate(bench, "p", node)
    assert get_nominated_node(bench, "p") == node
    bench.create_node("other", cpu="500m")
    bench.advance_seconds()
    assert (bench.get_node_name("p"), get_nominated_node(bench, "p")) == ("", "")


def test_nomination_of_a_missing_node_is_ignored() -> None:
    bench = make_bench_with_pending_pods(("p", "1"))
    nominate(bench, "p", "gone")
    open_node(bench, "n")
    assert bench.get_node_name("p") == "n"


def test_removed_nomination_frees_the_reserved_capacity() -> None:
    bench = make_bench_with_pending_pods(("a-first", "3"), ("b-nominated", "3"))
    bench.create_pod("c-kept", cpu="3")
    bench.advance_seconds()
    nominate(bench, "b-nominated", "n")
    nominate(bench, "c-kept", "n")
    bench.api.delete("pods", "b-nominated", "default", grace_period_seconds=0)
    nominate(bench, "c-kept", "elsewhere")
    open_node(bench, "n")
    assert bench.get_node_name("a-first") == "n"


def test_changed_nomination_requeues_waiting_pods() -> None:
    bench = Bench()
    bench.create_node("n", taints=CLOSED)
    bench.create_pod("nominated", cpu="3", spec={"schedulingGates": [{"name": "later"}]})
    bench.create_pod("other", cpu="3")
    bench.advance_seconds()
    nominate(bench, "other", "elsewhere")
    bench.clock.advance(timedelta(seconds=1))
    nominate(bench, "other", None)
    open_node(bench, "n")
    assert bench.get_node_name("other") == "n"


def test_nominated_pods_count_for_pod_anti_affinity() -> None:
    apart = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
    alone = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}}
    bench = make_bench_with_pending_pods(("a-first", "1"), ("b-nominated", "1"), labels={"app": "web"}, spec=alone)
    nominate(bench, "b-nominated", "n")
    open_node(bench, "n")
    assert (bench.get_node_name("a-first"), bench.get_node_name("b-nominated")) == ("", "n")


def test_pod_affinity_to_a_nominated_pod_waits_until_it_is_bound() -> None:
    near = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": ZONE}
    close = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}}
    bench = make_bench_with_pending_pods(("a-first", "1"), spec=close)
    bench.create_pod("b-nominated", cpu="1", labels={"app": "db"})
    bench.advance_seconds()
    nominate(bench, "b-nominated", "n")
    open_node(bench, "n")
    assert (bench.get_node_name("a-first"), bench.get_node_name("b-nominated")) == ("n", "n")
