"""Minimum age and canary of EC2NodeClasses in a simulated account: new images are proven, or rolled back."""

from collections import Counter
from datetime import timedelta
from typing import Any

from shared.model.core.labels import CANARY, CANARY_STATE, IMAGE_MINIMUM_AGE
from sim.fault_tap import PortCall
from tests.scenario.worlds import CLASSES, World, make_deployment, make_node_class, make_node_pool

SOAK = timedelta(minutes=15)


def build_world(annotations: dict[str, str], *, nodes: int = 4, budget: str = "1") -> World:
    """Return a world with *nodes* nodes of one EC2NodeClass with *annotations*."""
    node_class = make_node_class()
    node_class["metadata"]["annotations"] = annotations
    pool = make_node_pool(types=("m5.xlarge",), disruption={"budgets": [{"nodes": budget}]})
    world = World(node_class, pool, make_deployment(4 * nodes))
    world.wait_until_settled(4 * nodes)
    world.advance_seconds(60)
    assert len(world.list_nodes()) == nodes
    return world


def list_images(world: World) -> list[str]:
    """Return the image of each running instance, sorted."""
    return sorted(instance.image_id for instance in world.list_active_instances())


def read_status_images(world: World) -> set[str]:
    return {image["id"] for image in world.cluster.api.get(CLASSES, "default")["status"]["amis"]}


def count_new_nodes(world: World, old_image: str) -> int:
    return sum(image != old_image for image in list_images(world))


def annotate(world: World, key: str, value: str) -> None:
    world.cluster.api.patch(CLASSES, "default", {"metadata": {"annotations": {key: value}}})


def find_new_claim(world: World, old_image: str) -> Any:
    [claim] = [claim for claim in world.list_claims() if claim["status"].get("imageID") not in (None, old_image)]
    return claim


def test_new_image_is_used_for_all_nodes_after_its_canary_stayed_healthy() -> None:
    world = build_world({CANARY: "nodes=1 soak=15m"})
    [old_image] = set(list_images(world))
    world.cloud.release_amis()
    world.wait_until(lambda: count_new_nodes(world, old_image) == 1, 900)
    world.advance_time(SOAK - timedelta(minutes=2))
    assert count_new_nodes(world, old_image) == 1
    assert old_image in read_status_images(world)
    assert world.get_condition(CLASSES, "default", "CanarySucceeded")[:2] == ("Unknown", "CanaryRunning")
    world.scale(20)
    world.wait_until_settled(20)
    assert count_new_nodes(world, old_image) == 1
    world.wait_until(lambda: old_image not in list_images(world), 2400)
    assert old_image not in read_status_images(world)
    assert world.get_condition(CLASSES, "default", "CanarySucceeded")[0] == "True"
    assert any("is used for all nodes" in event for event in world.list_events("default", "CanaryPassed"))
    assert not world.list_errors()


def test_image_whose_nodes_do_not_stay_ready_is_rejected_and_rolled_back() -> None:
    # A node that is not Ready counts against the budget, as in Karpenter: a budget of 1 would not allow a replacement.
    world = build_world({CANARY: "nodes=1 soak=15m"}, budget="2")
    [old_image] = set(list_images(world))
    world.cloud.release_amis()
    world.wait_until(lambda: count_new_nodes(world, old_image) == 1, 900)
    world.wait_until_settled(16)
    world.advance_seconds(120)
    claim = find_new_claim(world, old_image)
    world.cluster.stop_node(claim["status"]["nodeName"], terminated=False)
    world.wait_until(
        lambda: world.get_condition(CLASSES, "default", "CanarySucceeded")[:2] == ("False", "CanaryRejected"), 900
    )
    assert "is not Ready" in world.get_condition(CLASSES, "default", "CanarySucceeded")[2]
    world.wait_until(lambda: count_new_nodes(world, old_image) == 0, 1800)
    world.wait_until_settled(16, 600)
    world.advance_time(timedelta(hours=1))
    assert set(list_images(world)) == {old_image}
    assert read_status_images(world) >= {old_image}
    assert any("is rejected" in event for event in world.list_events("default", "CanaryRejected"))
    assert not world.list_errors()


