"""The main job, in real time, on a real control plane: what kube-scheduler makes of what Joiner plans."""

from collections.abc import Callable, Iterator

import pytest

from shared.model.core.units import parse_quantity
from sim.playground.kubectl import PODS_PATH
from sim.world.measurements import is_finished, is_running
from tests.controlplane.fixtures import FUNCTIONS
from tests.controlplane.plane import ControlPlane
from tests.kubernetes.arena import CPU_BY_DAEMON, ONE_MINUTE, ONE_SECOND, POOLS, Arena, count_on, is_ready, parse_table
from tests.kubernetes.manifests import (
    Object,
    build_tier_pod_fields,
    make_deployment,
    make_node_pool,
    make_pod_disruption_budget,
    make_zone_spread,
)
from tests.scenario.promised import MAX_COST_RATIO, record_promise

BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
MAX_REPLANNED_SHARE = 0.05
"""Upper limit for the share of pods planned twice.

kube-scheduler drops a hint whenever it cannot schedule that pod, which happens more often on a slow machine. Without
hints the share is 1 in 11; docs/benchmarks.md has the share on an idle machine.
"""
NODE_GRACE_SECONDS = 600
"""Seconds without a heartbeat after which a node is lost; long enough that no node is lost on a busy machine."""
pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]


@pytest.fixture
def arena() -> Iterator[Arena]:
    with ControlPlane(users=(FUNCTIONS,), node_grace_seconds=NODE_GRACE_SECONDS) as plane:
        started_arena = Arena(plane)
        yield started_arena
        assert not [call.error for call in started_arena.reporter.failed_invocations]


