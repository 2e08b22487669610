"""Capacity buffers: how many pods they need, where those pods have room, and what their status says."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from shared.decide.disruption.disruption_controller import decide_node_disruption
from shared.decide.provisioning.capacity_buffers import (
    MAX_PODS_PER_BUFFER,
    build_buffer_conditions,
    count_buffer_pods,
    describe_buffers,
    resolve_buffers,
)
from shared.decide.provisioning.triggers import explain_provisioning_need
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import FAKE_POD, HOSTNAME
from shared.model.core.metadata import ObjectMeta
from shared.model.core.resources import Resources, parse_resources
from shared.model.core.selectors import build_label_selector
from shared.model.decisions.action import PatchMetadata, PatchStatus, PublishEvent
from shared.model.decisions.placement import SchedulingOptions
from shared.model.karpenter.capacity_buffer import CapacityBuffer, ScalableRef
from shared.model.kubernetes.pod import MIN_PRIORITY, AffinityTerm, PodSpec
from shared.model.kubernetes.workloads import Workload
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import (
    NOW,
    attach_claim,
    count_pods_per_new_node,
    make_cluster_snapshot,
    make_node,
    make_node_pool,
    make_pod,
    make_requests,
)
from tests.support.snapshot_decisions import build_placement_actions, plan_with_buffers

APP = Workload(
    kind="PodTemplate",
    meta=ObjectMeta(name="app", namespace="shop", generation=3),
    labels=(("app", "x"),),
    spec=PodSpec(requests=make_requests("1"), volume_claims=("data",)),
)
WEB = replace(APP, kind="Deployment", meta=ObjectMeta(name="web", namespace="shop"), replicas=7)
DEPLOYMENT = ScalableRef(kind="Deployment", name="web")


def make_buffer(name: str = "room", **fields: Any) -> CapacityBuffer:
    buffer_fields: dict[str, Any] = {"template": "app", "replicas": 2} | fields
    if buffer_fields.get("scalable"):
        buffer_fields["template"] = ""
    return CapacityBuffer(
        meta=ObjectMeta(name=name, namespace="shop", uid=f"uid-{name}", generation=1), **buffer_fields
    )


def build_buffer_cluster(*buffers: CapacityBuffer, pods: tuple[Any, ...] = (), **fields: Any) -> ClusterSnapshot:
    return make_cluster_snapshot(*pods, capacity_buffers=buffers, pod_templates=(APP,), deployments=(WEB,), **fields)


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
def test_buffer_size_is_the_larger_of_replicas_and_percentage_within_the_limits(
    fields: dict[str, Any], count: int
) -> None:
    buffer = make_buffer(**fields)
    assert count_buffer_pods(buffer, WEB if buffer.scalable else APP) == count
    [room] = resolve_buffers(build_buffer_cluster(buffer))
    assert len(room.pods) == count


def test_buffer_percentage_of_zero_replicas_is_zero() -> None:
    assert (
        count_buffer_pods(make_buffer(replicas=None, scalable=DEPLOYMENT, percentage=50), replace(WEB, replicas=0)) == 0
    )


def test_buffer_pods_have_minimum_priority_and_no_volume_claims() -> None:
    [room] = resolve_buffers(build_buffer_cluster(make_buffer()))
    assert [buffer_pod.name for buffer_pod in room.pods] == [
        "shop/capacity-buffer-room-1",
        "shop/capacity-buffer-room-2",
    ]
    first_pod = room.pods[0]
    assert (first_pod.priority, first_pod.meta.uid, first_pod.spec.volume_claims) == (MIN_PRIORITY, "uid-room-1", ())
    assert (first_pod.meta.labels, first_pod.meta.get_annotation(FAKE_POD)) == ((("app", "x"),), "true")
    assert first_pod.is_buffer_pod()
    assert not make_pod("x").is_buffer_pod()


def test_buffer_size_is_capped_at_the_maximum() -> None:
    assert (
        len(resolve_buffers(build_buffer_cluster(make_buffer(replicas=10 * MAX_PODS_PER_BUFFER)))[0].pods)
        == MAX_PODS_PER_BUFFER
    )


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"template": "ghost"}, "PodTemplateNotFound"),
        ({"scalable": ScalableRef(kind="StatefulSet", name="web")}, "ScalableRefNotFound"),
        ({"scalable": ScalableRef(kind="Deployment", name="web", api_group="argo.io")}, "ResolutionFailed"),
        ({"strategy": "later"}, "ResolutionFailed"),
    ],
)
def test_unresolved_buffer_reports_its_reason_in_its_conditions(fields: dict[str, Any], reason: str) -> None:
    cluster = build_buffer_cluster(make_buffer(**fields))
    [room] = resolve_buffers(cluster)
    assert (room.error[0], room.pods) == (reason, ())
    conditions = _read_conditions(cluster)
    assert conditions["ReadyForProvisioning"] == ("False", reason)
    assert conditions["Provisioning"] == ("False", "NotReadyForProvisioning")


def test_nodes_are_created_for_buffer_pods_and_hold_them_in_the_next_run() -> None:
    cluster = build_buffer_cluster(make_buffer(replicas=3))
    planned = plan_with_buffers(cluster)
    assert count_pods_per_new_node(planned.placement) == [3]
    assert planned.without_buffer_pods().existing == ()
    claims = tuple(
        action.claim
        for action in build_placement_actions(cluster, planned.without_buffer_pods())
        if hasattr(action, "claim")
    )
    second_plan = plan_with_buffers(replace(cluster, node_claims=claims))
    assert (second_plan.placement.new_nodes, len(second_plan.list_buffer_nodes())) == ((), 1)
    assert _read_conditions(cluster)["Provisioning"] == ("False", "RequiresNewCapacity")
    assert _read_conditions(replace(cluster, node_claims=claims))["Provisioning"] == ("True", "FitsExistingCapacity")


def test_pending_pods_are_scheduled_before_larger_buffer_pods() -> None:
    cluster = build_buffer_cluster(
        make_buffer(replicas=1), pods=(make_pod("x", "500m"),), nodes=(make_node("here", "1"),), node_pools=()
    )
    planned = plan_with_buffers(cluster)
    assert [fit.pods for fit in planned.placement.existing] == [("shop/x",)]
    assert planned.without_buffer_pods().unschedulable == ()
    assert [unschedulable.pod for unschedulable in planned.placement.unschedulable] == ["shop/capacity-buffer-room-1"]


def test_buffer_pods_never_use_limits_that_pending_pods_need() -> None:
    limits = Resources(amounts=(("cpu", 4000),))
    waiting = tuple(make_pod(f"p{number}", "1") for number in range(4))
    planned = plan_with_buffers(
        build_buffer_cluster(make_buffer(replicas=40), pods=waiting, node_pools=(make_node_pool(limits=limits),))
    )
    assert planned.without_buffer_pods().unschedulable == ()


def test_pod_with_affinity_to_a_pending_pod_is_scheduled_before_buffer_pods() -> None:
    near = AffinityTerm(topology_key=HOSTNAME, selector=build_label_selector({"app": "b"}))
    waiting = (make_pod("a", "2", pod_affinity=(near,)), make_pod("b", "1", labels={"app": "b"}))
    large = replace(APP, spec=replace(APP.spec, requests=make_requests("2")))
    cluster = build_buffer_cluster(
        make_buffer(replicas=1), pods=waiting, nodes=(make_node("here", "4"),), node_pools=()
    )
    planned = plan_with_buffers(replace(cluster, pod_templates=(large,)))
    assert [fit.pods for fit in planned.placement.existing] == [("shop/a", "shop/b")]
    assert [unschedulable.pod for unschedulable in planned.placement.unschedulable] == ["shop/capacity-buffer-room-1"]


def test_buffer_pods_on_existing_nodes_cause_no_events_or_annotations() -> None:
    existing_node, node_claim = attach_claim(make_node("here", "4"))
    cluster = build_buffer_cluster(make_buffer(), nodes=(existing_node,), node_claims=(node_claim,))
    planned = plan_with_buffers(cluster)
    assert planned.list_buffer_nodes() == frozenset({"here"})
    assert planned.without_buffer_pods().existing == ()
    assert [
        action
        for action in build_placement_actions(cluster, planned.without_buffer_pods())
        if isinstance(action, PatchMetadata | PublishEvent)
    ] == []


def test_node_with_buffer_pods_is_not_empty() -> None:
    existing_node, node_claim = attach_claim(make_node("here", "4"))
    cluster = build_buffer_cluster(make_buffer(), nodes=(existing_node,), node_claims=(node_claim,))
    with_buffer, without_buffer = (
        decide_node_disruption(ClusterState(snapshot), options=SchedulingOptions())
        for snapshot in (cluster, replace(cluster, capacity_buffers=()))
    )
    assert "Headroom" not in [verdict.reason for verdict in without_buffer.verdicts]
    assert _list_verdict_reasons(with_buffer) <= {"Headroom", "NotConsolidatable"}
    assert with_buffer.commands == ()


def _list_verdict_reasons(sweep: Any) -> set[str]:
    return {verdict.reason for verdict in sweep.verdicts}


def test_deleting_buffer_has_no_pods() -> None:
    buffer = make_buffer()
    assert resolve_buffers(build_buffer_cluster(replace(buffer, meta=replace(buffer.meta, deleted_at=NOW)))) == ()


def test_existing_pod_with_the_name_of_a_buffer_pod_replaces_it() -> None:
    double = make_pod("capacity-buffer-room-1")
    assert [
        buffer_pod.name for buffer_pod in resolve_buffers(build_buffer_cluster(make_buffer(), pods=(double,)))[0].pods
    ] == ["shop/capacity-buffer-room-2"]


def _read_conditions(cluster: ClusterSnapshot) -> dict[str, tuple[str, str]]:
    [action] = describe_buffers(plan_with_buffers(cluster), cluster)
    assert isinstance(action, PatchStatus)
    return {
        condition["type"]: (condition["status"], condition["reason"])
        for condition in json.loads(action.status)["conditions"]
    }


def test_buffer_status_reports_replicas_and_is_written_only_when_it_changes() -> None:
    cluster = build_buffer_cluster(make_buffer(replicas=0))
    planned = plan_with_buffers(cluster)
    [action] = describe_buffers(planned, cluster)
    assert isinstance(action, PatchStatus)
    status = json.loads(action.status)
    assert (action.kind, action.namespace, action.name) == ("CapacityBuffer", "shop", "room")
    assert (status["replicas"], status["podTemplateRef"], status["podTemplateGeneration"]) == (0, {"name": "app"}, 3)
    assert {condition["type"]: condition["reason"] for condition in status["conditions"]} == {
        "Provisioning": "BufferEmpty",
        "ReadyForProvisioning": "Resolved",
    }
    reported_buffer = replace(
        cluster.capacity_buffers[0],
        status_replicas=0,
        status_template="app",
        status_generation=3,
        status_strategy=status["provisioningStrategy"],
        conditions=build_buffer_conditions(planned.resolved_buffers[0], set(), cluster),
    )
    next_cluster = replace(cluster, capacity_buffers=(reported_buffer,))
    assert describe_buffers(plan_with_buffers(next_cluster), next_cluster) == ()


def test_capacity_buffers_need_provisioning_without_pending_pods() -> None:
    assert explain_provisioning_need(ClusterState(make_cluster_snapshot())) == ""
    assert explain_provisioning_need(ClusterState(build_buffer_cluster(make_buffer()))) == (
        "CapacityBuffers need headroom"
    )
