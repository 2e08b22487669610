"""Gangs of pods in a simulated account."""

import re
from collections import Counter
from typing import Any, Final

from sim.fault_tap import PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import POOLS, Json, World, make_deployment, make_node_class, make_node_pool

GANG_SIZE: Final = 4
GANG_ANNOTATIONS: Final = {"joiner.dev/gang": "train", "joiner.dev/gang-size": str(GANG_SIZE)}
NODE_PER_POD: Final = "3"
"""An m5.xlarge has room for one pod with this many CPUs."""


def make_gang(name: str = "train", count: int = GANG_SIZE, **spec: Any) -> Json:
    """Return a Deployment of *count* pods, whose gang needs four."""
    annotations = GANG_ANNOTATIONS | {"joiner.dev/gang": name}
    return make_deployment(count, name, cpu=NODE_PER_POD, annotations=annotations, **spec)


def make_world(*manifests: Json, gangs: str = "on", **pool: Any) -> World:
    template = synthesize_template(settings=ACTIVE_SETTINGS | {"gangs": gangs})
    return World(make_node_class(), make_node_pool(**pool), *manifests, template=template)


def test_gang_gets_no_node_until_the_limit_allows_all_its_nodes() -> None:
    world = make_world(make_gang(), limits={"cpu": "12"})
    world.advance_seconds(180)
    assert world.launched == []
    events = world.list_events(reason="FailedScheduling")
    assert any("gang default/train needs nodes for all its 4 pods or none: train-" in event for event in events)
    assert any("does not fit: NodePool default: " in event and "increase spec.limits" in event for event in events)
    world.store(POOLS, "default", {"spec": {"limits": {"cpu": "16"}}})
    world.wait_until_settled(GANG_SIZE)
    assert len(world.launched) == GANG_SIZE
    assert not world.list_errors()


def test_without_the_setting_a_part_of_the_gang_gets_nodes() -> None:
    world = make_world(make_gang(), gangs="off", limits={"cpu": "12"})
    world.advance_seconds(180)
    assert len(world.launched) == GANG_SIZE - 1


def test_incomplete_gang_waits_and_other_pods_do_not() -> None:
    world = make_world(make_gang(count=GANG_SIZE - 1), make_deployment(2, cpu=NODE_PER_POD))
    world.wait_until(lambda: len(world.list_running_pods()) == 2)
    world.advance_seconds(120)
    assert len(world.launched) == 2
    events = world.list_events(reason="FailedScheduling")
    assert any("3 of its 4 pods exist: waiting for the others" in event for event in events)
    world.scale(GANG_SIZE, "train")
    world.wait_until_settled(GANG_SIZE + 2)
    assert not world.list_errors()


def count_requests(gangs: str, annotations: dict[str, str]) -> Counter[tuple[str, str, str]]:
    """Return how often each request is made for four pods, before and after it; names of new objects are left out."""
    world = make_world(gangs=gangs)
    calls: list[PortCall] = []
    with world.use_tap(calls.append):
        world.apply([make_deployment(GANG_SIZE, cpu=NODE_PER_POD, annotations=annotations)])
        world.wait_until_settled(GANG_SIZE)
        world.advance_seconds(90)
    return Counter(
        (call.port, call.method, re.sub(r"(default|web)-[^/]*|snapshot/.*", "", call.detail)) for call in calls
    )


def test_without_gangs_or_the_setting_requests_are_the_same() -> None:
    plain_requests = count_requests("off", {})
    assert count_requests("off", GANG_ANNOTATIONS) == plain_requests
    assert count_requests("on", {}) == plain_requests


def test_gang_needs_one_request_more_for_each_node() -> None:
    further_requests = count_requests("on", GANG_ANNOTATIONS) - count_requests("off", {})
    assert further_requests == {("kube", "patch", "/apis/karpenter.sh/v1/nodeclaims/"): 2 * GANG_SIZE}


def test_gang_that_gets_a_part_of_its_nodes_returns_them_and_is_tried_again_later() -> None:
    world = make_world()
    zones = world.cloud.zones
    for number, zone in enumerate(zones):
        world.cloud.pools.set_limit("m5.xlarge", zone, "on-demand", 0 if number else GANG_SIZE - 1)
    world.apply([make_gang()])
    world.wait_until(lambda: len(world.list_running_pods()) == GANG_SIZE - 1)
    world.wait_until(lambda: not world.list_active_instances(), timeout=1200)
    [event, *_] = world.list_events(reason="GangReturned")
    assert "3 of the 4 pods of gang default/train had nodes" in event
    for zone in zones:
        world.cloud.pools.set_limit("m5.xlarge", zone, "on-demand", None)
    world.wait_until_settled(GANG_SIZE, timeout=600)
    world.advance_seconds(1200)
    assert len(world.list_running_pods()) == GANG_SIZE
    assert not world.list_errors()
