"""The fleet summary as log lines, and how long pods waited."""

import json
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from shared.cycles.setup.run_cycle import emit_fleet_summary
from shared.decide.disruption.fleet_summary import FleetSummaryLine, build_fleet_summary
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, NODEPOOL
from shared.model.core.metadata import Condition, build_pairs
from shared.model.decisions.action import CreateNodeClaim, DeleteObject
from shared.model.karpenter.node_pool import DisruptionBudget
from shared.model.kubernetes.pod import Pod
from shared.report.journal.journal import ActionResult
from shared.report.metrics.cycle_metrics import compute_cluster_metrics, is_fleet_summary_due
from shared.state.cluster_state import ClusterState
from tests.support.actions_world import Outside, make_claim
from tests.support.catalogues import (
    NOW,
    attach_claim,
    make_cluster_snapshot,
    make_instance_type,
    make_node,
    make_node_pool,
    make_pod,
)

TYPE = make_instance_type("m.04", 4, 16, zones=("a",), price=0.25)
ONE_SECOND = timedelta(seconds=1)


def build_two_node_cluster(**fields: object) -> ClusterSnapshot:
    """Two nodes of NodePool `default`, one of them being deleted, and one unmanaged node."""
    stays, goes = attach_claim(make_node("one", labels={"team": "search"})), attach_claim(make_node("two"))
    going = replace(goes[1], meta=replace(goes[1].meta, deleted_at=NOW))
    return make_cluster_snapshot(
        types=(TYPE,), nodes=(stays[0], goes[0], make_node("other")), node_claims=(stays[1], going), **fields
    )


def index_fleet_summary(snapshot: ClusterSnapshot, label: str = "") -> dict[tuple[str, str], FleetSummaryLine]:
    return {(one.fleet, one.name): one for one in build_fleet_summary(ClusterState(snapshot), "prod", label)}


def test_fleet_summary_counts_nodes_in_total_and_by_pool_type_capacity_type_and_label() -> None:
    lines = index_fleet_summary(build_two_node_cluster(), "team")
    assert {key: (line.nodes, line.usd_per_hour) for key, line in lines.items()} == {
        ("all", "prod"): (2, 0.5),
        ("capacityType", "on-demand"): (2, 0.5),
        ("instanceType", "m.04"): (2, 0.5),
        ("label", "-"): (1, 0.25),
        ("label", "search"): (1, 0.25),
        ("nodePool", "default"): (2, 0.5),
    }


@pytest.mark.parametrize(
    ("budgets", "allowed"),
    [
        ((), None),
        ((DisruptionBudget(nodes="50%"),), 1),
        ((DisruptionBudget(nodes="0"), DisruptionBudget(nodes="2", reasons=("Empty",))), 0),
        (
            (
                DisruptionBudget(nodes="1", reasons=("Empty",)),
                DisruptionBudget(nodes="2", reasons=("Drifted", "Underutilized")),
            ),
            2,
        ),
        ((DisruptionBudget(nodes="none"),), 0),
    ],
)
def test_fleet_summary_reports_disrupting_and_allowed_nodes_of_each_node_pool(
    budgets: tuple[DisruptionBudget, ...], allowed: int | None
) -> None:
    pool_line = index_fleet_summary(build_two_node_cluster(node_pools=(make_node_pool(budgets=budgets),)))[
        "nodePool", "default"
    ]
    assert (pool_line.disrupting, pool_line.allowed) == (2, allowed)  # neither kubelet reports Ready


def test_fleet_summary_includes_empty_node_pools_and_nodes_of_deleted_node_pools() -> None:
    lonely = attach_claim(make_node("one", labels={CAPACITY_TYPE: "spot"}))
    orphans = [
        replace(resource, meta=replace(resource.meta, labels=_replace_pool_label(resource.meta.labels, "gone")))
        for resource in lonely
    ]
    lines = index_fleet_summary(make_cluster_snapshot(types=(TYPE,), nodes=(orphans[0],), node_claims=(orphans[1],)))
    assert {name: line.nodes for (fleet, name), line in lines.items() if fleet == "nodePool"} == {
        "default": 0,
        "gone": 1,
    }
    assert lines["nodePool", "gone"].allowed is None


def _replace_pool_label(labels: Any, name: str) -> tuple[tuple[str, str], ...]:
    return build_pairs(dict(labels) | {NODEPOOL: name})


