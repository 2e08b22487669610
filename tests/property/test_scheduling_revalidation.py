"""A plan is one that kube-scheduler can carry out: told of it, the embedded one has a place for every pod.

The nodes are made as their cheapest offering has them, and opened all at once after every pod was nominated.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.model.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, OS, ZONE
from shared.model.nodepools import NodePool
from shared.model.resources import quantities_from
from shared.model.taints import Taint
from shared.scheduling.placement import NewNode, Options, Placement
from shared.scheduling.solve import solve
from tests.property.test_scheduling_replay_laws import manifest, modelled
from tests.unit.catalogues import instance_type, pool, world
from tests.unit.cluster_objects import Bench

TYPES = tuple(instance_type(f"m.{cpu:02d}", cpu, pods=8, price=cpu * 0.05) for cpu in (2, 4, 16))
BY_NAME = {one.name: one for one in TYPES}
TEAM = Taint(key="team", effect="NoSchedule", value="a")
POOLS = (pool("team", taints=(TEAM,), weight=1), pool())
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


def taints_of(node: NewNode) -> list[dict[str, str]]:
    return [{"key": TEAM.key, "value": TEAM.value, "effect": TEAM.effect}] if node.node_pool == "team" else []


def labels_of(node: NewNode) -> dict[str, str]:
    choice = node.cheapest
    own = {item.key: item.any_value() for item in node.requirements if item.values and not item.complement}
    fixed = {INSTANCE_TYPE: choice.instance_type, ZONE: choice.zone, CAPACITY_TYPE: choice.capacity_type}
    return own | {ARCH: "amd64", OS: "linux", NODEPOOL: node.node_pool} | fixed


def carried_out(found: Placement, pods: list[tuple[str, str, str, str]]) -> Bench:
    """Let the embedded kube-scheduler be told of the plan, and do what it likes."""
    bench = Bench()
    for node in found.new_nodes:
        room = quantities_from(BY_NAME[node.cheapest.instance_type].allocatable)
        some: dict[str, Any] = {name: room[name] for name in ("cpu", "memory", "pods")}
        labels, zone = labels_of(node), node.cheapest.zone
        bench.node(node.name, zone=zone, labels=labels, taints=[*taints_of(node), CLOSED], **some)
    for number, one in enumerate(pods):
        metadata = {"name": f"p{number:02d}", "namespace": "default", "labels": {"app": one[2]}}
        bench.api.create("pods", {"metadata": metadata, "spec": manifest(*one)})
    bench.settle()
    for node in found.new_nodes:
        for name in node.pods:
            told = {"status": {"nominatedNodeName": node.name}}
            bench.api.patch("pods", name.partition("/")[2], told, "default", "status")
    for node in found.new_nodes:
        bench.api.patch("nodes", node.name, {"spec": {"taints": taints_of(node)}})
    bench.settle(120)
    return bench


@settings(max_examples=40)
@given(PODS, st.sampled_from(("Priced", "Greedy")), st.sampled_from((POOLS, POOLS[1:])))
def test_kube_scheduler_binds_whom_the_plan_places_and_nobody_else(
    pods: list[tuple[str, str, str, str]], packing: str, pools: tuple[NodePool, ...]
) -> None:
    cluster = world(*(modelled(number, *one) for number, one in enumerate(pods)), types=TYPES, node_pools=pools)
    found = solve(cluster, options=Options(packing="Greedy" if packing == "Greedy" else "Priced"))
    bench = carried_out(found, pods)
    bound = {one.name for one in cluster.pods if bench.node_of(one.meta.name)}
    assert bound == {name for node in found.new_nodes for name in node.pods}
