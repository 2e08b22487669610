"""What disruption is given and cannot use: it is named, its own nodes stay, and the rest gets cheaper all the same."""

from typing import Any

import pytest

from shared.model.decisions.action import EvictPod
from shared.ports.world import World as Ports
from tests.scenario.worlds import (
    POOLS,
    World,
    make_deployment,
    make_node_class,
    make_node_pool,
    make_pod,
    make_pod_disruption_budget,
)

CHEAPER = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s"}
SIZES = ("m5.large", "m5.xlarge", "m5.2xlarge")


def build_two_pools(disruption: dict[str, Any]) -> World:
    """Build a world of two pools with a node each; the pool `bad` has *disruption*; both nodes become empty."""
    world = World(
        make_node_class(), make_node_pool(), make_node_pool("bad", labels={"team": "bad"}), make_deployment(2)
    )
    world.apply([make_deployment(2, "theirs", nodeSelector={"team": "bad"})])
    world.wait_until_settled(4)
    world.store(POOLS, "bad", {"spec": {"disruption": disruption}})
    world.scale(0)
    world.scale(0, "theirs")
    return world


def list_pools_of_nodes(world: World) -> list[str]:
    return [node["metadata"]["labels"]["karpenter.sh/nodepool"] for node in world.list_nodes()]


BAD_BUDGETS = {
    "invalid cron expression": (
        {"budgets": [{"nodes": "100%", "schedule": "0 25 * * *", "duration": "1h"}]},
        "spec.disruption.budgets[0]: hour '25' is not a range within 0-23",
    ),
    "an unknown reason": (
        {"budgets": [{"nodes": "0", "reasons": ["Expired"]}]},
        "spec.disruption.budgets[0]: 'Expired' is not a disruption reason: use Drifted, Empty, Underutilized",
    ),
    "more than 100%": (
        {"budgets": [{"nodes": "101%"}]},
        "spec.disruption.budgets[0]: nodes '101%' is neither a number nor a percentage up to 100%",
    ),
}


