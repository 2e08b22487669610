"""Real controllers and a real scheduler on nodes whose life is kwok's: what Joiner will see of a cluster."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from shared.errors import Conflict, EvictionRefused, Gone
from shared.kube.client import KubeClient
from sim import playground_nodes as nodes
from sim.clock import Clock
from sim.cluster.kubelet_boot import Boot
from sim.cluster.live import LiveCluster
from sim.cluster.stages import STOP_SECONDS
from sim.playground_nodes import KWOK
from tests.contract.kube_front import create, eventually, is_gone, patch, pod, read
from tests.controlplane.fixtures import empty
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

NODE = "/api/v1/nodes/ip-10-0-0-7.ec2.internal"
UNREACHABLE = "node.kubernetes.io/unreachable"
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
    join(kube)
    yield NODE
    nodes.remove(kube, BOOT.node_name)


def join(kube: KubeClient) -> None:
    """Let the machine register, the cloud complete its Node, and kwok take charge of it."""
    nodes.register(kube, BOOT, datetime.now(UTC))
    eventually(lambda: is_completed(kube))
    nodes.wake(kube, BOOT.node_name)


def is_completed(kube: KubeClient) -> bool:
    """Whether it could be completed: a new Node is everybody's, and who changes it first wins."""
    try:
        nodes.complete(kube, BOOT)
    except Conflict:
        return False
    return True


def taints(kube: KubeClient) -> list[dict[str, str]]:
    """Answer the Node's, but for when one was added."""
    found = read(kube, NODE)["spec"].get("taints", [])
    return [{key: value for key, value in taint.items() if key != "timeAdded"} for taint in found]


def untaint(kube: KubeClient) -> None:
    kept = [taint for taint in taints(kube) if taint["key"] != STARTUP["key"]]
    patch(kube, NODE, {"spec": {"taints": kept or None}})


def deployed(kube: KubeClient, namespace: str, replicas: int, **spec: object) -> Callable[[], list[dict[str, Any]]]:
    """Create a Deployment of pods of 500m; answer what lists its pods."""
    labels = {"app": "cart"}
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    containers = [{"name": "app", "image": "app", "resources": resources}]
    template = pod("", containers=containers, terminationGracePeriodSeconds=1, **spec)["spec"]
    wish = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": template},
    }
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    create(kube, path, {"metadata": {"name": "cart"}, "spec": wish})
    pods = f"/api/v1/namespaces/{namespace}/pods"
    return lambda: msgspec.json.decode(kube.list(pods, label_selector="app=cart"))["items"]


def has(pod: dict[str, Any], kind: str, status: str = "True", reason: str = "") -> bool:
    conditions = pod["status"].get("conditions", ())
    return any((one["type"], one["status"], one.get("reason", "")) == (kind, status, reason) for one in conditions)


def is_ready(kube: KubeClient) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in read(kube, NODE)["status"]["conditions"])


def test_a_node_is_kept_alive_by_kwok_and_keeps_its_startup_taint(kube: KubeClient, node: str) -> None:
    eventually(lambda: is_ready(kube))
    eventually(lambda: taints(kube) == [STARTUP])
    made = read(kube, node)
    assert made["status"]["allocatable"] == dict(BOOT.allocatable)
    assert made["metadata"]["labels"]["topology.kubernetes.io/zone"] == "us-east-1a"
    lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{BOOT.node_name}"
    eventually(lambda: read(kube, lease)["spec"]["renewTime"])


def test_pods_wait_unschedulable_and_run_when_a_node_has_come(kube: KubeClient, namespace: str) -> None:
    pods = deployed(kube, namespace, 3)
    eventually(lambda: [has(one, "PodScheduled", "False", "Unschedulable") for one in pods()] == [True] * 3)
    join(kube)
    try:
        eventually(lambda: is_ready(kube))
        assert not any(one["spec"].get("nodeName") for one in pods())
        untaint(kube)
        eventually(lambda: [one["status"]["phase"] for one in pods() if one["status"]["podIP"]] == ["Running"] * 3)
        assert {one["spec"]["nodeName"] for one in pods()} == {BOOT.node_name}
    finally:
        nodes.remove(kube, BOOT.node_name)


