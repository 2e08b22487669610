"""Real controllers and a real kube-scheduler on nodes simulated by kwok: what Joiner sees of a cluster."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from shared.errors import Conflict, EvictionRefused, NotFound
from shared.kubernetes.client import KubeClient
from sim.cluster.cluster import SimulatedCluster
from sim.cluster.kubelet.node_boot_data import NodeBoot
from sim.cluster.kubelet.pod_stages import STOP_SECONDS_ANNOTATION
from sim.playground import nodes
from sim.playground.nodes import KWOK_LABEL
from sim.time.virtual_clock import Clock
from tests.contract.kube_front import create, is_gone, make_pod, patch, read, wait_until
from tests.controlplane.fixtures import clear_collection
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

NODE = "/api/v1/nodes/ip-10-0-0-7.ec2.internal"
UNREACHABLE = "node.kubernetes.io/unreachable"
STARTUP = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
BOOT = NodeBoot(
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
    return cluster.get_client()


@pytest.fixture
def namespace(kube: KubeClient) -> Iterator[str]:
    """Create a namespace for the test and empty it at the end: pods of a removed node would stay for a minute."""
    name = create(kube, "/api/v1/namespaces", {"metadata": {"generateName": "shop-"}})["metadata"]["name"]
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    wait_until(lambda: kube.read(account))
    yield name
    kube.delete(f"/api/v1/namespaces/{name}")
    clear_collection(kube, f"/api/v1/namespaces/{name}/pods")


@pytest.fixture
def node(kube: KubeClient) -> Iterator[str]:
    join_node(kube)
    yield NODE
    nodes.delete_node(kube, BOOT.node_name)


def join_node(kube: KubeClient) -> None:
    """Register the node, initialize it as the cloud provider does, and let kwok manage it."""
    nodes.register_node(kube, BOOT, datetime.now(UTC))
    wait_until(lambda: is_completed(kube))
    nodes.start_kwok(kube, BOOT.node_name)


def is_completed(kube: KubeClient) -> bool:
    """Whether it could be completed: a new Node is everybody's, and who changes it first wins."""
    try:
        nodes.initialize_node(kube, BOOT)
    except Conflict:
        return False
    return True


def read_taints(kube: KubeClient) -> list[dict[str, str]]:
    """Read the taints of the node, without the times when they were added."""
    node_taints = read(kube, NODE)["spec"].get("taints", [])
    return [{key: value for key, value in taint.items() if key != "timeAdded"} for taint in node_taints]


def remove_startup_taint(kube: KubeClient) -> None:
    remaining_taints = [taint for taint in read_taints(kube) if taint["key"] != STARTUP["key"]]
    patch(kube, NODE, {"spec": {"taints": remaining_taints or None}})


def create_deployment(
    kube: KubeClient, namespace: str, replicas: int, **spec: object
) -> Callable[[], list[dict[str, Any]]]:
    """Create a Deployment of pods of 500m and return a function that lists its pods."""
    labels = {"app": "cart"}
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}}
    containers = [{"name": "app", "image": "app", "resources": resources}]
    template = make_pod("", containers=containers, terminationGracePeriodSeconds=1, **spec)["spec"]
    wish = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": template},
    }
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    create(kube, path, {"metadata": {"name": "cart"}, "spec": wish})
    pods = f"/api/v1/namespaces/{namespace}/pods"
    return lambda: msgspec.json.decode(kube.list(pods, label_selector="app=cart"))["items"]


def has_condition(pod: dict[str, Any], kind: str, status: str = "True", reason: str = "") -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(
        (condition["type"], condition["status"], condition.get("reason", "")) == (kind, status, reason)
        for condition in conditions
    )


def is_ready(kube: KubeClient) -> bool:
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in read(kube, NODE)["status"]["conditions"]
    )


def test_kwok_node_becomes_ready_and_keeps_its_startup_taint(kube: KubeClient, node: str) -> None:
    wait_until(lambda: is_ready(kube))
    wait_until(lambda: read_taints(kube) == [STARTUP])
    node_object = read(kube, node)
    assert node_object["status"]["allocatable"] == dict(BOOT.allocatable)
    assert node_object["metadata"]["labels"]["topology.kubernetes.io/zone"] == "us-east-1a"
    lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{BOOT.node_name}"
    wait_until(lambda: read(kube, lease)["spec"]["renewTime"])


