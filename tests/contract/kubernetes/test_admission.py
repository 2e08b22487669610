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


def test_a_namespace_is_labelled_with_its_name(kube: Kube, namespace: str) -> None:
    labels = read(kube, f"/api/v1/namespaces/{namespace}")["metadata"]["labels"]
    assert labels == {"kubernetes.io/metadata.name": namespace}


def test_what_is_limited_is_requested(kube: Kube, pods: str) -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    created = create(kube, pods, make_pod("cart", **make_container_spec(resources=resources)))
    assert created["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_a_port_on_the_nodes_network_is_a_port_of_the_node(kube: Kube, pods: str) -> None:
    created = create(
        kube, pods, make_pod("cart", hostNetwork=True, **make_container_spec(ports=[{"containerPort": 80}]))
    )
    assert created["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


def test_a_negative_grace_is_a_second(kube: Kube, pods: str) -> None:
    spec = create(kube, pods, make_pod("cart", terminationGracePeriodSeconds=-5))["spec"]
    assert spec["terminationGracePeriodSeconds"] == 1


def test_a_gated_pod_says_so(kube: Kube, pods: str) -> None:
    created = create(kube, pods, make_pod("cart", schedulingGates=[{"name": "example.com/wait"}]))
    [condition] = created["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


def test_the_grace_of_a_pod_is_fixed(kube: Kube, pods: str) -> None:
    create(kube, pods, make_pod("cart"))
    with pytest.raises(Invalid, match="spec"):
        patch(kube, f"{pods}/cart", {"spec": {"terminationGracePeriodSeconds": 5}})


def test_default_tolerations_come_back_and_others_stay(kube: Kube, pods: str) -> None:
    default_tolerations = create(kube, pods, make_pod("cart"))["spec"]["tolerations"]
    assert patch(kube, f"{pods}/cart", {"spec": {"tolerations": []}})["spec"]["tolerations"] == default_tolerations
    create(kube, pods, make_pod("shop", tolerations=[{"key": "a", "operator": "Exists"}]))
    with pytest.raises(Invalid, match="tolerations"):
        patch(kube, f"{pods}/shop", {"spec": {"tolerations": []}})


def test_a_status_can_be_taken_back(kube: Kube, pods: str) -> None:
    create(kube, pods, make_pod("cart"))
    assert patch(kube, f"{pods}/cart/status", {"status": None})["status"] == {"qosClass": "BestEffort"}


@pytest.mark.parametrize("finalizer", ["hold", "a b/c"])
def test_a_finalizer_of_a_built_in_object_has_a_domain(kube: Kube, finalizer: str) -> None:
    create(kube, NODES, {"metadata": {"name": "a"}})
    with pytest.raises(Invalid, match="finalizers"):
        patch(kube, f"{NODES}/a", {"metadata": {"finalizers": [finalizer]}})


def test_what_is_empty_is_not_there(kube: Kube) -> None:
    empty: dict[str, Any] = {"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}
    assert set(empty).isdisjoint(create(kube, NODES, {"metadata": {"name": "a"} | empty})["metadata"])


def test_an_object_without_metadata_is_nobody(kube: Kube) -> None:
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
def test_a_taint_is_one_of_its_key_and_effect(kube: Kube, taints: list[dict[str, str]]) -> None:
    with pytest.raises(Invalid, match="taints"):
        create(kube, NODES, {"metadata": {"name": "a"}, "spec": {"taints": taints}})
    create(kube, NODES, {"metadata": {"name": "a"}, "spec": {"taints": [TAINT, TAINT | {"effect": "NoExecute"}]}})
    with pytest.raises(Invalid, match="taints"):
        patch(kube, f"{NODES}/a", {"spec": {"taints": taints}})


def test_a_limit_below_one_is_none(kube: Kube, pods: str) -> None:
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
def test_a_budget_counts_pods_or_percent_one_way(kube: Kube, namespace: str, wrong: dict[str, Any]) -> None:
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
def test_an_eviction_is_one(kube: Kube, pods: str, namespace: str, wrong: dict[str, Any]) -> None:
    create(kube, pods, make_pod("cart", nodeName="n1"))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "cart", "namespace": namespace}}
    with pytest.raises(Invalid):
        create(kube, f"{pods}/cart/eviction", eviction | wrong)
    create(kube, f"{pods}/cart/eviction", eviction)


def test_an_event_about_a_node_lives_nowhere_but_in_default(kube: Kube) -> None:
    event = {"metadata": {"generateName": "e-"}, "involvedObject": {"kind": "Node", "name": "a"}, "reason": "Seen"}
    with pytest.raises(Invalid, match="namespace"):
        create(kube, "/api/v1/namespaces/kube-system/events", event)
    created = create(kube, "/api/v1/namespaces/default/events", event)
    assert not created.get("count")
    assert not created.get("lastTimestamp")


def test_a_custom_resource_says_what_it_is(kube: Kube) -> None:
    with pytest.raises(Invalid):
        create(kube, "/apis/karpenter.sh/v1/nodepools", {"metadata": {"name": "a"}, "spec": POOL})


def test_null_is_not_there_for_a_custom_resource(kube: Kube) -> None:
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "a"}}
    spec = create(kube, "/apis/karpenter.sh/v1/nodepools", pool | {"spec": POOL | {"limits": None, "weight": None}})
    assert {"limits", "weight"}.isdisjoint(spec["spec"])
