"""What kube-scheduler does with `status.nominatedNodeName` written by another component: what hints rely on.

tests/unit/sim/cluster/kube_scheduler/test_nominator.py asserts the same of the embedded scheduler.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from shared.errors import NotFound
from shared.kubernetes.client import KubeClient
from tests.contract.kube_front import create, make_pod, patch, read, wait_until
from tests.controlplane.fixtures import clear_collection
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

NODES = "/api/v1/nodes"
CLOSED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
SILENT = [{"key": f"node.kubernetes.io/{word}", "operator": "Exists"} for word in ("not-ready", "unreachable")]
"""What nodes without a kubelet get: the one at once, the other after a minute."""
GATE = {"name": "example.com/gate"}
ROOM = {"cpu": "4", "memory": "16Gi", "pods": "20"}


@pytest.fixture
def kube(cluster: ControlPlane) -> Iterator[KubeClient]:
    client = cluster.get_client()
    yield client
    for name in ("hint-a", "hint-b"):
        with contextlib.suppress(NotFound):
            client.delete(f"{NODES}/{name}")


@pytest.fixture
def pods(kube: KubeClient) -> Iterator[str]:
    name = create(kube, "/api/v1/namespaces", {"metadata": {"generateName": "hints-"}})["metadata"]["name"]
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    wait_until(lambda: kube.read(account))
    yield f"/api/v1/namespaces/{name}/pods"
    kube.delete(f"/api/v1/namespaces/{name}")
    clear_collection(kube, f"/api/v1/namespaces/{name}/pods")


def create_closed_node(kube: KubeClient, name: str, **room: str) -> None:
    """Let a node join that has no kubelet: nothing on it ever runs."""
    labels = {"hints": "here", "hint": name}
    create(kube, NODES, {"metadata": {"name": name, "labels": labels}, "spec": {"taints": [CLOSED]}})
    patch(kube, f"{NODES}/{name}/status", {"status": {"allocatable": ROOM | room, "capacity": ROOM | room}})


def open_nodes(kube: KubeClient, *names: str) -> None:
    for name in names:
        patch(kube, f"{NODES}/{name}", {"spec": {"taints": None}})


def create_unschedulable_pod(kube: KubeClient, pods: str, name: str, cpu: str) -> None:
    """Create a pod for the nodes of this test, and wait until it was tried in vain."""
    pod_manifest = make_pod(name, nodeSelector={"hints": "here"}, tolerations=SILENT)
    pod_manifest["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    create(kube, pods, pod_manifest)
    wait_until(lambda: "Unschedulable" in str(read_pod_status(kube, pods, name)))


def read_pod_status(kube: KubeClient, pods: str, name: str) -> dict[str, Any]:
    pod_status: dict[str, Any] = read(kube, f"{pods}/{name}")["status"]
    return pod_status


def set_nominated_node(kube: KubeClient, pods: str, name: str, node: str) -> None:
    """Write the nominated node name and wait until kube-scheduler has read it, before it hears of a node.

    kube-scheduler does not report that it has read the hint, but it reads pods in the order in which they were written
    and reports each pod that it cannot schedule.
    """
    patch(kube, f"{pods}/{name}/status", {"status": {"nominatedNodeName": node}})
    create(kube, pods, make_pod("later", nodeSelector={"hints": "nowhere"}))
    wait_until(lambda: "Unschedulable" in str(read_pod_status(kube, pods, "later")))


def expect_pod_on_node(kube: KubeClient, pods: str, name: str, node: str) -> None:
    wait_until(lambda: read(kube, f"{pods}/{name}")["spec"].get("nodeName") == node)


def test_nominated_node_is_used_although_another_node_is_emptier(kube: KubeClient, pods: str) -> None:
    """Both are open by the time that it may be placed: a pod at a gate is not tried."""
    create(kube, pods, make_pod("cart", nodeSelector={"hints": "here"}, tolerations=SILENT, schedulingGates=[GATE]))
    patch(kube, f"{pods}/cart/status", {"status": {"nominatedNodeName": "hint-a"}})
    create_closed_node(kube, "hint-a")
    create_closed_node(kube, "hint-b", cpu="64")
    open_nodes(kube, "hint-a", "hint-b")
    for name in ("hint-a", "hint-b"):
        create(kube, pods, make_pod(f"on-{name}", nodeSelector={"hint": name}, tolerations=SILENT))
        expect_pod_on_node(kube, pods, f"on-{name}", name)
    patch(kube, f"{pods}/cart", {"spec": {"schedulingGates": None}})
    expect_pod_on_node(kube, pods, "cart", "hint-a")
    assert "nominatedNodeName" not in read_pod_status(kube, pods, "cart")


def test_nominated_node_reserves_capacity_for_its_pod(kube: KubeClient, pods: str) -> None:
    create_closed_node(kube, "hint-a")
    for number in range(4):
        create_unschedulable_pod(kube, pods, f"other-{number}", "3")
    create_unschedulable_pod(kube, pods, "cart", "3")
    set_nominated_node(kube, pods, "cart", "hint-a")
    open_nodes(kube, "hint-a")
    expect_pod_on_node(kube, pods, "cart", "hint-a")


def test_nominated_node_that_does_not_exist_is_ignored(kube: KubeClient, pods: str) -> None:
    create_closed_node(kube, "hint-a")
    create_unschedulable_pod(kube, pods, "cart", "1")
    set_nominated_node(kube, pods, "cart", "hint-gone")
    open_nodes(kube, "hint-a")
    expect_pod_on_node(kube, pods, "cart", "hint-a")


def test_failed_scheduling_attempt_clears_the_nominated_node(kube: KubeClient, pods: str) -> None:
    create_closed_node(kube, "hint-a")
    create_unschedulable_pod(kube, pods, "cart", "1")
    set_nominated_node(kube, pods, "cart", "hint-a")
    create_closed_node(kube, "hint-b", cpu="500m")
    open_nodes(kube, "hint-b")
    wait_until(lambda: "nominatedNodeName" not in read_pod_status(kube, pods, "cart"))
    assert "nodeName" not in read(kube, f"{pods}/cart")["spec"]
