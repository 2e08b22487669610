"""Pods with ResourceClaims in a simulated account: nodes with devices, learned devices, claims that move, messages."""

import json
from functools import cache
from typing import Any

from shared.store.catalog import NEWEST_CATALOG_KEY
from shared.store.catalog_format import decode_catalog
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool, make_pod

DRIVER = "gpu.example.com"
CLAIMS = "resourceclaims.resource.k8s.io"
TWO_GPUS = [{"name": f"gpu-{number}", "attributes": {"model": {"string": "a100"}}} for number in range(2)]
DECLARED = json.dumps([{"driver": DRIVER, "count": 2, "name": "gpu", "attributes": {"model": {"string": "a100"}}}])
DEVICE_CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
}


@cache
def synthesize_stack(setting: str) -> dict[str, Any]:
    settings = ACTIVE_SETTINGS | {"dynamic-resource-allocation": setting, "feature-gates": "NodeOverlay=true"}
    return synthesize_template(settings=settings)


def make_claim_template(model: str = "a100", count: int = 1) -> dict[str, Any]:
    selector = {"cel": {"expression": f'device.attributes["{DRIVER}"].model == "{model}"'}}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count, "selectors": [selector]}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": model, "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def make_claiming_deployment(replicas: int, name: str = "train", model: str = "a100") -> dict[str, Any]:
    pod_claim = {"name": "gpu", "resourceClaimTemplateName": model}
    return make_deployment(replicas, name, cpu="200m", resourceClaims=[pod_claim])


def build_world(setting: str = "on", *, is_declared: bool = True) -> World:
    """Return a world in which nodes of type m5.2xlarge publish two GPUs, and those of type m5.xlarge none."""
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.2xlarge"]}
    overlay = {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "gpus", "annotations": {"joiner.dev/devices": DECLARED}},
        "spec": {"requirements": [requirement]},
    }
    world = World(
        make_node_class(),
        make_node_pool(types=("m5.xlarge", "m5.2xlarge")),
        DEVICE_CLASS,
        make_claim_template(),
        *([overlay] if is_declared else []),
        template=synthesize_stack(setting),
    )
    world.cluster.device_driver.devices_by_type = {"m5.2xlarge": TWO_GPUS}
    return world


def list_types(world: World) -> list[str]:
    return sorted(instance.instance_type for instance in world.list_active_instances())


def list_allocated_devices(world: World) -> list[tuple[str, str]]:
    return sorted(
        (result["pool"], result["device"])
        for claim in world.cluster.api.list(CLAIMS)
        for result in ((claim.get("status") or {}).get("allocation") or {"devices": {"results": []}})["devices"][
            "results"
        ]
    )


def test_pods_get_nodes_with_their_devices_and_a_third_pod_gets_another_node() -> None:
    world = build_world()
    world.apply([make_claiming_deployment(2)])
    world.wait_until_settled(2)
    assert list_types(world) == ["m5.2xlarge"]
    world.scale(3, "train")
    world.wait_until_settled(3)
    assert list_types(world) == ["m5.2xlarge", "m5.2xlarge"]
    devices = list_allocated_devices(world)
    assert len(devices) == len(set(devices)) == 3
    world.advance_seconds(300)
    assert list_types(world) == ["m5.2xlarge", "m5.2xlarge"], "no node was launched twice"


def test_devices_are_known_after_the_last_node_is_gone() -> None:
    world = build_world()
    world.apply([make_claiming_deployment(1)])
    world.wait_until_settled(1)
    world.advance_seconds(360)
    catalog = decode_catalog(world.bucket.get(world.bucket.get(NEWEST_CATALOG_KEY).decode()))
    assert [(item.instance_type, item.node_pool, len(item.devices)) for item in catalog.observed_devices] == [
        ("m5.2xlarge", "default", 2)
    ]
    world.cluster.api.delete("nodeoverlays.karpenter.sh", "gpus")
    world.scale(0, "train")
    world.wait_until(lambda: not world.list_active_instances(), 600)
    world.scale(2, "train")
    world.wait_until_settled(2)
    assert list_types(world) == ["m5.2xlarge"]


def test_devices_that_are_not_known_are_reported() -> None:
    world = build_world(is_declared=False)
    world.apply([make_claiming_deployment(1)])
    world.advance_seconds(120)
    assert list_types(world) == []
    assert any("the devices of its instance types are not known (1 gpu)" in event for event in world.list_events())


def test_without_the_setting_pods_with_claims_get_an_event() -> None:
    world = build_world("off")
    world.apply([make_claiming_deployment(1), make_pod("plain")])
    world.advance_seconds(120)
    assert list_types(world) == ["m5.xlarge"]
    assert any("only with dynamic-resource-allocation: on" in event for event in world.list_events())


def test_consolidation_moves_a_pod_only_to_a_node_with_free_devices() -> None:
    world = build_world()
    world.apply([make_claiming_deployment(2), make_claiming_deployment(2, "infer")])
    world.wait_until_settled(4)
    assert list_types(world) == ["m5.2xlarge", "m5.2xlarge"]
    world.advance_seconds(600)
    assert list_types(world) == ["m5.2xlarge", "m5.2xlarge"], "each node is full of devices, not of CPU"
    world.scale(1, "train")
    world.scale(1, "infer")
    world.wait_until(lambda: list_types(world) == ["m5.2xlarge"] and len(world.list_running_pods()) == 2, 1200)
    assert len(set(list_allocated_devices(world))) == 2