@pytest.fixture
def haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that pods were planned on is spared for two minutes, wanted or not; here for half a minute."""
    monkeypatch.setattr("shared.decide.provisioning.pod_nominations.NOMINATION_TTL", ONE_MINUTE / 2)


@pytest.mark.usefixtures("haste")
def test_demo_session_runs_on_a_real_control_plane(
    arena: Arena, record_property: Callable[[str, object], None]
) -> None:
    numbers: dict[str, float] = {}
    arena.desk.apply(make_node_pool("default"))
    arena.desk.apply(make_deployment("web", 1, "500m", "512Mi"))
    arena.wait_until_scheduled("web", 1)
    numbers["1 pod"] = arena.wait_until(arena.build_running_check(1), "one pod runs on the managed node")
    assert not arena.reporter.launched_count

    arena.desk.apply(make_deployment("filler", 1, "1", "1Gi", nodeSelector={"eks.amazonaws.com/nodegroup": "system"}))
    arena.wait_until(arena.build_running_check(1, "filler"), "the managed node is full")
    numbers["5 pods"] = scale_web(arena, 5)
    assert (arena.reporter.launched_count, len(arena.list_nodes())) == (1, 1)
    arena.wait_until(arena.are_daemons_running_everywhere, "its daemons run")
    assert_claim_requests_pods_and_daemons(arena, 500)

    numbers["20 pods"] = scale_web(arena, 20)
    assert (arena.reporter.launched_count, len(arena.list_nodes())) == (2, 2)
    assert not arena.count_repeated_plans()
    arena.assert_no_node_is_overfull()
    assert_kubectl_columns(arena)

    claim_names = {claim["metadata"]["name"] for claim in arena.list_claims()}
    numbers["expiry"] = measure_expiration(arena)
    assert claim_names <= {claim["metadata"]["name"] for claim in arena.list_claims()}
    arena.wait_until(arena.build_running_check(20, "web"), "nothing has become of the others")

    arena.desk.scale("Deployment", "guest", 0)
    arena.desk.scale("Deployment", "web", 0)
    numbers["0 pods"] = arena.wait_until(
        lambda: not arena.list_nodes() and not arena.list_claims(), "no managed node is left"
    )
    arena.wait_until(lambda: not arena.playground.list_active_instances(), "no instance is left")
    assert arena.reporter.launched_count == arena.reporter.terminated_count

    launched = arena.reporter.launched_count
    arena.clear_plans()
    numbers["8 pods"] = scale_web(arena, 8)
    assert arena.reporter.launched_count - launched == 1
    [doomed] = [claim["metadata"]["name"] for claim in arena.list_claims()]
    struck = arena.playground.find_busiest_node()
    arena.playground.cloud.instances.interrupt(arena.playground.find_instance_id(struck))
    arena.wait_until(
        lambda: (
            "SpotInterrupted" in arena.run_kubectl("get", "events", f"--field-selector=involvedObject.name={doomed}")
        ),
        "`kubectl get events` tells of the interruption",
    )

    def has_moved() -> bool:
        return (
            struck not in [pod["spec"].get("nodeName") for pod in arena.list_pods("web")]
            and arena.build_running_check(8, "web")()
        )

    numbers["interruption"] = arena.wait_until(has_moved, "the pods of the interrupted node run elsewhere")
    assert not arena.list_pods_planned_while_covered()
    arena.wait_until(arena.are_instances_nodes, "its instance, its NodeClaim and its Node are gone")
    record_property(
        "told",
        f"main job, session: {format_numbers(numbers)}; {arena.reporter.launched_count} launches, "
        f"{arena.seconds:.0f} s",
    )


def test_burst_of_a_thousand_pods_is_planned_once(
    arena: Arena, record_property: Callable[[str, object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers: dict[str, float] = {}
    promised = record_promise(monkeypatch)
    arena.desk.apply_all([make_node_pool("default"), make_node_pool("side", weight=50, tier="side")])
    arena.wait_until(lambda: all(is_ready(pool) for pool in arena.desk.list_objects(POOLS)), "the NodePools are ready")
    arena.desk.apply_all(
        [
            make_deployment("small", 500, "900m", "3100Mi"),
            make_deployment("large", 500, "3500m", "28Gi"),
            make_deployment(
                "spread",
                30,
                "1",
                "1Gi",
                topologySpreadConstraints=[make_zone_spread("spread")],
                **build_tier_pod_fields("side"),
            ),
            make_pod_disruption_budget("spread", 5),
        ]
    )
    numbers["burst"] = arena.wait_until(arena.build_running_check(1030), "all pods run", 3 * ONE_SECOND)
    second = arena.list_second_launches()
    numbers |= {
        "launches": arena.reporter.launched_count,
        "second launches": len(second),
        "pods planned twice": len(arena.count_repeated_plans()),
    }
    paid, planned = arena.playground.cloud.compute_hourly_cost(), promised.usd_per_hour
    assert arena.reporter.launched_count <= len(arena.reporter.node_claim_actions), (
        "CreateFleet started more than was planned"
    )
    assert not arena.list_pods_planned_while_covered()
    arena.assert_no_node_is_overfull()
    zones = arena.count_planned_zones("spread")
    assert len(zones) == 3
    assert max(zones.values()) - min(zones.values()) <= 1
    arena.wait_until(arena.are_daemons_running_everywhere, "all daemons run", 2 * ONE_SECOND)
    realised = arena.describe_plan_differences()
    arena.wait_until(arena.are_instances_nodes, "every instance is a node", 2 * ONE_SECOND)
    launched = arena.reporter.launched_count
    arena.advance(12 * ONE_SECOND)
    assert arena.reporter.launched_count == launched, "something was launched though no pod waits"

    numbers["drain"] = drain_guarded(arena)
    arena.wait_until(arena.build_running_check(1030), "all pods run again", 3 * ONE_SECOND)

    arena.desk.apply(make_node_pool("late", tier="side"))
    arena.wait_until(lambda: all(is_ready(pool) for pool in arena.desk.list_objects(POOLS)), "the NodePool is ready")
    arena.desk.delete(make_node_pool("side"))
    numbers["deletion of a pool"] = arena.wait_until(
        lambda: not arena.list_nodes("side") and arena.build_running_check(30, "spread")(), "its pods run elsewhere"
    )
    assert {node["metadata"]["labels"]["tier"] for node in arena.list_nodes("late")} == {"side"}
    assert {pool["metadata"]["name"] for pool in arena.desk.list_objects(POOLS)} == {"default", "late"}
    arena.wait_until(arena.build_running_check(1030), "all pods run at the end", 3 * ONE_SECOND)
    arena.wait_until(arena.are_instances_nodes, "every instance is a node at the end", 2 * ONE_SECOND)
    record_property(
        "told",
        f"main job, burst: {format_numbers(numbers)}; {arena.reporter.launched_count} launches, {arena.seconds:.0f} s; "
        f"{planned:.3f} $/h planned, {paid:.3f} paid; {realised}",
    )
    assert paid > 0
    max_replanned_pods = 1030 * MAX_REPLANNED_SHARE
    assert numbers["pods planned twice"] <= max_replanned_pods, (
        f"places went to other pods: {format_numbers(numbers)}\n{realised}"
    )
    if paid > MAX_COST_RATIO * planned:
        pytest.xfail(f"EC2 takes dearer types of those that claims list: {paid:.3f} $/h for {planned:.3f} planned")


def scale_web(arena: Arena, replicas: int) -> float:
    """Scale `web` to *replicas* pods, invoke Joiner when all exist, and return the seconds until they run."""
    arena.desk.scale("Deployment", "web", replicas)
    arena.wait_until_scheduled("web", replicas)
    return arena.wait_until(arena.build_running_check(replicas, "web"), f"{replicas} pods run")


def measure_expiration(arena: Arena) -> float:
    """Run a pod on a node that expires after a minute and return the seconds until the pod runs on another node."""
    arena.desk.apply(make_node_pool("brief", expire_after="60s", tier="brief"))
    arena.desk.apply(make_deployment("guest", 1, "15", "1Gi", **build_tier_pod_fields("brief")))
    node_names: list[str] = []

    def has_had_two_homes() -> bool:
        node_names.extend(pod["spec"]["nodeName"] for pod in arena.list_pods("guest") if is_running(pod))
        return len(set(node_names)) > 1

    took = arena.wait_until(has_had_two_homes, "the pod of the expired node runs elsewhere")
    arena.wait_until(
        lambda: node_names[0] not in [node["metadata"]["name"] for node in arena.list_nodes()],
        "the expired node is gone",
    )
    assert any("expired" in line for line in arena.timeline_lines)
    return took


def assert_claim_requests_pods_and_daemons(arena: Arena, cpu_milli: int) -> None:
    """Fail unless the only NodeClaim asks for the CPU of its pods, *cpu_milli* each, and that of every DaemonSet."""
    [planned] = arena.reporter.node_claim_actions
    [claim] = arena.list_claims()
    requested_cpu_milli = parse_quantity(claim["spec"]["resources"]["requests"]["cpu"], per_unit=1000)
    daemons = sum(parse_quantity(cpu, per_unit=1000) for cpu in CPU_BY_DAEMON.values())
    assert requested_cpu_milli == len(planned.pods) * cpu_milli + daemons


def assert_kubectl_columns(arena: Arena) -> None:
    """Fail unless kubectl prints the columns that Karpenter users expect, with the values of the objects."""
    arena.wait_until(lambda: all(is_ready(claim) for claim in arena.list_claims()), "the NodeClaims are Ready")
    claims = {claim["metadata"]["name"]: claim for claim in arena.list_claims()}
    rows = {cells["NAME"]: cells for cells in parse_table(arena.run_kubectl("get", "nodeclaims", "--output=wide"))}
    assert {name: cells.pop("AGE") != "" and "DRIFTED" in cells for name, cells in rows.items()} == dict.fromkeys(
        claims, True
    )
    for name, row in rows.items():
        assert {key: value for key, value in row.items() if key != "DRIFTED"} == build_expected_columns(claims[name])
        events = arena.run_kubectl("describe", "nodeclaim", name).partition("Events:")[2]
        assert all(f"Normal  {reason} " in events for reason in ("Registered", "Initialized", "Ready"))
    [node_class_row] = parse_table(arena.run_kubectl("get", "ec2nodeclasses", "--output=wide"))
    assert node_class_row.pop("AGE")
    assert node_class_row == {"NAME": "default", "READY": "True", "ROLE": "joiner-node"}
    cpus = str(sum(int(node["status"]["capacity"]["cpu"]) for node in arena.list_nodes()))
    pool = {"NAME": "default", "NODECLASS": "default", "NODES": "2", "READY": "True", "WEIGHT": "1", "CPU": cpus}

    def is_shown() -> bool:
        [pool_row] = parse_table(arena.run_kubectl("get", "nodepools", "--output=wide"))
        return pool_row.pop("AGE") != "" and pool_row.pop("MEMORY") != "" and pool_row == pool

    arena.wait_until(is_shown, "`kubectl get nodepools` shows what the NodePool has")


def build_expected_columns(claim: Object) -> dict[str, str]:
    """Build the columns that kubectl prints for *claim*, except for its age and drift."""
    labels, status = claim["metadata"]["labels"], claim["status"]
    return {
        "NAME": claim["metadata"]["name"],
        "TYPE": labels["node.kubernetes.io/instance-type"],
        "CAPACITY": "spot",
        "ZONE": labels["topology.kubernetes.io/zone"],
        "NODE": status["nodeName"],
        "READY": "True",
        "IMAGEID": status["imageID"],
        "ID": status["providerID"],
        "NODEPOOL": "default",
        "NODECLASS": "default",
    }


def drain_guarded(arena: Arena) -> float:
    """Delete the NodeClaim of a node with budgeted pods and return the seconds until the node is gone.

    Fail if fewer pods than the budget requires were running at any moment, or if a pod left without an eviction: only
    evictions go through the budget check of the API server, deletions do not.
    """
    guarded = max(arena.list_nodes("default"), key=lambda node: count_on(node, arena.list_pods("small")))
    name, pods = guarded["metadata"]["name"], count_on(guarded, arena.list_pods("small"))
    allowed = max(1, pods // 3)
    assert pods > allowed, "no node has pods enough for a budget to hold some back"
    arena.desk.apply(make_pod_disruption_budget("small", allowed))
    arena.wait_until(lambda: count_allowed_disruptions(arena) == allowed, "the budget is known")
    [claim] = [
        candidate for candidate in arena.list_claims() if (candidate.get("status") or {}).get("nodeName") == name
    ]
    fewest, reason_by_pod = [500], dict[str, str]()

    def is_drained() -> bool:
        pods = [pod for pod in arena.desk.list_objects(PODS_PATH) if pod["metadata"]["labels"].get("app") == "small"]
        fewest[0] = min(fewest[0], sum(is_running(pod) for pod in pods))
        leaving = [pod for pod in pods if is_finished(pod) and pod["spec"].get("nodeName") == name]
        reason_by_pod.update({pod["metadata"]["name"]: get_disruption_reason(pod) for pod in leaving})
        return name not in [node["metadata"]["name"] for node in arena.list_nodes()]

    arena.desk.delete(claim)
    took = arena.wait_until(is_drained, "the node is drained and gone")
    assert fewest[0] >= 500 - allowed, f"the budget of `small` allows {allowed} of 500"
    assert set(reason_by_pod.values()) == {"EvictionByEvictionAPI"}
    return took


def get_disruption_reason(pod: Object) -> str:
    return next(
        (condition["reason"] for condition in pod["status"]["conditions"] if condition["type"] == "DisruptionTarget"),
        "",
    )


def count_allowed_disruptions(arena: Arena) -> int:
    [guard] = [
        budget_object
        for budget_object in arena.desk.list_objects(BUDGETS)
        if budget_object["metadata"]["name"] == "small"
    ]
    return int((guard.get("status") or {}).get("disruptionsAllowed", 0))


def format_numbers(numbers: dict[str, float]) -> str:
    return ", ".join(f"{name} {number:.0f}" for name, number in numbers.items())