def test_unschedulable_pods_run_after_a_node_joins(kube: KubeClient, namespace: str) -> None:
    pods = create_deployment(kube, namespace, 3)
    wait_until(lambda: [has_condition(one, "PodScheduled", "False", "Unschedulable") for one in pods()] == [True] * 3)
    join_node(kube)
    try:
        wait_until(lambda: is_ready(kube))
        assert not any(listed_pod["spec"].get("nodeName") for listed_pod in pods())
        remove_startup_taint(kube)
        wait_until(lambda: [one["status"]["phase"] for one in pods() if one["status"]["podIP"]] == ["Running"] * 3)
        assert {listed_pod["spec"]["nodeName"] for listed_pod in pods()} == {BOOT.node_name}
    finally:
        nodes.delete_node(kube, BOOT.node_name)


def test_pod_disruption_budget_blocks_the_second_eviction(kube: KubeClient, namespace: str, node: str) -> None:
    wait_until(lambda: is_ready(kube))
    remove_startup_taint(kube)
    pods = create_deployment(kube, namespace, 2)
    wait_until(lambda: [has_condition(one, "Ready") for one in pods()] == [True] * 2)
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    guard = {"metadata": {"name": "guard"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "cart"}}}}
    create(kube, budgets, guard)
    wait_until(lambda: read(kube, f"{budgets}/guard")["status"]["disruptionsAllowed"] == 1)
    patch(kube, node, {"spec": {"unschedulable": True}})
    wait_until(lambda: is_unwelcome(kube, namespace))
    first, second = (listed_pod["metadata"]["name"] for listed_pod in pods())
    evict_pod(kube, namespace, first)
    with pytest.raises(EvictionRefused, match="disruption budget"):
        evict_pod(kube, namespace, second)
    wait_until(lambda: is_gone(kube, f"/api/v1/namespaces/{namespace}/pods/{first}"))
    wait_until(lambda: any(has_condition(one, "PodScheduled", "False", "Unschedulable") for one in pods()))


def is_unwelcome(kube: KubeClient, namespace: str) -> bool:
    """Whether kube-scheduler refuses a new pod: it hears of a cordon some time after the API server."""
    probe = create(
        kube, f"/api/v1/namespaces/{namespace}/pods", make_pod("") | {"metadata": {"generateName": "probe-"}}
    )
    path = f"/api/v1/namespaces/{namespace}/pods/{probe['metadata']['name']}"
    wait_until(lambda: "PodScheduled" in str(read(kube, path)["status"]))
    return has_condition(read(kube, path), "PodScheduled", "False", "Unschedulable")


def evict_pod(kube: KubeClient, namespace: str, name: str) -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
    create(kube, f"/api/v1/namespaces/{namespace}/pods/{name}/eviction", eviction)


@pytest.mark.usefixtures("node")
def test_daemonset_pod_starts_on_a_new_node(kube: KubeClient, namespace: str) -> None:
    labels = {"app": "agent"}
    template = {"metadata": {"labels": labels}, "spec": make_pod("", tolerations=[{"operator": "Exists"}])["spec"]}
    wish = {"selector": {"matchLabels": labels}, "template": template}
    path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets"
    create(kube, path, {"metadata": {"name": "agent"}, "spec": wish})
    wait_until(lambda: read(kube, f"{path}/agent")["status"].get("numberReady") == 1)
    wait_until(lambda: read_taints(kube) == [STARTUP])


def test_kwok_node_has_the_same_fields_as_an_eks_node(kube: KubeClient, node: str) -> None:
    """It is what the embedded cluster makes, to the field, and nothing of it is kwok's but the label."""
    wait_until(lambda: is_ready(kube) and read_taints(kube) == [STARTUP])
    node_object, live = read(kube, node), SimulatedCluster(Clock(datetime.now(UTC)))
    live.start_node(BOOT)
    live.run(timedelta(minutes=1))
    expected = live.api.get("nodes", BOOT.node_name)
    assert node_object["metadata"]["labels"] == {**expected["metadata"]["labels"], KWOK_LABEL: "fake"}
    assert node_object["spec"]["providerID"] == expected["spec"]["providerID"] == BOOT.provider_id
    assert expected["spec"]["taints"] == [STARTUP]
    for part in ("capacity", "allocatable", "addresses", "nodeInfo"):
        assert node_object["status"][part] == expected["status"][part], part
    assert list_conditions(node_object) == list_conditions(expected)
    assert "kwok" not in str(node_object["status"])


def list_conditions(node: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(condition["type"], condition["status"], condition["reason"]) for condition in node["status"]["conditions"]}


