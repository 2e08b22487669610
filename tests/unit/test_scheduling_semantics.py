"""Rules that no other file of tests holds; and the pages in docs/ that say where each rule is held."""

import ast
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from shared.model.catalogue import Offering
from shared.model.labels import INSTANCE_TYPE, ZONE
from shared.model.pods import HostPort
from shared.model.resources import Resources
from shared.model.taints import Taint
from shared.scheduling.placement import Options
from shared.scheduling.solve import solve
from tests.unit.catalogues import (
    DAEMON_OWNER,
    SIZES,
    daemon,
    instance_type,
    needs,
    node,
    placed,
    pod,
    pool,
    sizes,
    world,
)

ROOT = Path(__file__).parents[2]
TEXT = "".join((ROOT / "docs" / name).read_text() for name in ("semantics.md", "disruption.md", "lifecycle.md"))
ROWS = [line.split("|") for line in TEXT.splitlines() if line.count("|") == 4 and "`" in line]


def test_a_heavier_pool_gives_up_variety_before_a_lighter_is_tried() -> None:
    various = needs((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 9})
    pools = (pool("heavy", weight=9, requirements=various), pool("light"))
    cluster = world(pod("x"), node_pools=pools)
    assert placed(solve(cluster, options=Options(min_values_policy="BestEffort"))) == {"x": "heavy"}
    assert placed(solve(cluster)) == {"x": "light"}


def test_a_limit_of_nodes_holds_within_one_run() -> None:
    limits = Resources(amounts=(("nodes", 2),))
    some = tuple(pod(f"p{number}", "9") for number in range(3))
    placement = solve(world(*some, node_pools=(pool(limits=limits),)))
    assert (sizes(placement), len(placement.unschedulable)) == ([1, 1], 1)
    assert "spec.limits.nodes" in placement.unschedulable[0].message


def test_a_daemon_runs_where_a_taint_only_discourages() -> None:
    soft = Taint(key="team", effect="PreferNoSchedule")
    cluster = world(pod("x", "3500m"), nodes=(node("here", taints=(soft,)),), node_pools=(pool(),))
    with_daemon = replace(cluster, daemon_sets=(daemon("agent", "1"),), node_pools=())
    assert placed(solve(replace(cluster, node_pools=()))) == {"x": "here"}
    assert placed(solve(with_daemon)) == {"x": "NoNodePool"}


def test_pods_that_have_ended_take_no_room_and_no_port() -> None:
    ports = (HostPort(port=80),)
    ended = replace(pod("ended", "3", host_ports=ports, on="here"), phase="Succeeded")
    assert placed(solve(world(ended, pod("x", "3", host_ports=ports), nodes=(node("here"),)))) == {"x": "here"}
    failed = replace(pod("agent-1", "1", owners=(DAEMON_OWNER,), on="here"), phase="Failed")
    cluster = world(failed, pod("x", "1500m"), nodes=(node("here", "2"),), daemon_sets=(daemon("agent", "1"),))
    assert placed(solve(cluster)) == {"x": "default"}


def test_a_reservation_is_not_taken_from_where_min_values_forbid_it() -> None:
    held = Offering(
        zone="a", capacity_type="reserved", price_usd_per_hour=0.0, reservation_id="cr-1", reservation_capacity=1
    )
    types = (replace(SIZES[0], offerings=(*SIZES[0].offerings, held)), *SIZES[1:])
    free, various = pool(), pool(requirements=needs((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 2}))
    kinds = [solve(world(pod("x"), types=types, node_pools=(one,))).new_nodes[0].cheapest for one in (free, various)]
    assert [one.capacity_type for one in kinds] == ["reserved", "on-demand"]


def test_a_daemon_with_resource_claims_is_not_counted() -> None:
    daemons = (daemon("agent", "1500m", has_resource_claims=True),)
    assert solve(world(pod("x"), daemon_sets=daemons)).new_nodes[0].cheapest.instance_type == "m.02"


def test_a_pod_with_resource_claims_is_told_that_these_are_ignored() -> None:
    [one] = solve(world(pod("x", has_resource_claims=True))).unschedulable
    assert one.message == "spec.resourceClaims: dynamic resource allocation is not supported"


@pytest.mark.parametrize(
    ("operator", "value", "got"), [("Gte", "8", "m.08"), ("Lte", "2", "m.02"), ("Gt", "4", "m.08"), ("Lt", "4", "m.02")]
)
def test_numbers_are_compared_as_numbers(operator: str, value: str, got: str) -> None:
    cpus = "karpenter.k8s.aws/instance-cpu"
    types = tuple(instance_type(f"m.{cpu:02d}", cpu, labels={cpus: [str(cpu)]}) for cpu in (2, 4, 8, 16))
    wanted = pod("x", "100m", required_terms=(needs((cpus, operator, [value]), (ZONE, "In", ["a"])),))
    assert solve(world(wanted, types=types)).new_nodes[0].cheapest.instance_type == got


def _tests() -> frozenset[str]:
    trees = (ast.parse(path.read_text()) for path in sorted((ROOT / "tests").rglob("*.py")))
    return frozenset(
        one.name for tree in trees for one in tree.body if isinstance(one, ast.FunctionDef) and "test_" in one.name
    )


def test_every_rule_of_the_pages_names_code_and_tests_that_there_are() -> None:
    known, missing = _tests(), []
    for _, rule, code, tests, _ in ROWS:
        for name in re.findall(r"`([^`]+)`", code):
            path, _, function = name.partition(":")
            if not (ROOT / path).is_file() or (function and f"{function}" not in (ROOT / path).read_text()):
                missing.append((rule.strip(), name))
        named = re.findall(r"`([^`]+)`", tests)
        missing += [(rule.strip(), name) for name in named or ["no test"] if f"test_{name}" not in known]
    assert missing == []
    assert len(ROWS) > 60
