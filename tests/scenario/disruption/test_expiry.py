"""Expiry and upgrades in the whole world: what is old goes, busy or not, and what is there is used first."""

from datetime import timedelta

from shared.model.decisions.action import DeleteObject
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool, make_pod_disruption_budget

OLD = {"expireAfter": "20m"}


def list_nodes_by_age(world: World) -> list[str]:
    """Return the names of the nodes, the oldest first."""
    created_nodes = sorted(
        (node["metadata"]["creationTimestamp"], node["metadata"]["name"]) for node in world.list_nodes()
    )
    return [name for _, name in created_nodes]


def test_expired_node_with_protected_pods_drains_only_after_its_termination_grace_period() -> None:
    stays = {"karpenter.sh/do-not-disrupt": "true"}
    world = World(
        make_node_class(),
        make_node_pool(template=OLD | {"terminationGracePeriod": "10m"}, disruption={"budgets": [{"nodes": "0"}]}),
        make_deployment(2, annotations=stays),
        make_pod_disruption_budget(maxUnavailable=0),
    )
    world.wait_until_settled(2)
    [old] = list_nodes_by_age(world)
    born = world.clock.get_time()
    world.wait_until(
        lambda: bool([one for one in world.list_done_actions(DeleteObject) if one.message == "expired"]), 1400
    )
    assert timedelta(minutes=19) <= world.clock.get_time() - born <= timedelta(minutes=22)
    world.advance_seconds(300)
    assert old in list_nodes_by_age(world)
    assert len(world.list_running_pods()) == 2
    world.wait_until(lambda: old not in list_nodes_by_age(world), 600)
    world.wait_until_settled(2)


def test_pods_of_an_expired_node_move_to_free_capacity_on_existing_nodes() -> None:
    world = World(make_node_class(), make_node_pool(template=OLD), make_deployment(4))
    world.wait_until_settled(4)
    world.advance_seconds(600)
    world.scale(6)
    world.wait_until_settled(6)
    first, second = list_nodes_by_age(world)
    for pod in [running_pod for running_pod in world.list_running_pods() if running_pod["spec"]["nodeName"] == first][
        :2
    ]:
        world.cluster.api.patch("pods", pod["metadata"]["name"], {"metadata": {"annotations": COST}}, "default")
    world.scale(4)
    world.wait_until_settled(4)
    assert {pod["spec"]["nodeName"] for pod in world.list_running_pods()} == {first, second}
    launched = len(world.launched)
    world.wait_until(lambda: list_nodes_by_age(world) == [second], 1400)
    world.wait_until_settled(4)
    assert {pod["spec"]["nodeName"] for pod in world.list_running_pods()} == {second}
    assert len(world.launched) == launched == 2


COST = {"controller.kubernetes.io/pod-deletion-cost": "-100"}


def test_expiry_jitter_gives_nodes_launched_together_different_expiration_times() -> None:
    node_pool = make_node_pool(template=OLD)
    node_pool["metadata"]["annotations"] = {"joiner.dev/expiry-jitter-percent": "50"}
    world = World(make_node_class(), node_pool, make_deployment(12))
    world.wait_until_settled(12)
    assert len(world.list_nodes()) == 3
    assert len({claim["spec"]["expireAfter"] for claim in world.list_claims()}) == 3


def test_control_plane_upgrade_replaces_nodes_within_the_disruption_budget() -> None:
    world = World(make_node_class(), make_node_pool(disruption={"budgets": [{"nodes": "1"}]}), make_deployment(12))
    world.wait_until_settled(12)
    world.advance_seconds(60)
    before = set(list_nodes_by_age(world))
    assert len(before) == 3
    world.cloud.upgrade_cluster("1.35")
    deleting_counts: set[int] = set()

    def are_nodes_renewed() -> bool:
        deleting_counts.add(sum("deletionTimestamp" in claim["metadata"] for claim in world.list_claims()))
        return not before & set(list_nodes_by_age(world))

    world.wait_until(are_nodes_renewed, 3600)
    world.wait_until_settled(12)
    assert max(deleting_counts) == 1
