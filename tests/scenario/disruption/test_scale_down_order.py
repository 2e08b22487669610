"""Scale-down in the whole world: with pod deletion costs, nodes become empty without evictions."""

from functools import cache
from typing import Any

from shared.model.core.labels import OWN_DELETION_COST, POD_DELETION_COST
from shared.model.decisions.action import EvictPod, SetDeletionCost
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import Json, World, make_deployment, make_node_class, make_node_pool

SIZES = ("m5.large", "m5.xlarge")
SERVICES = ("api", "shop", "web")


@cache
def synthesize_stack(setting: str, **settings: str) -> dict[str, Any]:
    return synthesize_template(settings=ACTIVE_SETTINGS | {"pod-deletion-cost": setting} | settings)


def build_evening_world(setting: str, *objects: Json, policy: str = "WhenEmpty") -> World:
    """Return a world in which three services with ten pods each run on several nodes."""
    pool = make_node_pool(types=SIZES, disruption={"consolidationPolicy": policy}, after="30s")
    services = [make_deployment(10, name, cpu="700m") for name in SERVICES]
    world = World(make_node_class(), pool, *services, *objects, types=SIZES, template=synthesize_stack(setting))
    world.wait_until_settled(30)
    world.advance_seconds(300)
    return world


def scale_services_down(world: World) -> None:
    """Scale each service from ten pods to four, one pod at a time."""
    for replicas in range(9, 3, -1):
        for name in SERVICES:
            world.scale(replicas, name)
            world.advance_seconds(40)
    world.advance_seconds(300)


def list_costs(world: World) -> dict[str, set[str]]:
    """Return the deletion costs by node."""
    costs: dict[str, set[str]] = {}
    for pod in world.list_running_pods():
        annotations = pod["metadata"].get("annotations") or {}
        costs.setdefault(pod["spec"]["nodeName"], set()).add(annotations.get(POD_DELETION_COST, ""))
    return costs


def test_services_that_scale_down_empty_their_nodes_without_evictions() -> None:
    node_counts = {}
    for setting in ("off", "on"):
        world = build_evening_world(setting)
        scale_services_down(world)
        assert len(world.list_running_pods()) == 12
        assert world.list_done_actions(EvictPod) == []
        node_counts[setting] = len(world.list_nodes())
    assert node_counts["on"] <= node_counts["off"] - 2


def test_pods_of_one_node_have_one_deletion_cost_and_patches_stop() -> None:
    world = build_evening_world("on")
    costs = list_costs(world)
    assert len(costs) > 1
    assert all(len(node_costs) == 1 and node_costs != {""} for node_costs in costs.values())
    patched_count = len(world.list_done_actions(SetDeletionCost))
    world.advance_seconds(600)
    assert len(world.list_done_actions(SetDeletionCost)) == patched_count


def test_deletion_cost_of_a_user_is_kept() -> None:
    world = build_evening_world("on")
    pod = next(pod for pod in world.list_running_pods() if OWN_DELETION_COST in pod["metadata"]["annotations"])
    name = pod["metadata"]["name"]
    world.cluster.api.patch("pods", name, {"metadata": {"annotations": {POD_DELETION_COST: "9"}}}, "default")
    world.advance_seconds(300)
    assert world.cluster.api.get("pods", name, "default")["metadata"]["annotations"][POD_DELETION_COST] == "9"
    owner = pod["metadata"]["ownerReferences"][0]["uid"]
    siblings = [
        other["metadata"].get("annotations") or {}
        for other in world.list_running_pods()
        if other["metadata"]["ownerReferences"][0]["uid"] == owner and other["metadata"]["name"] != name
    ]
    assert [annotations for annotations in siblings if POD_DELETION_COST in annotations] == []


def test_no_deletion_cost_is_set_while_disruption_is_only_planned() -> None:
    settings = {"disruption": "plan"}
    world = World(
        make_node_class(), make_node_pool(types=SIZES), types=SIZES, template=synthesize_stack("on", **settings)
    )
    world.apply([make_deployment(12, cpu="700m")])
    world.wait_until_settled(12)
    world.advance_seconds(300)
    assert len(world.list_nodes()) > 1
    assert world.list_done_actions(SetDeletionCost) == []