@pytest.mark.parametrize(("disruption", "words"), BAD_BUDGETS.values(), ids=BAD_BUDGETS.keys())
def test_unreadable_nodepool_budget_blocks_disruption_of_that_nodepool_until_it_is_fixed(
    disruption: dict[str, Any], words: str
) -> None:
    world = build_two_pools(disruption)
    world.wait_until(lambda: list_pools_of_nodes(world) == ["bad"])
    world.advance_seconds(180)
    assert list_pools_of_nodes(world) == ["bad"]
    assert [problem for problem in world.list_problems() if problem.startswith(f"NodePool bad: {words}")]
    assert [event for event in world.list_events("bad", "DisruptionBlocked") if words in event]
    assert world.list_errors() == []
    world.store(POOLS, "bad", {"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}})
    world.wait_until(lambda: not world.list_nodes(), 180)


class Budgeted(World):
    """A world with a budget for the whole cluster."""

    budgets_setting = ""

    def _build_world(self, function: str, environment: dict[str, str]) -> Ports:
        return super()._build_world(function, environment | {"JOINER_DISRUPTION_BUDGETS": self.budgets_setting})


def test_unreadable_cluster_budget_setting_blocks_all_disruption_until_it_is_fixed() -> None:
    world = Budgeted(make_node_class(), make_node_pool(), make_deployment(2))
    world.wait_until_settled(2)
    world.budgets_setting = '[{"nodes": "many"}]'
    world.scale(0)
    world.advance_seconds(180)
    assert len(world.list_nodes()) == 1
    words = "Setting joiner: disruption-budgets[0]: nodes 'many' is neither a number"
    assert [problem for problem in world.list_problems() if problem.startswith(words)]
    assert world.list_errors() == []
    world.budgets_setting = '[{"nodes": "1"}]'
    world.wait_until(lambda: not world.list_nodes(), 180)


def test_cluster_wide_budget_limits_disruption_across_nodepools() -> None:
    world = Budgeted(
        make_node_class(), make_node_pool("a", labels={"pool": "a"}), make_node_pool("b", labels={"pool": "b"})
    )
    world.apply(make_deployment(8, name, nodeSelector={"pool": name}) for name in ("a", "b"))
    world.wait_until_settled(16)
    assert len(world.list_nodes()) == 4
    world.budgets_setting = '[{"nodes": "1"}]'
    for name in ("a", "b"):
        world.scale(0, name)
    deleting_counts: set[int] = set()

    def are_nodes_gone() -> bool:
        deleting_counts.add(sum("deletionTimestamp" in claim["metadata"] for claim in world.list_claims()))
        return not world.list_nodes()

    world.wait_until(are_nodes_gone, 900)
    assert deleting_counts == {0, 1}


def test_pdb_that_selects_a_whole_namespace_is_reported_and_blocks_only_that_namespace() -> None:
    pools = [make_node_pool(name, labels={"team": name}, types=SIZES, disruption=CHEAPER) for name in ("held", "free")]
    world = World(make_node_class(), *pools, make_deployment(8, nodeSelector={"team": "held"}))
    free_deployment = make_deployment(8, "theirs", nodeSelector={"team": "free"})
    free_deployment["metadata"]["namespace"] = "elsewhere"
    guard = make_pod_disruption_budget("everything", maxUnavailable=0)
    guard["spec"]["selector"] = {}
    world.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}}, free_deployment, guard])
    world.wait_until(lambda: len(world.list_nodes()) == 2 and not world.list_unbound_pods())
    world.advance_seconds(60)
    world.scale(2)
    world.cluster.scale("Deployment", "elsewhere", "theirs", 2)
    world.wait_until(lambda: sorted(list_instance_types(world)) == [("free", "m5.large"), ("held", "m5.2xlarge")], 400)
    world.advance_seconds(180)
    assert sorted(list_instance_types(world)) == [("free", "m5.large"), ("held", "m5.2xlarge")]
    assert {eviction.namespace for eviction in world.list_done_actions(EvictPod)} == {"elsewhere"}
    words = "spec.selector is empty, so it selects every pod of namespace default: 2 pods cannot be evicted now"
    assert [
        problem
        for problem in world.list_problems()
        if problem.startswith(f"PodDisruptionBudget default/everything: {words}")
    ]
    [held_node] = [
        node["metadata"]["name"] for node in world.list_nodes() if node["metadata"]["labels"]["team"] == "held"
    ]
    blocked = world.list_events(held_node, "DisruptionBlocked")
    assert any("PodDisruptionBudget default/everything blocks the eviction of" in event for event in blocked)
    world.cluster.api.delete("poddisruptionbudgets.policy", "everything", "default")
    world.wait_until(lambda: sorted(list_instance_types(world)) == [("free", "m5.large"), ("held", "m5.large")], 400)


def list_instance_types(world: World) -> list[tuple[str, str]]:
    labels = [node["metadata"]["labels"] for node in world.list_nodes()]
    return [
        (node_labels.get("team", ""), node_labels.get("node.kubernetes.io/instance-type", "")) for node_labels in labels
    ]


def test_pod_without_an_owner_gets_an_event_before_its_node_is_removed() -> None:
    world = World(
        make_node_class(), make_node_pool(types=SIZES, disruption=CHEAPER), make_deployment(7), make_pod("alone")
    )
    world.wait_until_settled(8)
    world.scale(1)
    world.wait_until(lambda: bool(world.list_events("alone", "WillNotComeBack")))
    assert "alone" in {running_pod["metadata"]["name"] for running_pod in world.list_running_pods()}
    world.wait_until(lambda: "m5.large" in {one.instance_type for one in world.list_active_instances()}, 300)
    world.wait_until_settled(1)
    assert world.list_errors() == []


def test_node_without_a_price_is_reported_and_removed_only_when_empty() -> None:
    world = World(make_node_class(), make_node_pool(types=SIZES, disruption=CHEAPER), make_deployment(8))
    world.wait_until_settled(8)
    [node] = world.list_nodes()
    label = {"node.kubernetes.io/instance-type": "m5.mystery"}
    world.cluster.api.patch("nodes", node["metadata"]["name"], {"metadata": {"labels": label}})
    world.scale(2)
    world.advance_seconds(240)
    assert [instance.instance_type for instance in world.list_active_instances()] == ["m5.2xlarge"]
    assert [
        problem
        for problem in world.list_problems()
        if problem.startswith("InstanceType m5.mystery: has no price as on-demand in ")
    ]
    world.scale(0)
    world.wait_until(lambda: not world.list_nodes(), 240)
    assert world.list_errors() == []