def test_image_whose_nodes_never_register_is_rejected_while_pods_run_on_good_nodes() -> None:
    world = build_world({CANARY: "nodes=2 soak=15m"})
    [old_image] = set(list_images(world))
    world.instance_booter.is_image_broken = lambda image_id: image_id != old_image
    world.cloud.release_amis()
    world.wait_until(
        lambda: world.get_condition(CLASSES, "default", "CanarySucceeded")[:2] == ("False", "CanaryRejected"), 2400
    )
    assert (
        "deleted before their nodes were initialized" in world.get_condition(CLASSES, "default", "CanarySucceeded")[2]
    )
    world.scale(20)
    world.wait_until_settled(20)
    world.advance_time(timedelta(minutes=20))
    assert set(list_images(world)) == {old_image}
    assert not world.list_errors()


def test_image_is_not_used_before_its_minimum_age() -> None:
    world = build_world({IMAGE_MINIMUM_AGE: "2h"}, nodes=2)
    [old_image] = set(list_images(world))
    world.cloud.release_amis()
    world.advance_time(timedelta(hours=1, minutes=55))
    assert set(list_images(world)) == {old_image}
    assert world.get_condition(CLASSES, "default", "CanarySucceeded")[:2] == ("Unknown", "MinimumAge")
    world.wait_until(lambda: old_image not in list_images(world), 1800)
    assert world.get_condition(CLASSES, "default", "CanarySucceeded")[0] == "True"


def test_new_user_data_is_tested_by_a_canary_before_other_nodes_drift() -> None:
    world = build_world({CANARY: "nodes=1 soak=15m"})
    before = {claim["metadata"]["name"] for claim in world.list_claims()}
    world.cluster.api.patch(CLASSES, "default", {"spec": {"tags": {"team": "a"}}})
    world.wait_until(lambda: len(before - {claim["metadata"]["name"] for claim in world.list_claims()}) == 1, 900)
    world.advance_time(SOAK - timedelta(minutes=2))
    assert len(before & {claim["metadata"]["name"] for claim in world.list_claims()}) == 3
    world.wait_until(lambda: not before & {claim["metadata"]["name"] for claim in world.list_claims()}, 2400)
    assert not world.list_errors()


def count_catalog_requests(annotations: dict[str, str], *, is_image_released: bool) -> Counter[tuple[str, str, str]]:
    """Return how often `catalog` makes each request in fifteen minutes, after its first state is written."""
    world = build_world(annotations, nodes=1)
    world.advance_time(timedelta(minutes=6))
    if is_image_released:
        world.cloud.release_amis()
    calls: list[PortCall] = []
    with world.use_tap(calls.append):
        world.advance_time(timedelta(minutes=15))
    return Counter(
        (call.port, call.method, call.detail.partition("?")[0])
        for call in calls
        if call.world_name.startswith("catalog") and call.phase == "before"
    )


def test_nodes_and_pods_are_read_only_while_a_canary_runs() -> None:
    plain_requests = count_catalog_requests({}, is_image_released=False)
    assert count_catalog_requests({CANARY: "nodes=1 soak=15m"}, is_image_released=False) == plain_requests
    released = count_catalog_requests({}, is_image_released=True)
    tested = count_catalog_requests({CANARY: "nodes=1 soak=15m"}, is_image_released=True)
    fleet_reads = {("kube", "list", path) for path in ("/api/v1/pods", "/apis/karpenter.sh/v1/nodepools")}
    assert not fleet_reads & released.keys()
    assert {tested[read] for read in fleet_reads} == {2}  # the trial starts in the first of three cycles


def test_class_without_annotations_gets_no_state_and_no_condition() -> None:
    world = build_world({}, nodes=1)
    world.cloud.release_amis()
    world.advance_time(timedelta(minutes=15))
    node_class = world.cluster.api.get(CLASSES, "default")
    assert CANARY_STATE not in node_class["metadata"].get("annotations", {})
    assert "CanarySucceeded" not in {item["type"] for item in node_class["status"]["conditions"]}
