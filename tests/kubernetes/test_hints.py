"""What kube-scheduler makes of `status.nominatedNodeName` when somebody else writes it: all that hints rely on.

The embedded scheduler is held to the same by tests/unit/test_cluster_nominations.py.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from shared.errors import Gone
from shared.kube.client import KubeClient
from tests.contract.kube_front import create, eventually, patch, pod, read
from tests.controlplane.fixtures import empty
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
    client = cluster.client()
    yield client
    for name in ("hint-a", "hint-b"):
        with contextlib.suppress(Gone):
            client.delete(f"{NODES}/{name}")


@pytest.fixture
def pods(kube: KubeClient) -> Iterator[str]:
    name = create(kube, "/api/v1/namespaces", {"metadata": {"generateName": "hints-"}})["metadata"]["name"]
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    eventually(lambda: kube.read(account))
    yield f"/api/v1/namespaces/{name}/pods"
    kube.delete(f"/api/v1/namespaces/{name}")
    empty(kube, f"/api/v1/namespaces/{name}/pods")


def closed_node(kube: KubeClient, name: str, **room: str) -> None:
    """Let a node join that has no kubelet: nothing on it ever runs."""
    labels = {"hints": "here", "hint": name}
    create(kube, NODES, {"metadata": {"name": name, "labels": labels}, "spec": {"taints": [CLOSED]}})
    patch(kube, f"{NODES}/{name}/status", {"status": {"allocatable": ROOM | room, "capacity": ROOM | room}})


def opened(kube: KubeClient, *names: str) -> None:
    for name in names:
        patch(kube, f"{NODES}/{name}", {"spec": {"taints": None}})


def waiting(kube: KubeClient, pods: str, name: str, cpu: str) -> None:
    """Create a pod for the nodes of this test, and wait until it was tried in vain."""
    made = pod(name, nodeSelector={"hints": "here"}, tolerations=SILENT)
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    create(kube, pods, made)
    eventually(lambda: "Unschedulable" in str(status(kube, pods, name)))


def status(kube: KubeClient, pods: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = read(kube, f"{pods}/{name}")["status"]
    return found


def hint(kube: KubeClient, pods: str, name: str, node: str) -> None:
    """Write one, and let kube-scheduler read it before it hears of a node.

    It tells nobody when it has; but it hears of pods in the order in which they were written, and tells of every pod
    that it has tried in vain.
    """
    patch(kube, f"{pods}/{name}/status", {"status": {"nominatedNodeName": node}})
    create(kube, pods, pod("later", nodeSelector={"hints": "nowhere"}))
    eventually(lambda: "Unschedulable" in str(status(kube, pods, "later")))


def is_on(kube: KubeClient, pods: str, name: str, node: str) -> None:
    eventually(lambda: read(kube, f"{pods}/{name}")["spec"].get("nodeName") == node)


def test_the_hint_is_followed_though_another_node_is_emptier(kube: KubeClient, pods: str) -> None:
    """Both are open by the time that it may be placed: a pod at a gate is not tried."""
    create(kube, pods, pod("cart", nodeSelector={"hints": "here"}, tolerations=SILENT, schedulingGates=[GATE]))
    patch(kube, f"{pods}/cart/status", {"status": {"nominatedNodeName": "hint-a"}})
    closed_node(kube, "hint-a")
    closed_node(kube, "hint-b", cpu="64")
    opened(kube, "hint-a", "hint-b")
    for name in ("hint-a", "hint-b"):
        create(kube, pods, pod(f"on-{name}", nodeSelector={"hint": name}, tolerations=SILENT))
        is_on(kube, pods, f"on-{name}", name)
    patch(kube, f"{pods}/cart", {"spec": {"schedulingGates": None}})
    is_on(kube, pods, "cart", "hint-a")
    assert "nominatedNodeName" not in status(kube, pods, "cart")


def test_room_is_kept_for_those_with_a_hint(kube: KubeClient, pods: str) -> None:
    closed_node(kube, "hint-a")
    for number in range(4):
        waiting(kube, pods, f"other-{number}", "3")
    waiting(kube, pods, "cart", "3")
    hint(kube, pods, "cart", "hint-a")
    opened(kube, "hint-a")
    is_on(kube, pods, "cart", "hint-a")


def test_a_stale_hint_does_no_harm(kube: KubeClient, pods: str) -> None:
    closed_node(kube, "hint-a")
    waiting(kube, pods, "cart", "1")
    hint(kube, pods, "cart", "hint-gone")
    opened(kube, "hint-a")
    is_on(kube, pods, "cart", "hint-a")


def test_who_is_tried_in_vain_loses_the_hint(kube: KubeClient, pods: str) -> None:
    closed_node(kube, "hint-a")
    waiting(kube, pods, "cart", "1")
    hint(kube, pods, "cart", "hint-a")
    closed_node(kube, "hint-b", cpu="500m")
    opened(kube, "hint-b")
    eventually(lambda: "nominatedNodeName" not in status(kube, pods, "cart"))
    assert "nodeName" not in read(kube, f"{pods}/cart")["spec"]