def test_a_budget_guards_what_the_controller_has_counted(kube: KubeClient, namespace: str, node: str) -> None:
    eventually(lambda: is_ready(kube))
    untaint(kube)
    pods = deployed(kube, namespace, 2)
    eventually(lambda: [has(one, "Ready") for one in pods()] == [True] * 2)
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    guard = {"metadata": {"name": "guard"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "cart"}}}}
    create(kube, budgets, guard)
    eventually(lambda: read(kube, f"{budgets}/guard")["status"]["disruptionsAllowed"] == 1)
    patch(kube, node, {"spec": {"unschedulable": True}})
    eventually(lambda: is_unwelcome(kube, namespace))
    first, second = (one["metadata"]["name"] for one in pods())
    evict(kube, namespace, first)
    with pytest.raises(EvictionRefused, match="disruption budget"):
        evict(kube, namespace, second)
    eventually(lambda: is_gone(kube, f"/api/v1/namespaces/{namespace}/pods/{first}"))
    eventually(lambda: any(has(one, "PodScheduled", "False", "Unschedulable") for one in pods()))


def is_unwelcome(kube: KubeClient, namespace: str) -> bool:
    """Whether kube-scheduler refuses a new pod: it hears of a cordon some time after the API server."""
    made = create(kube, f"/api/v1/namespaces/{namespace}/pods", pod("") | {"metadata": {"generateName": "probe-"}})
    path = f"/api/v1/namespaces/{namespace}/pods/{made['metadata']['name']}"
    eventually(lambda: "PodScheduled" in str(read(kube, path)["status"]))
    return has(read(kube, path), "PodScheduled", "False", "Unschedulable")


