"""kube-scheduler and `status.nominatedNodeName`: a hint that somebody gives, a room that is kept."""

from datetime import timedelta
from typing import Any

import pytest

from tests.unit.cluster_objects import HOST, ZONE, Bench

CLOSED = [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]
OPEN: dict[str, Any] = {"spec": {"taints": []}}


def nominate(bench: Bench, pod: str, node: str | None) -> None:
    bench.api.patch("pods", pod, {"status": {"nominatedNodeName": node}}, "default", "status")


def nominated(bench: Bench, pod: str) -> str:
    return str(bench.api.get("pods", pod, "default")["status"].get("nominatedNodeName", ""))


def opened(bench: Bench, node: str) -> None:
    bench.api.patch("nodes", node, OPEN)
    bench.settle()


def waiting(*pods: tuple[str, str], **more: Any) -> Bench:
    """A closed node n of 4 cpu, and *pods* that wait."""
    bench = Bench()
    bench.node("n", taints=CLOSED)
    for name, cpu in pods:
        bench.pod(name, cpu=cpu, **more)
    bench.settle()
    return bench


def test_the_nominated_node_is_tried_before_a_better_one() -> None:
    bench = waiting(("p", "1"))
    bench.node("a", cpu="64", taints=CLOSED)
    bench.settle()
    nominate(bench, "p", "n")
    bench.api.patch("nodes", "n", OPEN)
    bench.api.patch("nodes", "a", OPEN)
    bench.settle()
    assert bench.node_of("p") == "n"


def test_room_is_kept_for_the_nominated_and_the_nomination_ends_with_the_binding() -> None:
    bench = waiting(("a-first", "3"), ("b-nominated", "3"))
    nominate(bench, "b-nominated", "n")
    opened(bench, "n")
    assert (bench.node_of("a-first"), bench.node_of("b-nominated")) == ("", "n")
    assert nominated(bench, "b-nominated") == ""


@pytest.mark.parametrize(("priority", "first"), [(0, ""), (-1, ""), (1, "n")])
def test_room_is_kept_from_equals_and_lesser_ones_only(priority: int, first: str) -> None:
    bench = waiting(("b-nominated", "3"))
    nominate(bench, "b-nominated", "n")
    bench.api.create("priorityclasses.scheduling.k8s.io", {"metadata": {"name": "mine"}, "value": priority})
    bench.pod("a-first", cpu="3", spec={"priorityClassName": "mine"})
    opened(bench, "n")
    assert bench.node_of("a-first") == first


def test_a_nomination_does_not_keep_out_who_fits_besides() -> None:
    bench = waiting(("a-first", "1"), ("b-nominated", "3"))
    nominate(bench, "b-nominated", "n")
    opened(bench, "n")
    assert (bench.node_of("a-first"), bench.node_of("b-nominated")) == ("n", "n")


@pytest.mark.parametrize("node", ["n", "gone"])
def test_who_is_tried_in_vain_loses_the_nomination(node: str) -> None:
    bench = waiting(("p", "1"))
    nominate(bench, "p", node)
    assert nominated(bench, "p") == node
    bench.node("other", cpu="500m")
    bench.settle()
    assert (bench.node_of("p"), nominated(bench, "p")) == ("", "")


def test_a_stale_nomination_does_no_harm() -> None:
    bench = waiting(("p", "1"))
    nominate(bench, "p", "gone")
    opened(bench, "n")
    assert bench.node_of("p") == "n"


def test_a_nomination_that_is_given_up_makes_room() -> None:
    bench = waiting(("a-first", "3"), ("b-nominated", "3"))
    bench.pod("c-kept", cpu="3")
    bench.settle()
    nominate(bench, "b-nominated", "n")
    nominate(bench, "c-kept", "n")
    bench.api.delete("pods", "b-nominated", "default", grace_period_seconds=0)
    nominate(bench, "c-kept", "elsewhere")
    opened(bench, "n")
    assert bench.node_of("a-first") == "n"


def test_nominations_that_change_while_the_node_is_open_wake_those_who_wait() -> None:
    bench = Bench()
    bench.node("n", taints=CLOSED)
    bench.pod("nominated", cpu="3", spec={"schedulingGates": [{"name": "later"}]})
    bench.pod("other", cpu="3")
    bench.settle()
    nominate(bench, "other", "elsewhere")
    bench.clock.advance(timedelta(seconds=1))
    nominate(bench, "other", None)
    opened(bench, "n")
    assert bench.node_of("other") == "n"


def test_nominated_pods_count_for_those_that_look_around() -> None:
    apart = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}
    alone = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}}
    bench = waiting(("a-first", "1"), ("b-nominated", "1"), labels={"app": "web"}, spec=alone)
    nominate(bench, "b-nominated", "n")
    opened(bench, "n")
    assert (bench.node_of("a-first"), bench.node_of("b-nominated")) == ("", "n")


def test_who_needs_a_nominated_pod_near_waits_until_it_is_there() -> None:
    near = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": ZONE}
    close = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}}
    bench = waiting(("a-first", "1"), spec=close)
    bench.pod("b-nominated", cpu="1", labels={"app": "db"})
    bench.settle()
    nominate(bench, "b-nominated", "n")
    opened(bench, "n")
    assert (bench.node_of("a-first"), bench.node_of("b-nominated")) == ("n", "n")
