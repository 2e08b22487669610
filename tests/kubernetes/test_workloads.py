"""Real controllers and a real scheduler on nodes whose life is kwok's: what Joiner will see of a cluster."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from shared.errors import EvictionRefused, Gone
from shared.kube.client import KubeClient
from sim.cluster.kubelet_boot import Boot
from tests.contract.kube_front import create, eventually, is_gone, patch, pod, read
from tests.controlplane import nodes
from tests.controlplane.commands import KWOK_ANNOTATION
from tests.controlplane.fixtures import empty
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

NODE = "/api/v1/nodes/ip-10-0-0-7.ec2.internal"
STARTUP = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
BOOT = Boot(
    node_name="ip-10-0-0-7.ec2.internal",
    provider_id="aws:///us-east-1a/i-0123456789abcdef0",
    instance_type="m7g.large",
    zone="us-east-1a",
    region="us-east-1",
    arch="arm64",
    capacity={"cpu": "2", "memory": "8Gi", "pods": "29"},
    allocatable={"cpu": "1930m", "memory": "7Gi", "pods": "29"},
    labels={"karpenter.sh/nodepool": "default"},
    taints=(STARTUP,),
)


@pytest.fixture
def kube(cluster: ControlPlane) -> KubeClient:
    return cluster.client()


@pytest.fixture
def namespace(kube: KubeClient) -> Iterator[str]:
    """One of the test's own, whose pods go at once: those of a node that is gone would stay for a minute."""
    name = create(kube, "/api/v1/namespaces", {"metadata": {"generateName": "shop-"}})["metadata"]["name"]
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    eventually(lambda: kube.read(account))
    yield name
    kube.delete(f"/api/v1/namespaces/{name}")
    empty(kube, f"/api/v1/namespaces/{name}/pods")


@pytest.fixture
def node(kube: KubeClient) -> Iterator[str]:
    nodes.register(kube, BOOT, datetime.now(UTC))
    yield NODE
    nodes.remove(kube, BOOT.node_name)


def untaint(kube: KubeClient) -> None:
    taints = read(kube, NODE)["spec"].get("taints", [])
    kept = [taint for taint in taints if taint["key"] != STARTUP["key"]]
    patch(kube, NODE, {"spec": {"taints": kept or None}})


def deployed(kube: KubeClient, namespace: str, replicas: int, **spec: object) -> Callable[[], list[dict[str, Any]]]:
    """Create a Deployment of pods of 500m; answer what lists its pods."""
    labels = {"app": "cart"}
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    template = pod("", containers=[{"name": "app", "image": "app", "resources": resources}], **spec)["spec"]
    wish = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": template},
    }
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    create(kube, path, {"metadata": {"name": "cart"}, "spec": wish})
    return lambda: msgspec.json.decode(kube.list(f"/api/v1/namespaces/{namespace}/pods"))["items"]


def has(pod: dict[str, Any], kind: str, status: str = "True", reason: str = "") -> bool:
    conditions = pod["status"].get("conditions", ())
    return any((one["type"], one["status"], one.get("reason", "")) == (kind, status, reason) for one in conditions)


def is_ready(kube: KubeClient) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in read(kube, NODE)["status"]["conditions"])


def test_a_node_is_kept_alive_by_kwok_and_keeps_its_startup_taint(kube: KubeClient, node: str) -> None:
    eventually(lambda: is_ready(kube))
    eventually(lambda: read(kube, node)["spec"]["taints"] == [STARTUP])
    made = read(kube, node)
    assert made["status"]["allocatable"] == dict(BOOT.allocatable)
    assert made["metadata"]["labels"]["topology.kubernetes.io/zone"] == "us-east-1a"
    lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{BOOT.node_name}"
    eventually(lambda: read(kube, lease)["spec"]["renewTime"])


def test_pods_wait_unschedulable_and_run_when_a_node_has_come(kube: KubeClient, namespace: str) -> None:
    pods = deployed(kube, namespace, 3)
    eventually(lambda: [has(one, "PodScheduled", "False", "Unschedulable") for one in pods()] == [True] * 3)
    nodes.register(kube, BOOT, datetime.now(UTC))
    try:
        eventually(lambda: is_ready(kube))
        assert not any(one["spec"].get("nodeName") for one in pods())
        untaint(kube)
        eventually(lambda: [one["status"]["phase"] for one in pods()] == ["Running"] * 3, 30)
        assert {one["spec"]["nodeName"] for one in pods()} == {BOOT.node_name}
        assert all(one["status"]["podIP"] for one in pods())
    finally:
        nodes.remove(kube, BOOT.node_name)


def test_a_budget_guards_what_the_controller_has_counted(kube: KubeClient, namespace: str, node: str) -> None:
    eventually(lambda: is_ready(kube))
    untaint(kube)
    pods = deployed(kube, namespace, 2)
    eventually(lambda: [has(one, "Ready") for one in pods()] == [True] * 2, 30)
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    guard = {"metadata": {"name": "guard"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "cart"}}}}
    create(kube, budgets, guard)
    eventually(lambda: read(kube, f"{budgets}/guard")["status"]["disruptionsAllowed"] == 1)
    patch(kube, node, {"spec": {"unschedulable": True}})
    first, second = (one["metadata"]["name"] for one in pods())
    evict(kube, namespace, first)
    with pytest.raises(EvictionRefused, match="disruption budget"):
        evict(kube, namespace, second)
    eventually(lambda: is_gone(kube, f"/api/v1/namespaces/{namespace}/pods/{first}"))
    eventually(lambda: any(has(one, "PodScheduled", "False", "Unschedulable") for one in pods()))


def evict(kube: KubeClient, namespace: str, name: str) -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
    create(kube, f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", eviction)


def test_a_daemon_comes_with_the_node(kube: KubeClient, namespace: str, node: str) -> None:
    labels = {"app": "agent"}
    template = {"metadata": {"labels": labels}, "spec": pod("", tolerations=[{"operator": "Exists"}])["spec"]}
    wish = {"selector": {"matchLabels": labels}, "template": template}
    path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets"
    create(kube, path, {"metadata": {"name": "agent"}, "spec": wish})
    eventually(lambda: read(kube, f"{path}/agent")["status"].get("numberReady") == 1, 30)
    assert read(kube, node)["spec"]["taints"] == [STARTUP]


def test_a_machine_that_is_silenced_is_left_alone(kube: KubeClient, node: str) -> None:
    eventually(lambda: is_ready(kube))
    nodes.silence(kube, BOOT.node_name)
    assert KWOK_ANNOTATION not in read(kube, node)["metadata"].get("annotations", {})
    nodes.remove(kube, BOOT.node_name)
    nodes.remove(kube, BOOT.node_name)
    nodes.silence(kube, BOOT.node_name)
    with pytest.raises(Gone):
        kube.read(node)
