"""A plan is one that kube-scheduler can carry out: told of it, the embedded one has a place for every pod.

The nodes are made as their cheapest offering has them, and opened all at once after every pod was nominated.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shared.model.core.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, OS, ZONE
from shared.model.core.resources import format_quantities
from shared.model.core.taints import Taint
from shared.model.decisions.placement import NewNodeClaim, Placement, SchedulingOptions
from shared.model.karpenter.node_pool import NodePool
from tests.property.scheduling.test_kube_scheduler_laws import build_model_pod, build_pod_spec
from tests.support.catalogues import make_cluster_snapshot, make_instance_type, make_node_pool
from tests.support.cluster_objects import Bench
from tests.support.hypothesis_profiles import limit_examples
from tests.support.snapshot_decisions import solve

TYPES = tuple(make_instance_type(f"m.{cpu:02d}", cpu, pods=8, price=cpu * 0.05) for cpu in (2, 4, 16))
BY_NAME = {one.name: one for one in TYPES}
TEAM = Taint(key="team", effect="NoSchedule", value="a")
POOLS = (make_node_pool("team", taints=(TEAM,), weight=1), make_node_pool())
CLOSED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
PODS = st.lists(
    st.tuples(
        st.sampled_from(("100m", "700m", "1500m", "3")),
        st.sampled_from(("64Mi", "1Gi", "6Gi")),
        st.sampled_from(("web", "db")),
        st.sampled_from(("", "", "", "spread", "near", "far", "port", "tolerant", "zone")),
    ),
    min_size=1,
    max_size=14,
).map(lambda pods: [(cpu, memory, f"{app}-{rule or 'plain'}", rule) for cpu, memory, app, rule in pods])
"""All pods of an app have its rule, as those of a Deployment do: who is counted and not bound may come in any order."""


def build_taints(node: NewNodeClaim) -> list[dict[str, str]]:
    return [{"key": TEAM.key, "value": TEAM.value, "effect": TEAM.effect}] if node.node_pool == "team" else []


def build_labels(node: NewNodeClaim) -> dict[str, str]:
    choice = node.cheapest
    requirement_labels = {
        item.key: item.choose_value() for item in node.requirements if item.values and not item.complement
    }
    fixed = {INSTANCE_TYPE: choice.instance_type, ZONE: choice.zone, CAPACITY_TYPE: choice.capacity_type}
    return requirement_labels | {ARCH: "amd64", OS: "linux", NODEPOOL: node.node_pool} | fixed


def schedule_with_plan(placement: Placement, pods: list[tuple[str, str, str, str]]) -> Bench:
    """Nominate the nodes of the plan for the embedded kube-scheduler and let it schedule."""
    bench = Bench()
    for node in placement.new_nodes:
        room = format_quantities(BY_NAME[node.cheapest.instance_type].allocatable)
        allocatable: dict[str, Any] = {name: room[name] for name in ("cpu", "memory", "pods")}
        labels, zone = build_labels(node), node.cheapest.zone
        bench.create_node(node.name, zone=zone, labels=labels, taints=[*build_taints(node), CLOSED], **allocatable)
    for number, pod_fields in enumerate(pods):
        metadata = {"name": f"p{number:02d}", "namespace": "default", "labels": {"app": pod_fields[2]}}
        bench.api.create("pods", {"metadata": metadata, "spec": build_pod_spec(*pod_fields)})
    bench.advance_seconds()
    for node in placement.new_nodes:
        for name in node.pods:
            nomination = {"status": {"nominatedNodeName": node.name}}
            bench.api.patch("pods", name.partition("/")[2], nomination, "default", "status")
    for node in placement.new_nodes:
        bench.api.patch("nodes", node.name, {"spec": {"taints": build_taints(node)}})
    bench.advance_seconds(120)
    return bench


@limit_examples(40)
@given(PODS, st.sampled_from(("Priced", "Greedy")), st.sampled_from((POOLS, POOLS[1:])))
def test_kube_scheduler_binds_exactly_the_pods_that_the_plan_places(
    pods: list[tuple[str, str, str, str]], packing: str, pools: tuple[NodePool, ...]
) -> None:
    cluster = make_cluster_snapshot(
        *(build_model_pod(number, *pod_fields) for number, pod_fields in enumerate(pods)), types=TYPES, node_pools=pools
    )
    placement = solve(cluster, options=SchedulingOptions(packing="Greedy" if packing == "Greedy" else "Priced"))
    bench = schedule_with_plan(placement, pods)
    bound = {pod.name for pod in cluster.pods if bench.get_node_name(pod.meta.name)}
    assert bound == {name for node in placement.new_nodes for name in node.pods}
