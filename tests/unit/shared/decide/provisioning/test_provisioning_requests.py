"""ProvisioningRequests: their plans, their conditions, and how long capacity is kept."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from shared.decide.provisioning.capacity_buffers import BufferedPlacement
from shared.decide.provisioning.gang_planning import plan_pods
from shared.decide.provisioning.provisioning_requests import describe_requests, resolve_requests
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Condition, ObjectMeta, build_pairs
from shared.model.core.resources import parse_resources
from shared.model.kubernetes.gangs.provisioning_request import (
    ATOMIC_SCALE_UP,
    CHECK_CAPACITY,
    CONSUMED_REQUEST,
    ProvisioningRequest,
    RequestedPods,
)
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.model.kubernetes.workloads import Workload
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import (
    NOW,
    attach_claim,
    make_cluster_snapshot,
    make_instance_type,
    make_node,
    make_node_pool,
    make_pod,
    make_requests,
)

TEMPLATE = Workload(
    kind="PodTemplate", meta=ObjectMeta(name="worker", namespace="shop"), spec=PodSpec(requests=make_requests("3"))
)
TYPES = (make_instance_type("m.04", 4),)


def make_request(count: int = 2, class_name: str = ATOMIC_SCALE_UP, **fields: Any) -> ProvisioningRequest:
    meta = ObjectMeta(name="train", namespace="shop", uid="uid-train", created_at=NOW - timedelta(minutes=1))
    request = ProvisioningRequest(
        meta=meta, class_name=class_name, pod_sets=(RequestedPods(template="worker", count=count),)
    )
    return replace(request, **fields)


def make_request_cluster(*pods: Pod, request: ProvisioningRequest, cpu: str = "100", **fields: Any) -> ClusterSnapshot:
    pool = make_node_pool(limits=parse_resources({"cpu": cpu}))
    return make_cluster_snapshot(
        *pods,
        types=TYPES,
        node_pools=(pool,),
        **({"provisioning_requests": (request,), "pod_templates": (TEMPLATE,)} | fields),
    )


def plan(cluster: ClusterSnapshot) -> BufferedPlacement:
    return plan_pods(ClusterState(cluster))


def list_conditions(cluster: ClusterSnapshot) -> dict[str, tuple[str, str]]:
    """Return status and reason of the conditions that are written, by type."""
    planned = plan(cluster)
    patches = describe_requests(planned.resolved_requests, planned.placement, ClusterState(cluster))
    return {
        item["type"]: (item["status"], item["reason"])
        for patch in patches
        for item in msgspec.json.decode(patch.status)["conditions"]
    }


def make_condition(type_: str, status: str = "True", age: timedelta = timedelta()) -> Condition:
    return Condition(type=type_, status=status, reason=type_, since=NOW - age)


READY_NODES = tuple(attach_claim(make_node(name)) for name in ("a", "b"))
NODES: dict[str, Any] = {
    "nodes": tuple(node for node, _ in READY_NODES),
    "node_claims": tuple(claim for _, claim in READY_NODES),
}


def test_scale_up_launches_nodes_for_all_pods_and_reports_them_when_they_are_initialized() -> None:
    cluster = make_request_cluster(request=make_request())
    assert len(plan(cluster).placement.new_nodes) == 2
    assert not plan(cluster).without_buffer_pods().unschedulable
    assert list_conditions(cluster) == {
        "Accepted": ("True", "Accepted"),
        "Provisioned": ("False", "NodesAreLaunched"),
    }
    ready = make_request_cluster(request=make_request(), **NODES)
    assert list_conditions(ready)["Provisioned"] == ("True", "CapacityIsProvisioned")
    nodes = (attach_claim(make_node("a")), attach_claim(make_node("b"), initialized=False))
    booting = make_request_cluster(
        request=make_request(), nodes=tuple(node for node, _ in nodes), node_claims=tuple(claim for _, claim in nodes)
    )
    assert list_conditions(booting)["Provisioned"] == ("False", "NodesAreLaunched")


def test_scale_up_that_does_not_fit_launches_nothing() -> None:
    cluster = make_request_cluster(request=make_request(3), cpu="8")
    assert not plan(cluster).placement.new_nodes
    assert list_conditions(cluster)["Provisioned"] == ("False", "CapacityIsNotFound")


def test_pods_of_the_cluster_come_first() -> None:
    cluster = make_request_cluster(make_pod("web", "3"), request=make_request(2), cpu="8")
    [node] = plan(cluster).placement.new_nodes
    assert node.pods == ("shop/web",)


@pytest.mark.parametrize(
    ("parameters", "condition"),
    [({}, ("Provisioned", "False")), ({"noRetry": "true"}, ("Failed", "True"))],
    ids=["retried", "noRetry"],
)
def test_check_of_capacity_launches_nothing(parameters: dict[str, str], condition: tuple[str, str]) -> None:
    request = make_request(class_name=CHECK_CAPACITY, parameters=build_pairs(parameters))
    cluster = make_request_cluster(request=request)
    assert not plan(cluster).placement.new_nodes
    type_, status = condition
    assert list_conditions(cluster)[type_] == (status, "CapacityIsNotFound")
    assert list_conditions(make_request_cluster(request=request, **NODES))["Provisioned"] == ("True", "CapacityIsFound")


def test_capacity_is_kept_for_ten_minutes_or_until_pods_use_it() -> None:
    booked_request = make_request(conditions=(make_condition("Provisioned", age=timedelta(minutes=9)),))
    cluster = make_request_cluster(request=booked_request, **NODES)
    assert plan(cluster).list_buffer_nodes() == {"a", "b"}
    assert not list_conditions(cluster)
    consumer = make_pod("w", "3", on="a")
    consumer = replace(consumer, meta=replace(consumer.meta, annotations=build_pairs({CONSUMED_REQUEST: "train"})))
    assert plan(make_request_cluster(consumer, request=booked_request, **NODES)).list_buffer_nodes() == {"b"}
    expired = make_request(conditions=(make_condition("Provisioned", age=timedelta(minutes=10)),))
    cluster = make_request_cluster(request=expired, **NODES)
    assert not plan(cluster).list_buffer_nodes()
    assert list_conditions(cluster)["BookingExpired"] == ("True", "BookingExpired")


@pytest.mark.parametrize("seconds", ["30", "3600"])
def test_request_fails_when_its_time_is_over(seconds: str) -> None:
    request = make_request(3, parameters=build_pairs({"ValidUntilSeconds": seconds}))
    conditions = list_conditions(make_request_cluster(request=request, cpu="8"))
    assert conditions.get("Failed") == (("True", "Expired") if seconds == "30" else None)


@pytest.mark.parametrize("seconds", ["99999999999999999999", "86400000000000", "9" * 5000])
def test_time_with_many_digits_never_ends_and_does_not_stop_the_plan(seconds: str) -> None:
    request = make_request(3, parameters=build_pairs({"ValidUntilSeconds": seconds}))
    assert "Failed" not in list_conditions(make_request_cluster(request=request, cpu="8"))


def make_consumer(name: str, cpu: str, labels: dict[str, str] | None = None) -> Pod:
    pod = make_pod(name, cpu, on="a", labels=labels or {})
    return replace(pod, meta=replace(pod.meta, annotations=build_pairs({CONSUMED_REQUEST: "train"})))


PROVISIONED = Condition(type="Provisioned", status="True", reason="Provisioned", since=NOW)
LEADER = Workload(
    kind="PodTemplate",
    meta=ObjectMeta(name="leader", namespace="shop"),
    labels=build_pairs({"role": "leader"}),
    spec=PodSpec(requests=make_requests("1")),
)
LEADER_AND_WORKERS = make_request(
    pod_sets=(RequestedPods(template="leader", count=1), RequestedPods(template="worker", count=2)),
    conditions=(PROVISIONED,),
)


@pytest.mark.parametrize(
    ("consumers", "kept_cpus"),
    [
        ([make_consumer("w-0", "3")], ["1", "3"]),
        ([make_consumer("l", "1")], ["3", "3"]),
        ([make_consumer("w-0", "3"), make_consumer("l", "1")], ["3"]),
        ([make_consumer("l", "1500m", {"role": "leader", "x": "y"}), make_consumer("a", "3")], ["3"]),
        ([make_consumer("sidecar", "4")], ["1", "3"]),
        ([make_consumer(f"w-{number}", "3") for number in range(3)], []),
    ],
    ids=["worker", "leader", "both", "labels", "template without labels", "all"],
)
def test_pod_replaces_a_pod_of_its_own_pod_set(consumers: list[Pod], kept_cpus: list[str]) -> None:
    cluster = make_request_cluster(*consumers, request=LEADER_AND_WORKERS, pod_templates=(TEMPLATE, LEADER))
    [resolved] = resolve_requests(cluster)
    assert [pod.spec.requests for pod in resolved.pods] == [make_requests(cpu) for cpu in kept_cpus]


def test_request_ends_when_pods_use_all_of_it_so_that_completed_pods_do_not_bring_it_back() -> None:
    consumers = [make_consumer("w-0", "3"), make_consumer("w-1", "3")]
    request = make_request(conditions=(PROVISIONED,))
    conditions = list_conditions(make_request_cluster(*consumers, request=request, **NODES))
    assert conditions["BookingExpired"] == ("True", "BookingExpired")
    partly_used = make_request_cluster(consumers[0], request=request, **NODES)
    assert list_conditions(partly_used) == {}
    waiting = make_request_cluster(*consumers, request=make_request(), **NODES)
    assert "BookingExpired" not in list_conditions(waiting)


def test_request_is_not_provisioned_while_pods_that_use_it_have_no_node() -> None:
    waiting = replace(make_pod("w-1", "3"), meta=make_consumer("w-1", "3").meta)
    consumers = [make_consumer("w-0", "3"), waiting]
    conditions = list_conditions(make_request_cluster(*consumers, request=make_request(), **NODES))
    assert conditions["Provisioned"] == ("False", "NodesAreLaunched")
    bound_consumers = [make_consumer(name, "3") for name in ("w-0", "w-1")]
    conditions = list_conditions(make_request_cluster(*bound_consumers, request=make_request(), **NODES))
    assert conditions["Provisioned"] == ("True", "CapacityIsProvisioned")


def test_missing_template_fails_the_request() -> None:
    cluster = make_request_cluster(request=make_request(), pod_templates=())
    assert list_conditions(cluster)["Failed"] == ("True", "FailedToCreatePods")


@pytest.mark.parametrize("type_", ["Failed", "BookingExpired", "CapacityRevoked"])
def test_request_that_has_ended_is_left_alone(type_: str) -> None:
    cluster = make_request_cluster(request=make_request(conditions=(make_condition(type_),)))
    assert (plan(cluster).placement.new_nodes, list_conditions(cluster)) == ((), {})


def test_request_of_another_class_is_left_alone() -> None:
    cluster = make_request_cluster(request=make_request(class_name="queued-provisioning.example.com"))
    assert (plan(cluster).placement.new_nodes, list_conditions(cluster)) == ((), {})