def evict(kube: KubeClient, namespace: str, name: str) -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
    create(kube, f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", eviction)


@pytest.mark.usefixtures("node")
def test_a_daemon_comes_with_the_node(kube: KubeClient, namespace: str) -> None:
    labels = {"app": "agent"}
    template = {"metadata": {"labels": labels}, "spec": pod("", tolerations=[{"operator": "Exists"}])["spec"]}
    wish = {"selector": {"matchLabels": labels}, "template": template}
    path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets"
    create(kube, path, {"metadata": {"name": "agent"}, "spec": wish})
    eventually(lambda: read(kube, f"{path}/agent")["status"].get("numberReady") == 1)
    eventually(lambda: taints(kube) == [STARTUP])


def test_a_node_looks_as_eks_makes_it(kube: KubeClient, node: str) -> None:
    """It is what the embedded cluster makes, to the field, and nothing of it is kwok's but the label."""
    eventually(lambda: is_ready(kube) and taints(kube) == [STARTUP])
    made, live = read(kube, node), LiveCluster(Clock(datetime.now(UTC)))
    live.start_node(BOOT)
    live.run(timedelta(minutes=1))
    expected = live.api.get("nodes", BOOT.node_name)
    assert made["metadata"]["labels"] == {**expected["metadata"]["labels"], KWOK: "fake"}
    assert made["spec"]["providerID"] == expected["spec"]["providerID"] == BOOT.provider_id
    assert expected["spec"]["taints"] == [STARTUP]
    for part in ("capacity", "allocatable", "addresses", "nodeInfo"):
        assert made["status"][part] == expected["status"][part], part
    assert conditions(made) == conditions(expected)
    assert "kwok" not in str(made["status"])


def conditions(node: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(one["type"], one["status"], one["reason"]) for one in node["status"]["conditions"]}


@pytest.mark.usefixtures("node")
def test_a_pod_takes_its_grace_to_stop_and_no_more(kube: KubeClient, namespace: str) -> None:
    eventually(lambda: is_ready(kube))
    untaint(kube)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    graces = {"slow": (4, {}), "quick": (600, {STOP_SECONDS: "1"}), "greedy": (4, {STOP_SECONDS: "3600"})}
    for name, (grace, annotations) in graces.items():
        made = pod(name, terminationGracePeriodSeconds=grace)
        made["metadata"]["annotations"] = annotations
        create(kube, pods, made)
    eventually(lambda: all(has(read(kube, f"{pods}/{name}"), "Ready") for name in graces))
    due: dict[str, datetime] = {}
    for name, (grace, _) in graces.items():
        due[name] = datetime.now(UTC) + timedelta(seconds=grace)
        kube.delete(f"{pods}/{name}")
    gone: dict[str, datetime] = {}

    def all_gone() -> bool:
        for name in graces.keys() - gone.keys():
            if is_gone(kube, f"{pods}/{name}"):
                gone[name] = datetime.now(UTC)
        return gone.keys() == graces.keys()

    eventually(all_gone)
    whole_seconds = timedelta(seconds=2)  # of the deletion's own instant, and of kwok's reckoning
    assert [name for name in graces if gone[name] < due[name] - whole_seconds] == ["quick"]


@pytest.mark.usefixtures("node")
def test_a_pod_that_is_told_again_stops_sooner(kube: KubeClient, namespace: str) -> None:
    eventually(lambda: is_ready(kube))
    untaint(kube)
    path = f"/api/v1/namespaces/{namespace}/pods/slow"
    create(kube, path.rpartition("/")[0], pod("slow", terminationGracePeriodSeconds=600))
    eventually(lambda: has(read(kube, path), "Ready"))
    kube.delete(path)
    assert read(kube, path)["metadata"]["deletionGracePeriodSeconds"] == 600
    kube.delete(path, b'{"gracePeriodSeconds":1}')
    eventually(lambda: is_gone(kube, path))


def test_a_machine_that_falls_silent_is_lost_and_may_come_back(kube: KubeClient, namespace: str, node: str) -> None:
    """After the grace that nodes have: Ready is Unknown, the taints of lost nodes come, and nothing starts there."""
    eventually(lambda: is_ready(kube))
    untaint(kube)
    nodes.silence(kube, BOOT.node_name)
    assert KWOK not in read(kube, node)["metadata"]["labels"]
    eventually(lambda: ("Ready", "Unknown", "NodeStatusUnknown") in conditions(read(kube, node)))
    eventually(lambda: {"key": UNREACHABLE, "effect": "NoSchedule"} in taints(kube))
    path = f"/api/v1/namespaces/{namespace}/pods/late"
    create(kube, path.rpartition("/")[0], pod("late", nodeName=BOOT.node_name, tolerations=[{"operator": "Exists"}]))
    nodes.wake(kube, BOOT.node_name)
    eventually(lambda: is_ready(kube))
    eventually(lambda: not taints(kube))
    eventually(lambda: has(read(kube, path), "Ready"))


def test_a_silent_machine_runs_nothing_and_its_node_may_be_removed(kube: KubeClient, namespace: str, node: str) -> None:
    eventually(lambda: is_ready(kube))
    nodes.silence(kube, BOOT.node_name)
    eventually(lambda: ("Ready", "Unknown", "NodeStatusUnknown") in conditions(read(kube, node)))  # kwok has let go
    path = f"/api/v1/namespaces/{namespace}/pods/lost"
    create(kube, path.rpartition("/")[0], pod("lost", nodeName=BOOT.node_name, tolerations=[{"operator": "Exists"}]))
    time.sleep(2)
    assert read(kube, path)["status"]["phase"] == "Pending"
    nodes.remove(kube, BOOT.node_name)
    nodes.remove(kube, BOOT.node_name)
    nodes.silence(kube, BOOT.node_name)
    with pytest.raises(Gone):
        kube.read(node)
    with pytest.raises(Gone):
        nodes.wake(kube, BOOT.node_name)