@pytest.mark.parametrize(
    ("function", "trigger", "minute", "due"),
    [("disrupt", "schedule", 5, True), ("disrupt", "schedule", 6, False), ("disrupt", "message", 5, False)],
)
def test_fleet_summary_is_due_every_five_minutes_in_scheduled_disrupt_runs(
    function: str, trigger: str, minute: int, *, due: bool
) -> None:
    snapshot = replace(build_two_node_cluster(), taken_at=NOW.replace(minute=minute))
    assert is_fleet_summary_due(function, trigger, snapshot) is due
    assert not is_fleet_summary_due("provision", trigger, snapshot)


def test_fleet_summary_line_has_time_cluster_and_counts() -> None:
    outside = Outside()
    world = outside.build_world()
    emit_fleet_summary(make_cluster_snapshot(), world)
    keys = {
        "level": "INFO",
        "message": "fleet summary",
        "timestamp": world.clock().isoformat(timespec="milliseconds"),
        "service": "joiner",
        "cluster": "joiner",
        "function_request_id": "one",
        "cold_start": False,
    }
    assert [json.loads(line) for line in outside.lines] == [
        keys | {"fleet": "all", "group": "joiner", "nodes": 0, "usdPerHour": 0.0},
        keys | {"fleet": "nodePool", "group": "default", "nodes": 0, "usdPerHour": 0.0, "disrupting": 0, "allowed": 0},
    ]


def test_launch_wait_metric_measures_from_pod_creation_to_node_claim_creation() -> None:
    pods = [make_pod(f"p{number}", age=number) for number in range(1, 21)]
    create_action = CreateNodeClaim(claim=make_claim(), pods=tuple(pending_pod.name for pending_pod in pods))
    results = (ActionResult(action=create_action, result="done"), ActionResult(action=create_action, result="failed"))
    counts = compute_cluster_metrics(
        "provision", "schedule", make_cluster_snapshot(*pods, make_pod("other", age=999)), results
    )
    assert counts == {"PodLaunchSecondsP50": 10.0, "PodLaunchSecondsP95": 19.0}
    assert compute_cluster_metrics("provision", "schedule", make_cluster_snapshot(*pods), results[1:]) == {}


def make_started_pod(name: str, *, age: int, ready: int, status: str = "True", on: str = "new") -> Pod:
    ready_condition = Condition(type="Ready", status=status, since=NOW - ready * ONE_SECOND)
    return replace(make_pod(name, on=on, age=age), conditions=(ready_condition,))


@pytest.mark.parametrize(
    ("started_pod", "counts"),
    [
        (
            make_started_pod("a", age=100, ready=10),
            {"StartedPods": 1.0, "PodStartupSecondsP50": 90.0, "PodStartupSecondsP95": 90.0},
        ),
        (make_started_pod("a", age=100, ready=60), {}),
        (make_started_pod("a", age=100, ready=10, status="False"), {}),
        (make_started_pod("a", age=40, ready=10), {}),
        (make_started_pod("a", age=100, ready=10, on="unknown"), {}),
        (make_pod("a", on="new", age=100), {}),
    ],
    ids=[
        "waited for its node",
        "ready before the last minute",
        "not ready",
        "created after its node",
        "on an unknown node",
        "without a Ready condition",
    ],
)
def test_pod_that_waited_for_its_node_is_counted_in_the_minute_it_becomes_ready(
    started_pod: Pod, counts: dict[str, float]
) -> None:
    new = make_node("new")
    aged_node = replace(new, meta=replace(new.meta, created_at=NOW - 50 * ONE_SECOND))
    snapshot = make_cluster_snapshot(started_pod, nodes=(aged_node,), catalog=None)
    assert compute_cluster_metrics("disrupt", "schedule", snapshot, ()) == counts
    assert compute_cluster_metrics("disrupt", "message", snapshot, ()) == {}


def test_disrupt_reports_catalog_age_and_price_age() -> None:
    catalog = make_cluster_snapshot().catalog
    assert catalog is not None
    aged = replace(catalog, built_at=NOW - 60 * ONE_SECOND, priced_at=NOW - 90 * ONE_SECOND)
    metrics = compute_cluster_metrics("disrupt", "message", make_cluster_snapshot(catalog=aged), ())
    assert metrics == {"CatalogAgeSeconds": 60.0, "PriceAgeSeconds": 90.0}


def test_interrupted_nodes_are_counted_by_the_interrupt_function() -> None:
    ends = DeleteObject(kind="NodeClaim", name="a", message="spot_interrupted")
    node_only = DeleteObject(kind="Node", name="a", message="gone")
    results = (
        ActionResult(action=ends, result="done"),
        ActionResult(action=ends, result="failed"),
        ActionResult(action=node_only, result="done"),
    )
    assert compute_cluster_metrics("interrupt", "message", make_cluster_snapshot(), results) == {
        "InterruptedNodes": 1.0
    }
    assert compute_cluster_metrics("interrupt", "message", None, results) == {}
