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


def test_the_nominated_node_is_tried_before_a_better_one() -> None:
    bench = make_bench_with_pending_pods(("p", "1"))
    bench.create_node("a", cpu="64", taints=CLOSED)
    bench.advance_seconds()
    nominate(bench, "p", "n")
    bench.api.patch("nodes", "n", OPEN)
    bench.api.patch("nodes", "a", OPEN)
    bench.advance_seconds()
    assert bench.get_node_name("p") == "n"


def test_room_is_kept_for_the_nominated_and_the_nomination_ends_with_the_binding() -> None:
    bench = make_bench_with_pending_pods(("a-first", "3"), ("b-nominated", "3"))
    nominate(bench, "b-nominated", "n")
    open_node(bench, "n")
    assert (bench.get_node_name("a-first"), bench.get_node_name("b-nominated")) == ("", "n")
    assert get_nominated_node(bench, "b-nominated") == ""


@pytest.mark.parametrize(("priority", "first"), [(0, ""), (-1, ""), (1, "n")])
def test_room_is_kept_from_equals_and_lesser_ones_only(priority: int, first: str) -> None:
    bench = make_bench_with_pending_pods(("b-nominated", "3"))
    nominate(bench, "b-nominated", "n")
    bench.api.create("priorityclasses.scheduling.k8s.io", {"metadata": {"name": "mine"}, "value": priority})
    bench.create_pod("a-first", cpu="3", spec={"priorityClassName": "mine"})
    open_node(bench, "n")
    assert bench.get_node_name("a-first") == first


def test_a_nomination_does_not_keep_out_who_fits_besides() -> None:
    bench = make_bench_with_pending_pods(("a-first", "1"), ("b-nominated", "3"))
    nominate(bench, "b-nominated", "n")
    open_node(bench, "n")
    assert (bench.get_node_name("a-first"), bench.get_node_name("b-nominated")) == ("n", "n")


@pytest.mark.parametrize("node", ["n", "gone"])
def test_who_is_tried_in_vain_loses_the_nomination(node: str) -> None:
    bench = make_bench_with_pending_pods(("p", "1"))
    nominate(bench, "p", node)
    assert get_nominated_node(bench, "p") == node
    bench.create_node("other", cpu="500m")
    bench.advance_seconds()
    assert (bench.get_node_name("p"), get_nominated_node(bench, "p")) == ("", "")


def test_a_stale_nomination_does_no_harm() -> None:
    bench = make_bench_with_pending_pods(("p", "1"))
    nominate(bench, "p", "gone")
    open_node(bench, "n")
    assert bench.get_node_name("p") == "n"


def test_a_nomination_that_is_given_up_makes_room() -> None:
    bench = make_bench_with_pending_pods(("a-first", "3"), ("b-nominated", "3"))
    bench.create_pod("c-kept", cpu="3")
    bench.advance_seconds()
    nominate(bench, "b-nominated", "n")
    nominate(bench, "c-kept", "n")
    bench.api.delete("pods", "b-nominated", "default", grace_period_seconds=0)
    nominate(bench, "c-kept", "elsewhere")
    open_node(bench, "n")
    assert bench.get_node_name("a-first") == "n"


def test_nominations_that_change_while_the_node_is_open_wake_those_who_wait() -> None:
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


def test_nominated_pods_count_for_those_that_look_around() -> None:
    apart = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
    alone = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}}
    bench = make_bench_with_pending_pods(("a-first", "1"), ("b-nominated", "1"), labels={"app": "web"}, spec=alone)
    nominate(bench, "b-nominated", "n")
    open_node(bench, "n")
    assert (bench.get_node_name("a-first"), bench.get_node_name("b-nominated")) == ("", "n")


def test_who_needs_a_nominated_pod_near_waits_until_it_is_there() -> None:
    near = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": ZONE}
    close = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}}
    bench = make_bench_with_pending_pods(("a-first", "1"), spec=close)
    bench.create_pod("b-nominated", cpu="1", labels={"app": "db"})
    bench.advance_seconds()
    nominate(bench, "b-nominated", "n")
    open_node(bench, "n")
    assert (bench.get_node_name("a-first"), bench.get_node_name("b-nominated")) == ("n", "n")
