"""Device allocation of a real kube-scheduler, with devices that the test publishes: what Joiner's plans rely on.

The objects are read and decoded as by a function, and Joiner's allocator must decide as kube-scheduler does.
"""

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from shared.decide.scheduling.devices.allocation import allocate
from shared.errors import Invalid, NotFound
from shared.kubernetes.client import KubeClient
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.state.dynamic_resources.node_devices import index_published_devices, list_used_devices
from shared.state.dynamic_resources.pod_claims import PodClaims
from shared.take.kubernetes.optional_resources import DEVICE_LISTS, OPTIONAL_KINDS
from shared.take.kubernetes.reflector import Reflector
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS
from tests.contract.kube_front import create, make_pod, patch, read, wait_until
from tests.controlplane.fixtures import clear_collection
from tests.controlplane.plane import ControlPlane

pytestmark = [pytest.mark.loopback, pytest.mark.controlplane]

NODES: Final = "/api/v1/nodes"
SLICES: Final = "/apis/resource.k8s.io/v1/resourceslices"
CLASSES: Final = "/apis/resource.k8s.io/v1/deviceclasses"
DRIVER: Final = "gpu.example.com"
NODE: Final = "device-node"
ROOM: Final = {"cpu": "4", "memory": "16Gi", "pods": "20"}
SILENT: Final = [{"key": f"node.kubernetes.io/{word}", "operator": "Exists"} for word in ("not-ready", "unreachable")]
"""What nodes without a kubelet get."""
OWN: Final = f'device.attributes["{DRIVER}"]'
LISTS: Final = ("nodes", "pods", *DEVICE_LISTS)


def make_device(name: str, model: str, numa: int, memory: str, **fields: Any) -> dict[str, Any]:
    attributes = {"model": {"string": model}, "numa": {"int": numa}, "driverVersion": {"version": "1.10.0"}}
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": memory}}, **fields}


DEVICES: Final = [
    make_device("a", "small", 0, "10Gi"),
    make_device("b", "large", 0, "80Gi"),
    make_device("c", "large", 1, "80Gi"),
    make_device("d", "small", 1, "10Gi", taints=[{"key": "broken", "value": "yes", "effect": "NoSchedule"}]),
]


def select(expression: str, **fields: Any) -> dict[str, Any]:
    return {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}], **fields}


def request(expression: str = "true", name: str = "gpu", **fields: Any) -> dict[str, Any]:
    return {"name": name, "exactly": select(expression, **fields)}


TOLERATIONS: Final = [{"key": "broken", "operator": "Exists"}]
ALTERNATIVES: Final = [
    {"name": "three", **select(f'{OWN}.model == "large"', count=3)},
    {"name": "two", **select(f'{OWN}.model == "large"', count=2)},
]
CASES: Final[dict[str, dict[str, Any]]] = {
    "one": {"requests": [request()]},
    "count": {"requests": [request(count=3)]},
    "too-many": {"requests": [request(count=4)]},
    "tolerated": {"requests": [request(count=4, tolerations=TOLERATIONS)]},
    "model": {"requests": [request(f'{OWN}.model == "large"')]},
    "all": {"requests": [request(f'{OWN}.model == "large"', allocationMode="All")]},
    "all-tainted": {"requests": [request(f'{OWN}.model == "small"', allocationMode="All")]},
    "quantity": {"requests": [request(f'device.capacity["{DRIVER}"].memory.compareTo(quantity("20Gi")) >= 0')]},
    "version": {"requests": [request(f'{OWN}.driverVersion.isGreaterThan(semver("1.9.0"))')]},
    "unknown-domain": {"requests": [request('"x" in device.attributes["other.example.com"]')]},
    "error": {"requests": [request(f'{OWN}.absent == "x"')]},
    "same": {
        "requests": [request(name="x"), request(f'{OWN}.model == "large"', name="y")],
        "constraints": [{"requests": ["x", "y"], "matchAttribute": f"{DRIVER}/numa"}],
    },
    "same-model": {"requests": [request(count=2)], "constraints": [{"matchAttribute": f"{DRIVER}/model"}]},
    "first-available": {"requests": [{"name": "gpu", "firstAvailable": ALTERNATIVES}]},
}