@pytest.mark.usefixtures("node")
def test_pod_stops_within_its_termination_grace_period(kube: KubeClient, namespace: str) -> None:
    wait_until(lambda: is_ready(kube))
    remove_startup_taint(kube)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    graces = {
        "slow": (4, {}),
        "quick": (600, {STOP_SECONDS_ANNOTATION: "1"}),
        "greedy": (4, {STOP_SECONDS_ANNOTATION: "3600"}),
    }
    for name, (grace, annotations) in graces.items():
        pod_manifest = make_pod(name, terminationGracePeriodSeconds=grace)
        pod_manifest["metadata"]["annotations"] = annotations
        create(kube, pods, pod_manifest)
    wait_until(lambda: all(has_condition(read(kube, f"{pods}/{name}"), "Ready") for name in graces))
    due: dict[str, datetime] = {}
    for name, (grace, _) in graces.items():
        due[name] = datetime.now(UTC) + timedelta(seconds=grace)
        kube.delete(f"{pods}/{name}")
    removed_at: dict[str, datetime] = {}

    def are_all_removed() -> bool:
        for name in graces.keys() - removed_at.keys():
            if is_gone(kube, f"{pods}/{name}"):
                removed_at[name] = datetime.now(UTC)
        return removed_at.keys() == graces.keys()

    wait_until(are_all_removed)
    whole_seconds = timedelta(seconds=2)  # of the deletion's own instant, and of kwok's reckoning
    assert [name for name in graces if removed_at[name] < due[name] - whole_seconds] == ["quick"]


@pytest.mark.usefixtures("node")
def test_second_delete_with_a_shorter_grace_period_stops_the_pod_sooner(kube: KubeClient, namespace: str) -> None:
    wait_until(lambda: is_ready(kube))
    remove_startup_taint(kube)
    path = f"/api/v1/namespaces/{namespace}/pods/slow"
    create(kube, path.rpartition("/")[0], make_pod("slow", terminationGracePeriodSeconds=600))
    wait_until(lambda: has_condition(read(kube, path), "Ready"))
    kube.delete(path)
    assert read(kube, path)["metadata"]["deletionGracePeriodSeconds"] == 600
    kube.delete(path, b'{"gracePeriodSeconds":1}')
    wait_until(lambda: is_gone(kube, path))


def test_unresponsive_node_becomes_unknown_and_recovers(kube: KubeClient, namespace: str, node: str) -> None:
    """After the grace that nodes have: Ready is Unknown, the taints of lost nodes come, and nothing starts there."""
    wait_until(lambda: is_ready(kube))
    remove_startup_taint(kube)
    nodes.stop_kwok(kube, BOOT.node_name)
    assert KWOK_LABEL not in read(kube, node)["metadata"]["labels"]
    wait_until(lambda: ("Ready", "Unknown", "NodeStatusUnknown") in list_conditions(read(kube, node)))
    wait_until(lambda: {"key": UNREACHABLE, "effect": "NoSchedule"} in read_taints(kube))
    path = f"/api/v1/namespaces/{namespace}/pods/late"
    create(
        kube, path.rpartition("/")[0], make_pod("late", nodeName=BOOT.node_name, tolerations=[{"operator": "Exists"}])
    )
    nodes.start_kwok(kube, BOOT.node_name)
    wait_until(lambda: is_ready(kube))
    wait_until(lambda: not read_taints(kube))
    wait_until(lambda: has_condition(read(kube, path), "Ready"))


def test_unresponsive_node_runs_no_pods_and_can_be_deleted(kube: KubeClient, namespace: str, node: str) -> None:
    wait_until(lambda: is_ready(kube))
    nodes.stop_kwok(kube, BOOT.node_name)
    wait_until(
        lambda: ("Ready", "Unknown", "NodeStatusUnknown") in list_conditions(read(kube, node))
    )  # kwok has let go
    path = f"/api/v1/namespaces/{namespace}/pods/lost"
    create(
        kube, path.rpartition("/")[0], make_pod("lost", nodeName=BOOT.node_name, tolerations=[{"operator": "Exists"}])
    )
    time.sleep(2)
    assert read(kube, path)["status"]["phase"] == "Pending"
    nodes.delete_node(kube, BOOT.node_name)
    nodes.delete_node(kube, BOOT.node_name)
    nodes.stop_kwok(kube, BOOT.node_name)
    with pytest.raises(NotFound):
        kube.read(node)
    with pytest.raises(NotFound):
        nodes.start_kwok(kube, BOOT.node_name)
