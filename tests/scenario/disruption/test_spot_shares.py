"""Spot shares in the whole world: they hold while nodes are launched, interrupted and removed."""

from tests.scenario.worlds import Json, World, make_deployment, make_node_class, make_node_pool

BOTH = ("spot", "on-demand")
SHARE = {"joiner.dev/spot-share-percent": "50", "joiner.dev/on-demand-base": "2"}
CAPACITY_TYPE = "karpenter.sh/capacity-type"


def make_shared_pool(annotations: Json, after: str = "30s") -> Json:
    pool = make_node_pool(capacity=BOTH, after=after)
    return pool | {"metadata": pool["metadata"] | {"annotations": annotations}}


def list_capacity_types(world: World) -> list[str]:
    """Return the capacity type of each NodeClaim with an instance that is not deleted."""
    claims = [claim for claim in world.list_claims() if "deletionTimestamp" not in claim["metadata"]]
    return sorted(claim["metadata"]["labels"].get(CAPACITY_TYPE, "") for claim in claims)


def check_share(world: World) -> None:
    capacity_types = list_capacity_types(world)
    spot = capacity_types.count("spot")
    assert not spot or 100 * spot <= 50 * (len(capacity_types) - 2), capacity_types


def advance_checking(world: World, seconds: int) -> None:
    for _ in range(0, seconds, 5):
        world.advance_seconds(5)
        check_share(world)


def build_shared_world(replicas: int) -> World:
    """Build a settled world in which each pod needs a node of its own."""
    world = World(make_node_class(), make_shared_pool(SHARE), make_deployment(replicas, cpu="3"))
    world.wait_until_settled(replicas)
    world.advance_seconds(60)
    return world


def test_nodes_have_the_share_and_keep_it_through_interruptions() -> None:
    world = build_shared_world(6)
    assert list_capacity_types(world) == ["on-demand"] * 4 + ["spot"] * 2
    for node in world.list_nodes():
        if node["metadata"]["labels"][CAPACITY_TYPE] == "spot":
            world.cloud.instances.interrupt(world.find_instance(node).instance_id)
    advance_checking(world, 240)
    world.wait_until_settled(6)
    assert len(list_capacity_types(world)) == 6
    world.scale(10)
    world.wait_until_settled(10)
    advance_checking(world, 60)
    assert list_capacity_types(world).count("spot") == 4


def test_empty_nodes_are_removed_within_the_share_until_none_is_left() -> None:
    world = build_shared_world(8)
    assert list_capacity_types(world).count("spot") == 3
    for replicas in (5, 2, 0):
        world.scale(replicas)
        advance_checking(world, 300)
    assert list_capacity_types(world) == []


def test_pods_of_a_workload_with_a_share_are_bound_to_the_nodes_that_are_planned_for_them() -> None:
    deployment = make_deployment(10, cpu="3", annotations=SHARE)
    world = World(make_node_class(), make_shared_pool({}, after="Never"), deployment)
    world.wait_until_settled(10)
    capacity_type_by_node = {
        node["metadata"]["name"]: node["metadata"]["labels"][CAPACITY_TYPE] for node in world.list_nodes()
    }
    bound = [capacity_type_by_node[pod["spec"]["nodeName"]] for pod in world.list_running_pods()]
    assert sorted(bound) == ["on-demand"] * 6 + ["spot"] * 4
    for node, capacity_type in capacity_type_by_node.items():
        if capacity_type == "spot":
            world.cloud.instances.interrupt(world.find_instance(world.cluster.api.get("nodes", node)).instance_id)
    world.advance_seconds(240)
    world.wait_until_settled(10)
    nodes = {node["metadata"]["name"]: node["metadata"]["labels"][CAPACITY_TYPE] for node in world.list_nodes()}
    assert [nodes[pod["spec"]["nodeName"]] for pod in world.list_running_pods()].count("spot") <= 4