@pytest.fixture(scope="module")
def kube(cluster: ControlPlane) -> Iterator[KubeClient]:
    """Create a node without a kubelet, its devices, and the device class."""
    client = cluster.get_client()
    expression = f'device.driver == "{DRIVER}"'
    create(client, CLASSES, {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": expression}}]}})
    create(client, NODES, {"metadata": {"name": NODE, "labels": {"devices": "here"}}})
    patch(client, f"{NODES}/{NODE}/status", {"status": {"allocatable": ROOM, "capacity": ROOM}})
    pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": NODE, "pool": pool, "devices": DEVICES}
    create(client, SLICES, {"metadata": {"name": NODE}, "spec": spec})
    yield client
    for path in (f"{SLICES}/{NODE}", f"{NODES}/{NODE}", f"{CLASSES}/gpu"):
        with contextlib.suppress(NotFound):
            client.delete(path)


@pytest.fixture
def namespace(kube: KubeClient) -> Iterator[str]:
    name = create(kube, "/api/v1/namespaces", {"metadata": {"generateName": "devices-"}})["metadata"]["name"]
    wait_until(lambda: kube.read(f"/api/v1/namespaces/{name}/serviceaccounts/default"))
    yield name
    kube.delete(f"/api/v1/namespaces/{name}")
    clear_collection(kube, f"/api/v1/namespaces/{name}/pods")


def create_pod(kube: KubeClient, namespace: str, name: str, devices: dict[str, Any]) -> str:
    """Create a pod with a claim for *devices*; return its path once kube-scheduler has tried it."""
    templates = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaimtemplates"
    create(kube, templates, {"metadata": {"name": name}, "spec": {"spec": {"devices": devices}}})
    pod_claims = [{"name": "gpu", "resourceClaimTemplateName": name}]
    pod = make_pod(name, nodeSelector={"devices": "here"}, tolerations=SILENT, resourceClaims=pod_claims)
    create(kube, f"/api/v1/namespaces/{namespace}/pods", pod)
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    wait_until(lambda: is_tried(read(kube, path)))
    return path


def is_tried(pod: dict[str, Any]) -> bool:
    conditions = {item["type"]: item for item in pod["status"].get("conditions") or []}
    has_claims = bool(pod["status"].get("resourceClaimStatuses"))
    text = str(conditions.get("PodScheduled"))
    return bool(pod["spec"].get("nodeName")) or (has_claims and ("allocate" in text or "SchedulerError" in text))


def take(kube: KubeClient) -> ClusterSnapshot:
    """Read the lists as a function does."""
    now, problems = datetime.now(UTC), list[Problem]()
    kinds = [kind for kind in (*OPTIONAL_KINDS, *RESOURCE_KINDS) if kind.field in LISTS]
    parts: dict[str, Any] = Reflector(kube, None, now, None).read_lists(kinds, problems)
    assert not problems
    return ClusterSnapshot(taken_at=now, has_dynamic_resources=True, **parts)


@pytest.mark.parametrize("case", CASES)
def test_joiner_allocates_where_kube_scheduler_does(kube: KubeClient, namespace: str, case: str) -> None:
    try:
        path = create_pod(kube, namespace, case, CASES[case])
    except Invalid as error:
        pytest.fail(f"Kubernetes refuses the claim: {error}")
    cluster = take(kube)
    [pod] = [pod for pod in cluster.pods if pod.name == f"{namespace}/{case}"]
    [claim] = [claim for claim in cluster.resource_claims if claim.meta.namespace == namespace]
    demand = PodClaims(cluster, [pod]).build_demand(pod) if claim.allocation is None else None
    if claim.allocation is not None:
        assert claim.allocation.node_names == (NODE,)
        assert claim.consumers == (pod.name,)
        assert set(claim.allocation.devices) <= list_used_devices(cluster.resource_claims)
    specs = (PodClaims(cluster, []).add_class_selectors(claim.spec),)
    assert demand is None or demand.specs == specs
    own_devices = index_published_devices(cluster.resource_slices)[NODE].node_devices
    other_claims = [item for item in cluster.resource_claims if item.name != claim.name]
    planned = allocate(own_devices, list_used_devices(other_claims), specs)
    is_bound = bool(read(kube, path)["spec"].get("nodeName"))
    assert (planned is not None) == is_bound
    if planned is not None and claim.allocation is not None:
        assert sorted(device.id for _, device, _ in planned[0]) == sorted(claim.allocation.devices)


def test_a_device_is_free_again_after_its_pod_is_gone(kube: KubeClient, namespace: str) -> None:
    path = create_pod(kube, namespace, "three", {"requests": [request(count=3)]})
    waiting = create_pod(kube, namespace, "waiting", {"requests": [request()]})
    cluster = take(kube)
    claims = [claim for claim in cluster.resource_claims if claim.meta.namespace == namespace]
    assert sorted(claim.allocation is not None for claim in claims) == [False, True]
    kube.delete(path, b'{"gracePeriodSeconds":0}')
    wait_until(lambda: read(kube, waiting)["spec"]["nodeName"])
