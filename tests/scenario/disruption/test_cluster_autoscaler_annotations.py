"""Annotations of Cluster Autoscaler in the whole world: they keep pods and nodes only if the setting is on."""

from functools import cache
from typing import Any, Final

import pytest

from shared.model.core.labels import SAFE_TO_EVICT, SCALE_DOWN_DISABLED
from shared.model.decisions.action import EvictPod
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import World, count_vcpus, make_deployment, make_node_class, make_node_pool

SIZES: Final = ("m5.large", "m5.xlarge", "m5.2xlarge")
CHEAPER: Final = {"consolidationPolicy": "WhenEmptyOrUnderutilized"}
ON_OFF: Final = ("on", "off")


@cache
def synthesize_stack(setting: str) -> dict[str, Any]:
    return synthesize_template(settings=ACTIVE_SETTINGS | {"honor-cluster-autoscaler-annotations": setting})


def build_world(setting: str, *, annotations: dict[str, str] | None = None) -> World:
    """Build a world whose node is too large once the padding is gone; *annotations* are those of the pod of `web`."""
    pool = make_node_pool(types=SIZES, disruption=CHEAPER)
    world = World(
        make_node_class(),
        pool,
        make_deployment(1, annotations=annotations),
        make_deployment(6, "padding"),
        template=synthesize_stack(setting),
    )
    world.wait_until_settled(7)
    world.advance_seconds(150)
    return world


def annotate_nodes(world: World, key: str, value: str) -> None:
    for node in world.list_nodes():
        name = node["metadata"]["name"]
        world.cluster.api.patch("nodes", name, {"metadata": {"annotations": {key: value}}})


@pytest.mark.parametrize("setting", ON_OFF)
def test_pod_that_is_not_safe_to_evict_keeps_its_node_if_the_setting_is_on(setting: str) -> None:
    world = build_world(setting, annotations={SAFE_TO_EVICT: "false"})
    world.scale(0, "padding")
    world.advance_seconds(900)
    assert count_vcpus(world) == {"on": 8, "off": 2}[setting]
    evicted = [action.name for action in world.list_done_actions(EvictPod) if action.name.startswith("web")]
    assert len(evicted) == {"on": 0, "off": 1}[setting]
    events = world.list_events(world.list_nodes()[0]["metadata"]["name"], "DisruptionBlocked")
    assert any(SAFE_TO_EVICT in event for event in events) is (setting == "on")


def test_safe_to_evict_true_has_no_effect() -> None:
    world = build_world("on", annotations={SAFE_TO_EVICT: "true"})
    world.scale(0, "padding")
    world.wait_until(lambda: count_vcpus(world) == 2, 900)


@pytest.mark.parametrize("setting", ON_OFF)
def test_scale_down_disabled_keeps_an_empty_node_if_the_setting_is_on(setting: str) -> None:
    world = build_world(setting)
    annotate_nodes(world, SCALE_DOWN_DISABLED, "true")
    world.scale(0, "padding")
    world.scale(0)
    world.advance_seconds(600)
    assert len(world.list_nodes()) == {"on": 1, "off": 0}[setting]
    if setting == "on":
        annotate_nodes(world, SCALE_DOWN_DISABLED, "false")
        world.wait_until(lambda: not world.list_nodes(), 300)


@pytest.mark.parametrize("setting", ON_OFF)
def test_scale_down_disabled_prevents_consolidation_if_the_setting_is_on(setting: str) -> None:
    world = build_world(setting)
    annotate_nodes(world, SCALE_DOWN_DISABLED, "true")
    world.scale(0, "padding")
    world.advance_seconds(900)
    assert count_vcpus(world) == {"on": 8, "off": 2}[setting]


def test_node_with_scale_down_disabled_still_drifts() -> None:
    world = build_world("on")
    annotate_nodes(world, SCALE_DOWN_DISABLED, "true")
    [node] = world.list_nodes()
    world.cluster.api.patch(
        "nodepools.karpenter.sh", "default", {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}
    )
    world.wait_until(
        lambda: node["metadata"]["name"] not in {item["metadata"]["name"] for item in world.list_nodes()}, 900
    )
    world.wait_until_settled(7)


def test_annotations_of_the_node_pool_template_keep_the_nodes() -> None:
    pool = make_node_pool(types=SIZES)
    pool["spec"]["template"]["metadata"]["annotations"] = {SCALE_DOWN_DISABLED: "true"}
    world = World(make_node_class(), pool, make_deployment(1), template=synthesize_stack("on"))
    world.wait_until_settled(1)
    world.scale(0)
    world.advance_seconds(600)
    assert len(world.list_nodes()) == 1
