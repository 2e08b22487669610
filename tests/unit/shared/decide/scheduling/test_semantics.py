"""Scheduling rules that no other test file covers, and the docs pages that name the test of each rule."""

import ast
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from shared.model.cloud_provider.instance_type import Offering
from shared.model.core.labels import INSTANCE_TYPE, ZONE
from shared.model.core.resources import Resources
from shared.model.core.taints import Taint
from shared.model.decisions.placement import SchedulingOptions
from shared.model.kubernetes.host_ports import HostPort
from tests.support.catalogues import (
    DAEMON_OWNER,
    SIZES,
    count_pods_per_new_node,
    locate_pods,
    make_cluster_snapshot,
    make_daemon_set,
    make_instance_type,
    make_node,
    make_node_pool,
    make_pod,
    make_requirements,
)
from tests.support.snapshot_decisions import solve

ROOT = Path(__file__).parents[5]
TEXT = "".join((ROOT / "docs" / name).read_text() for name in ("semantics.md", "disruption.md", "lifecycle.md"))
ROWS = [line.split("|") for line in TEXT.splitlines() if line.count("|") == 4 and "`" in line]


def test_min_values_of_a_heavier_node_pool_are_relaxed_before_a_lighter_node_pool_is_tried() -> None:
    various = make_requirements((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 9})
    pools = (make_node_pool("heavy", weight=9, requirements=various), make_node_pool("light"))
    cluster = make_cluster_snapshot(make_pod("x"), node_pools=pools)
    assert locate_pods(solve(cluster, options=SchedulingOptions(min_values_policy="BestEffort"))) == {"x": "heavy"}
    assert locate_pods(solve(cluster)) == {"x": "light"}


def test_node_pool_limit_on_nodes_holds_within_one_run() -> None:
    limits = Resources(amounts=(("nodes", 2),))
    pods = tuple(make_pod(f"p{number}", "9") for number in range(3))
    placement = solve(make_cluster_snapshot(*pods, node_pools=(make_node_pool(limits=limits),)))
    assert (count_pods_per_new_node(placement), len(placement.unschedulable)) == ([1, 1], 1)
    assert "spec.limits.nodes" in placement.unschedulable[0].message


def test_daemon_set_pods_are_expected_on_nodes_with_a_prefer_no_schedule_taint() -> None:
    soft = Taint(key="team", effect="PreferNoSchedule")
    cluster = make_cluster_snapshot(
        make_pod("x", "3500m"), nodes=(make_node("here", taints=(soft,)),), node_pools=(make_node_pool(),)
    )
    with_daemon = replace(cluster, daemon_sets=(make_daemon_set("agent", "1"),), node_pools=())
    assert locate_pods(solve(replace(cluster, node_pools=()))) == {"x": "here"}
    assert locate_pods(solve(with_daemon)) == {"x": "NoNodePool"}


def test_completed_pods_use_no_resources_and_no_host_ports() -> None:
    ports = (HostPort(port=80),)
    ended = replace(make_pod("ended", "3", host_ports=ports, on="here"), phase="Succeeded")
    assert locate_pods(
        solve(make_cluster_snapshot(ended, make_pod("x", "3", host_ports=ports), nodes=(make_node("here"),)))
    ) == {"x": "here"}
    failed = replace(make_pod("agent-1", "1", owners=(DAEMON_OWNER,), on="here"), phase="Failed")
    cluster = make_cluster_snapshot(
        failed, make_pod("x", "1500m"), nodes=(make_node("here", "2"),), daemon_sets=(make_daemon_set("agent", "1"),)
    )
    assert locate_pods(solve(cluster)) == {"x": "default"}


def test_capacity_reservation_is_not_used_when_min_values_forbid_it() -> None:
    reserved_offering = Offering(
        zone="a", capacity_type="reserved", price_usd_per_hour=0.0, reservation_id="cr-1", reservation_capacity=1
    )
    types = (replace(SIZES[0], offerings=(*SIZES[0].offerings, reserved_offering)), *SIZES[1:])
    free, various = (
        make_node_pool(),
        make_node_pool(requirements=make_requirements((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 2})),
    )
    kinds = [
        solve(make_cluster_snapshot(make_pod("x"), types=types, node_pools=(node_pool,))).new_nodes[0].cheapest
        for node_pool in (free, various)
    ]
    assert [offering.capacity_type for offering in kinds] == ["reserved", "on-demand"]


def test_daemon_set_with_resource_claims_is_not_counted_as_overhead() -> None:
    daemons = (make_daemon_set("agent", "1500m", has_resource_claims=True),)
    assert (
        solve(make_cluster_snapshot(make_pod("x"), daemon_sets=daemons)).new_nodes[0].cheapest.instance_type == "m.02"
    )


def test_pod_with_resource_claims_gets_a_message_that_dra_is_not_supported() -> None:
    [failure] = solve(make_cluster_snapshot(make_pod("x", has_resource_claims=True))).unschedulable
    assert failure.message == "spec.resourceClaims: Joiner plans claims only with dynamic-resource-allocation: on"


@pytest.mark.parametrize(
    ("operator", "value", "expected_type"),
    [("Gte", "8", "m.08"), ("Lte", "2", "m.02"), ("Gt", "4", "m.08"), ("Lt", "4", "m.02")],
)
def test_numeric_operators_compare_label_values_as_numbers(operator: str, value: str, expected_type: str) -> None:
    cpus = "karpenter.k8s.aws/instance-cpu"
    types = tuple(make_instance_type(f"m.{cpu:02d}", cpu, labels={cpus: [str(cpu)]}) for cpu in (2, 4, 8, 16))
    pod = make_pod("x", "100m", required_terms=(make_requirements((cpus, operator, [value]), (ZONE, "In", ["a"])),))
    assert solve(make_cluster_snapshot(pod, types=types)).new_nodes[0].cheapest.instance_type == expected_type


def _list_test_names() -> frozenset[str]:
    trees = (ast.parse(path.read_text()) for path in sorted((ROOT / "tests").rglob("*.py")))
    return frozenset(
        function.name
        for tree in trees
        for function in tree.body
        if isinstance(function, ast.FunctionDef) and "test_" in function.name
    )


def test_every_rule_in_the_docs_cites_existing_code_and_tests() -> None:
    test_names, missing = _list_test_names(), []
    for _, rule, code, tests, _ in ROWS:
        for name in re.findall(r"`([^`]+)`", code):
            path, _, function = name.partition(":")
            if not (ROOT / path).is_file() or (function and f"{function}" not in (ROOT / path).read_text()):
                missing.append((rule.strip(), name))
        cited_names = re.findall(r"`([^`]+)`", tests)
        missing += [(rule.strip(), name) for name in cited_names or ["no test"] if f"test_{name}" not in test_names]
    assert missing == []
    assert len(ROWS) > 60
