"""Capacity buffers: how many pods they come to, where these have their room, and what their status says."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from shared.disruption.sweep import sweep
from shared.model.action import PatchMetadata, PatchStatus, PublishEvent
from shared.model.cluster import Cluster
from shared.model.labels import FAKE_POD, HOSTNAME
from shared.model.objects import Meta
from shared.model.pods import LEAST, AffinityTerm, PodSpec
from shared.model.resources import Resources, parse_resources
from shared.model.selectors import selector
from shared.model.workloads import CapacityBuffer, ScalableRef, Workload
from shared.scheduling.decide import decide
from shared.scheduling.headroom import MOST, conditions_of, describe_buffers, plan, rooms_of, size
from shared.scheduling.placement import Options
from shared.scheduling.wake import needs_planning
from tests.unit.catalogues import NOW, asks, claimed, node, pod, pool, sizes, world

APP = Workload(
    kind="PodTemplate",
    meta=Meta(name="app", namespace="shop", generation=3),
    labels=(("app", "x"),),
    spec=PodSpec(requests=asks("1"), volume_claims=("data",)),
)
WEB = replace(APP, kind="Deployment", meta=Meta(name="web", namespace="shop"), replicas=7)
DEPLOYMENT = ScalableRef(kind="Deployment", name="web")


def buffer(name: str = "room", **fields: Any) -> CapacityBuffer:
    known: dict[str, Any] = {"template": "app", "replicas": 2} | fields
    if known.get("scalable"):
        known["template"] = ""
    return CapacityBuffer(meta=Meta(name=name, namespace="shop", uid=f"uid-{name}", generation=1), **known)


def seen(*buffers: CapacityBuffer, pods: tuple[Any, ...] = (), **more: Any) -> Cluster:
    return world(*pods, capacity_buffers=buffers, pod_templates=(APP,), deployments=(WEB,), **more)


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"replicas": 3}, 3),
        ({"replicas": 0}, 0),
        ({"replicas": 3, "percentage": 50}, 3),
        ({"replicas": None, "scalable": DEPLOYMENT, "percentage": 50}, 4),
        ({"replicas": None, "scalable": DEPLOYMENT, "percentage": 1}, 1),
        ({"replicas": 5, "scalable": DEPLOYMENT, "percentage": 50}, 5),
        ({"replicas": None, "scalable": DEPLOYMENT, "percentage": 0}, 0),
        ({"replicas": None, "scalable": DEPLOYMENT}, 0),
        ({"replicas": 9, "limits": parse_resources({"cpu": "4500m"})}, 4),
        ({"replicas": 9, "limits": parse_resources({"cpu": "9", "memory": "2Gi"})}, 2),
        ({"replicas": 9, "limits": parse_resources({"gpu": "1"})}, 9),
        ({"replicas": None, "limits": parse_resources({"cpu": "6"})}, 6),
        ({"replicas": None, "limits": parse_resources({"gpu": "6"})}, 0),
    ],
)
def test_the_size_is_the_larger_of_both_within_the_limits(fields: dict[str, Any], count: int) -> None:
    some = buffer(**fields)
    assert size(some, WEB if some.scalable else APP) == count
    [room] = rooms_of(seen(some))
    assert len(room.pods) == count


def test_a_percentage_of_nothing_is_nothing() -> None:
    assert size(buffer(replicas=None, scalable=DEPLOYMENT, percentage=50), replace(WEB, replicas=0)) == 0


def test_headroom_is_pods_that_matter_least_and_need_no_volumes() -> None:
    [room] = rooms_of(seen(buffer()))
    assert [one.name for one in room.pods] == ["shop/capacity-buffer-room-1", "shop/capacity-buffer-room-2"]
    one = room.pods[0]
    assert (one.priority, one.meta.uid, one.spec.volume_claims) == (LEAST, "uid-room-1", ())
    assert (one.meta.labels, one.meta.annotation(FAKE_POD)) == ((("app", "x"),), "true")
    assert one.is_headroom()
    assert not pod("x").is_headroom()


def test_a_buffer_that_asks_for_too_much_is_cut() -> None:
    assert len(rooms_of(seen(buffer(replicas=10 * MOST)))[0].pods) == MOST


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"template": "ghost"}, "PodTemplateNotFound"),
        ({"scalable": ScalableRef(kind="StatefulSet", name="web")}, "ScalableRefNotFound"),
        ({"scalable": ScalableRef(kind="Deployment", name="web", api_group="argo.io")}, "ResolutionFailed"),
        ({"strategy": "later"}, "ResolutionFailed"),
    ],
)
def test_a_buffer_of_something_that_is_not_there_says_so(fields: dict[str, Any], reason: str) -> None:
    cluster = seen(buffer(**fields))
    [room] = rooms_of(cluster)
    assert (room.fault[0], room.pods) == (reason, ())
    conditions = _conditions(cluster)
    assert conditions["ReadyForProvisioning"] == ("False", reason)
    assert conditions["Provisioning"] == ("False", "NotReadyForProvisioning")


def test_nodes_are_made_for_headroom_and_next_time_it_has_its_room_there() -> None:
    cluster = seen(buffer(replicas=3))
    planned = plan(cluster)
    assert sizes(planned.placement) == [3]
    assert planned.of_pods().existing == ()
    claims = tuple(one.claim for one in decide(cluster, planned.of_pods()) if hasattr(one, "claim"))
    again = plan(replace(cluster, node_claims=claims))
    assert (again.placement.new_nodes, len(again.holding())) == ((), 1)
    assert _conditions(cluster)["Provisioning"] == ("False", "RequiresNewCapacity")
    assert _conditions(replace(cluster, node_claims=claims))["Provisioning"] == ("True", "FitsExistingCapacity")


def test_pods_come_first_also_where_headroom_is_larger() -> None:
    cluster = seen(buffer(replicas=1), pods=(pod("x", "500m"),), nodes=(node("here", "1"),), node_pools=())
    planned = plan(cluster)
    assert [fit.pods for fit in planned.placement.existing] == [("shop/x",)]
    assert planned.of_pods().unschedulable == ()
    assert [one.pod for one in planned.placement.unschedulable] == ["shop/capacity-buffer-room-1"]


def test_headroom_never_takes_a_limit_from_a_pod() -> None:
    limits = Resources(amounts=(("cpu", 4000),))
    waiting = tuple(pod(f"p{number}", "1") for number in range(4))
    planned = plan(seen(buffer(replicas=40), pods=waiting, node_pools=(pool(limits=limits),)))
    assert planned.of_pods().unschedulable == ()


def test_a_pod_that_waits_for_another_gets_its_room_before_headroom_does() -> None:
    near = AffinityTerm(topology_key=HOSTNAME, selector=selector({"app": "b"}))
    waiting = (pod("a", "2", pod_affinity=(near,)), pod("b", "1", labels={"app": "b"}))
    large = replace(APP, spec=replace(APP.spec, requests=asks("2")))
    cluster = seen(buffer(replicas=1), pods=waiting, nodes=(node("here", "4"),), node_pools=())
    planned = plan(replace(cluster, pod_templates=(large,)))
    assert [fit.pods for fit in planned.placement.existing] == [("shop/a", "shop/b")]
    assert [one.pod for one in planned.placement.unschedulable] == ["shop/capacity-buffer-room-1"]


def test_room_that_is_there_is_headroom_enough_and_nobody_is_told() -> None:
    some, its = claimed(node("here", "4"))
    cluster = seen(buffer(), nodes=(some,), node_claims=(its,))
    planned = plan(cluster)
    assert planned.holding() == frozenset({"here"})
    assert planned.of_pods().existing == ()
    assert [one for one in decide(cluster, planned.of_pods()) if isinstance(one, PatchMetadata | PublishEvent)] == []


def test_a_node_that_holds_headroom_is_not_empty() -> None:
    some, its = claimed(node("here", "4"))
    cluster = seen(buffer(), nodes=(some,), node_claims=(its,))
    held, without = (sweep(one, options=Options()) for one in (cluster, replace(cluster, capacity_buffers=())))
    assert "Headroom" not in [one.reason for one in without.verdicts]
    assert _held_or_blocked(held) <= {"Headroom", "NotConsolidatable"}
    assert held.commands == ()


def _held_or_blocked(sweep: Any) -> set[str]:
    return {one.reason for one in sweep.verdicts}


def test_a_buffer_that_is_going_keeps_nothing() -> None:
    some = buffer()
    assert rooms_of(seen(replace(some, meta=replace(some.meta, deleted_at=NOW)))) == ()


def test_a_pod_of_the_same_name_is_the_pod() -> None:
    double = pod("capacity-buffer-room-1")
    assert [one.name for one in rooms_of(seen(buffer(), pods=(double,)))[0].pods] == ["shop/capacity-buffer-room-2"]


def _conditions(cluster: Cluster) -> dict[str, tuple[str, str]]:
    [action] = describe_buffers(plan(cluster), cluster)
    assert isinstance(action, PatchStatus)
    return {one["type"]: (one["status"], one["reason"]) for one in json.loads(action.status)["conditions"]}


def test_status_says_how_many_and_is_written_once() -> None:
    cluster = seen(buffer(replicas=0))
    planned = plan(cluster)
    [action] = describe_buffers(planned, cluster)
    assert isinstance(action, PatchStatus)
    status = json.loads(action.status)
    assert (action.kind, action.namespace, action.name) == ("CapacityBuffer", "shop", "room")
    assert (status["replicas"], status["podTemplateRef"], status["podTemplateGeneration"]) == (0, {"name": "app"}, 3)
    assert {one["type"]: one["reason"] for one in status["conditions"]} == {
        "Provisioning": "BufferEmpty",
        "ReadyForProvisioning": "Resolved",
    }
    told = replace(
        cluster.capacity_buffers[0],
        told_replicas=0,
        told_template="app",
        told_generation=3,
        told_strategy=status["provisioningStrategy"],
        conditions=conditions_of(planned.rooms[0], set(), cluster),
    )
    again = replace(cluster, capacity_buffers=(told,))
    assert describe_buffers(plan(again), again) == ()


def test_buffers_want_a_plan_though_no_pod_waits() -> None:
    assert needs_planning(world()) == ""
    assert needs_planning(seen(buffer())) == "room is kept free"
