"""The fleet as lines of the log, and how long pods waited."""

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from shared.model.action import CreateNodeClaim, DeleteObject
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, NODEPOOL
from shared.model.nodepools import Budget
from shared.model.objects import Condition, pairs
from shared.model.pods import Pod
from shared.report.counts import of_cluster
from shared.report.fleet import Part, is_due, parts, tell
from shared.report.journal import Done
from tests.unit.actions_world import Outside, claim
from tests.unit.catalogues import NOW, claimed, instance_type, node, pod, pool, world

TYPE = instance_type("m.04", 4, 16, zones=("a",), price=0.25)
SECOND = timedelta(seconds=1)


def cluster(**more: object) -> Cluster:
    """Two nodes of the pool `default`, one of them about to go, and one of nobody."""
    stays, goes = claimed(node("one", labels={"team": "search"})), claimed(node("two"))
    going = replace(goes[1], meta=replace(goes[1].meta, deleted_at=NOW))
    return world(types=(TYPE,), nodes=(stays[0], goes[0], node("other")), node_claims=(stays[1], going), **more)


def told(some: Cluster, label: str = "") -> dict[tuple[str, str], Part]:
    return {(one.fleet, one.name): one for one in parts(some, "prod", label)}


def test_the_fleet_is_told_in_all_and_by_what_machines_have_in_common() -> None:
    found = told(cluster(), "team")
    assert {key: (one.nodes, one.usd_per_hour) for key, one in found.items()} == {
        ("all", "prod"): (2, 0.5),
        ("capacityType", "on-demand"): (2, 0.5),
        ("instanceType", "m.04"): (2, 0.5),
        ("label", "-"): (1, 0.25),
        ("label", "search"): (1, 0.25),
        ("pool", "default"): (2, 0.5),
    }


@pytest.mark.parametrize(
    ("budgets", "allowed"),
    [
        ((), None),
        ((Budget(nodes="50%"),), 1),
        ((Budget(nodes="0"), Budget(nodes="2", reasons=("Empty",))), 0),
        ((Budget(nodes="1", reasons=("Empty",)), Budget(nodes="2", reasons=("Drifted", "Underutilized"))), 2),
        ((Budget(nodes="none"),), 0),
    ],
)
def test_a_pool_says_how_many_of_its_nodes_are_going_and_how_many_may(
    budgets: tuple[Budget, ...], allowed: int | None
) -> None:
    one = told(cluster(node_pools=(pool(budgets=budgets),)))["pool", "default"]
    assert (one.disrupting, one.allowed) == (2, allowed)  # neither is ready as kubelets say it


def test_a_pool_without_a_node_and_nodes_without_their_pool_are_parts_too() -> None:
    lonely = claimed(node("one", labels={CAPACITY_TYPE: "spot"}))
    gone = [replace(each, meta=replace(each.meta, labels=_pool(each.meta.labels, "gone"))) for each in lonely]
    found = told(world(types=(TYPE,), nodes=(gone[0],), node_claims=(gone[1],)))
    assert {name: one.nodes for (fleet, name), one in found.items() if fleet == "pool"} == {"default": 0, "gone": 1}
    assert found["pool", "gone"].allowed is None


def _pool(labels: Any, name: str) -> tuple[tuple[str, str], ...]:
    return pairs(dict(labels) | {NODEPOOL: name})


@pytest.mark.parametrize(
    ("function", "trigger", "minute", "due"),
    [("disrupt", "schedule", 5, True), ("disrupt", "schedule", 6, False), ("disrupt", "message", 5, False)],
)
def test_it_is_told_every_five_minutes_by_one_of_the_scheduled(
    function: str, trigger: str, minute: int, *, due: bool
) -> None:
    some = replace(cluster(), taken_at=NOW.replace(minute=minute))
    assert is_due(function, trigger, some) is due
    assert not is_due("provision", trigger, some)


def test_a_line_says_when_and_of_what() -> None:
    outside = Outside()
    tell(world(), outside.world())
    assert [json.loads(line) for line in outside.lines] == [
        {
            "service": "joiner",
            "at": msgspec.to_builtins(NOW),
            "fleet": "all",
            "name": "joiner",
            "nodes": 0,
            "usdPerHour": 0.0,
        },
        {
            "service": "joiner",
            "at": msgspec.to_builtins(NOW),
            "fleet": "pool",
            "name": "default",
            "nodes": 0,
            "usdPerHour": 0.0,
            "disrupting": 0,
            "allowed": 0,
        },
    ]


def test_pods_waited_from_their_creation_to_the_launch_of_what_was_made_for_them() -> None:
    pods = [pod(f"p{number}", age=number) for number in range(1, 21)]
    made = CreateNodeClaim(claim=claim(), pods=tuple(one.name for one in pods))
    done = (Done(action=made, result="done"), Done(action=made, result="failed"))
    counts = of_cluster("provision", "schedule", world(*pods, pod("other", age=999)), done)
    assert counts == {"LaunchWaitSecondsP50": 10.0, "LaunchWaitSecondsP95": 19.0}
    assert of_cluster("provision", "schedule", world(*pods), done[1:]) == {}


def started(name: str, *, age: int, ready: int, status: str = "True", on: str = "new") -> Pod:
    said = Condition(type="Ready", status=status, since=NOW - ready * SECOND)
    return replace(pod(name, on=on, age=age), conditions=(said,))


@pytest.mark.parametrize(
    ("some", "counts"),
    [
        (started("a", age=100, ready=10), {"StartedPods": 1.0, "StartSecondsP50": 90.0, "StartSecondsP95": 90.0}),
        (started("a", age=100, ready=60), {}),
        (started("a", age=100, ready=10, status="False"), {}),
        (started("a", age=40, ready=10), {}),
        (started("a", age=100, ready=10, on="unknown"), {}),
        (pod("a", on="new", age=100), {}),
    ],
    ids=["waited", "counted before", "not ready", "found its node there", "elsewhere", "says nothing"],
)
def test_a_pod_that_waited_for_its_machine_is_counted_in_the_minute_in_which_it_runs(
    some: Pod, counts: dict[str, float]
) -> None:
    new = node("new")
    made = replace(new, meta=replace(new.meta, created_at=NOW - 50 * SECOND))
    seen = world(some, nodes=(made,), catalogue=None)
    assert of_cluster("disrupt", "schedule", seen, ()) == counts
    assert of_cluster("disrupt", "message", seen, ()) == {}


def test_disrupt_says_how_old_catalogue_and_prices_are() -> None:
    known = world().catalogue
    assert known is not None
    aged = replace(known, made_at=NOW - 60 * SECOND, priced_at=NOW - 90 * SECOND)
    found = of_cluster("disrupt", "message", world(catalogue=aged), ())
    assert found == {"CatalogueAgeSeconds": 60.0, "PriceAgeSeconds": 90.0}


def test_nodes_that_are_taken_away_are_counted_where_notices_are_heard() -> None:
    ends = DeleteObject(kind="NodeClaim", name="a", why="spot_interrupted")
    node_only = DeleteObject(kind="Node", name="a", why="gone")
    done = (Done(action=ends, result="done"), Done(action=ends, result="failed"), Done(action=node_only, result="done"))
    assert of_cluster("interrupt", "message", world(), done) == {"InterruptedNodes": 1.0}
    assert of_cluster("interrupt", "message", None, done) == {}
