"""Defaults and refusals of built-in objects in every `Kube`, as observed on the real API server."""

from typing import Any

import pytest

from shared.errors import Invalid
from shared.ports.kubernetes import Kube
from tests.contract import kube_front
from tests.contract.kube_front import create, list_names, list_objects, make_pod, patch, read

memory, endpoint, kube, namespace = kube_front.memory, kube_front.endpoint, kube_front.kube, kube_front.namespace

NODES = "/api/v1/nodes"
TAINT = {"key": "a", "effect": "NoSchedule"}
POOL = {"template": {"spec": {"nodeClassRef": {"group": "g", "kind": "k", "name": "n"}, "requirements": []}}}


@pytest.fixture
def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def make_container_spec(**fields: object) -> dict[str, Any]:
    return {"containers": [{"name": "app", "image": "app"} | fields]}


def test_namespace_is_labeled_with_its_name(kube: Kube, namespace: str) -> None:
    labels = read(kube, f"/api/v1/namespaces/{namespace}")["metadata"]["labels"]
    assert labels == {"kubernetes.io/metadata.name": namespace}


def test_resource_limits_become_default_requests(kube: Kube, pods: str) -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    created = create(kube, pods, make_pod("cart", **make_container_spec(resources=resources)))
    assert created["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_host_network_container_port_becomes_a_host_port(kube: Kube, pods: str) -> None:
    created = create(
        kube, pods, make_pod("cart", hostNetwork=True, **make_container_spec(ports=[{"containerPort": 80}]))
    )
    assert created["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


def test_negative_termination_grace_period_becomes_one_second(kube: Kube, pods: str) -> None:
    spec = create(kube, pods, make_pod("cart", terminationGracePeriodSeconds=-5))["spec"]
    assert spec["terminationGracePeriodSeconds"] == 1


def test_gated_pod_has_the_scheduling_gated_condition(kube: Kube, pods: str) -> None:
    created = create(kube, pods, make_pod("cart", schedulingGates=[{"name": "example.com/wait"}]))
    [condition] = created["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


def test_termination_grace_period_of_a_pod_is_immutable(kube: Kube, pods: str) -> None:
    create(kube, pods, make_pod("cart"))
    with pytest.raises(Invalid, match="spec"):
        patch(kube, f"{pods}/cart", {"spec": {"terminationGracePeriodSeconds": 5}})


def test_default_tolerations_are_restored_and_other_tolerations_cannot_be_removed(kube: Kube, pods: str) -> None:
    default_tolerations = create(kube, pods, make_pod("cart"))["spec"]["tolerations"]
    assert patch(kube, f"{pods}/cart", {"spec": {"tolerations": []}})["spec"]["tolerations"] == default_tolerations
    create(kube, pods, make_pod("shop", tolerations=[{"key": "a", "operator": "Exists"}]))
    with pytest.raises(Invalid, match="tolerations"):
        patch(kube, f"{pods}/shop", {"spec": {"tolerations": []}})


def test_patching_the_status_to_null_resets_it(kube: Kube, pods: str) -> None:
    create(kube, pods, make_pod("cart"))
    assert patch(kube, f"{pods}/cart/status", {"status": None})["status"] == {"qosClass": "BestEffort"}


@pytest.mark.parametrize("finalizer", ["hold", "a b/c"])
def test_finalizer_of_a_built_in_object_requires_a_domain(kube: Kube, finalizer: str) -> None:
    create(kube, NODES, {"metadata": {"name": "a"}})
    with pytest.raises(Invalid, match="finalizers"):
        patch(kube, f"{NODES}/a", {"metadata": {"finalizers": [finalizer]}})


def test_empty_metadata_fields_are_omitted(kube: Kube) -> None:
    empty: dict[str, Any] = {"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}
    assert set(empty).isdisjoint(create(kube, NODES, {"metadata": {"name": "a"} | empty})["metadata"])


def test_metadata_cannot_be_patched_to_null(kube: Kube) -> None:
    create(kube, NODES, {"metadata": {"name": "a"}})
    with pytest.raises(Invalid):
        patch(kube, f"{NODES}/a", {"metadata": None})


@pytest.mark.parametrize(
    "taints",
    [
        [TAINT, TAINT],
        [TAINT, TAINT | {"value": "b"}],
        [{"key": "a"}],
        [{"key": "a", "effect": "Never"}],
    ],
)
def test_duplicate_or_invalid_taint_is_rejected(kube: Kube, taints: list[dict[str, str]]) -> None:
    with pytest.raises(Invalid, match="taints"):
        create(kube, NODES, {"metadata": {"name": "a"}, "spec": {"taints": taints}})
    create(kube, NODES, {"metadata": {"name": "a"}, "spec": {"taints": [TAINT, TAINT | {"effect": "NoExecute"}]}})
    with pytest.raises(Invalid, match="taints"):
        patch(kube, f"{NODES}/a", {"spec": {"taints": taints}})


def test_negative_list_limit_means_no_limit(kube: Kube, pods: str) -> None:
    for name in ("a", "b"):
        create(kube, pods, make_pod(name))
    assert list_names(list_objects(kube, pods, limit=-1)) == ["a", "b"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"minAvailable": 1, "maxUnavailable": 1},
        {"minAvailable": -1},
        {"maxUnavailable": "5"},
        {"maxUnavailable": "101%"},
        {"minAvailable": "1.5%"},
        {"minAvailable": 1, "unhealthyPodEvictionPolicy": "Never"},
    ],
)
def test_invalid_pod_disruption_budget_is_rejected(kube: Kube, namespace: str, wrong: dict[str, Any]) -> None:
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    with pytest.raises(Invalid, match="spec"):
        create(kube, budgets, {"metadata": {"name": "a"}, "spec": {"selector": {}} | wrong})
    for name, good in (("b", {"minAvailable": 0}), ("c", {"maxUnavailable": "100%"}), ("d", {})):
        create(kube, budgets, {"metadata": {"name": name}, "spec": {"selector": {}} | good})


@pytest.mark.parametrize(
    "wrong",
    [
        {"apiVersion": "policy/v2"},
        {"apiVersion": "v1", "kind": "Pod"},
        {"metadata": {"name": "cart", "namespace": "other"}},
    ],
)
def test_eviction_of_a_different_kind_or_namespace_is_rejected(
    kube: Kube, pods: str, namespace: str, wrong: dict[str, Any]
) -> None:
    create(kube, pods, make_pod("cart", nodeName="n1"))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "cart", "namespace": namespace}}
    with pytest.raises(Invalid):
        create(kube, f"{pods}/cart/eviction", eviction | wrong)
    create(kube, f"{pods}/cart/eviction", eviction)


def test_node_event_outside_the_default_namespace_is_rejected(kube: Kube) -> None:
    event = {"metadata": {"generateName": "e-"}, "involvedObject": {"kind": "Node", "name": "a"}, "reason": "Seen"}
    with pytest.raises(Invalid, match="namespace"):
        create(kube, "/api/v1/namespaces/kube-system/events", event)
    created = create(kube, "/api/v1/namespaces/default/events", event)
    assert not created.get("count")
    assert not created.get("lastTimestamp")


def test_custom_resource_without_api_version_and_kind_is_rejected(kube: Kube) -> None:
    with pytest.raises(Invalid):
        create(kube, "/apis/karpenter.sh/v1/nodepools", {"metadata": {"name": "a"}, "spec": POOL})


def test_null_fields_of_a_custom_resource_are_dropped(kube: Kube) -> None:
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "a"}}
    spec = create(kube, "/apis/karpenter.sh/v1/nodepools", pool | {"spec": POOL | {"limits": None, "weight": None}})
    assert {"limits", "weight"}.isdisjoint(spec["spec"])
