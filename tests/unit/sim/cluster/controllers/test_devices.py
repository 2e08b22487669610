"""Tests of the resource claim controller and the device driver of the in-memory cluster."""

from typing import Any

from sim.cluster.api_server.api_resources import (
    DEVICE_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from sim.cluster.cluster import SimulatedCluster
from tests.support.cluster_objects import (
    Obj,
    list_names,
    make_node_boot,
    make_pod,
    run,
    start_cluster,
    start_flaky_cluster,
)

CLAIM_SPEC: Obj = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}


def add_devices(cluster: SimulatedCluster, node: str = "n", count: int = 2) -> None:
    """Create a DeviceClass, and let the driver publish *count* devices of a new node."""
    cluster.api.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}, "spec": {}})
    cluster.device_driver.devices_by_type = {"m6i.xlarge": [{"name": f"gpu-{number}"} for number in range(count)]}
    cluster.start_node(make_node_boot(node))
    run(cluster, 120)


def create_template(cluster: SimulatedCluster) -> None:
    template = {"metadata": {"name": "gpu", "namespace": "default"}, "spec": {"spec": CLAIM_SPEC}}
    cluster.api.create(RESOURCE_CLAIM_TEMPLATES, template, "default")


def create_pod(cluster: SimulatedCluster, name: str, **pod_claim: str) -> None:
    pod = make_pod(name, spec={"resourceClaims": [{"name": "gpu", **pod_claim}]})
    cluster.api.create("pods", pod, "default")


def get_pod(cluster: SimulatedCluster, name: str) -> Obj:
    return cluster.api.get("pods", name, "default")


def get_claim_status(cluster: SimulatedCluster, name: str) -> dict[str, Any]:
    return cluster.api.get(RESOURCE_CLAIMS, name, "default").get("status") or {}


def test_driver_publishes_one_slice_for_each_node_of_its_types() -> None:
    cluster = start_cluster()
    add_devices(cluster)
    cluster.device_driver.devices_by_type = {}
    cluster.start_node(make_node_boot("other"))
    run(cluster, 120)
    (resource_slice,) = cluster.api.list(RESOURCE_SLICES)
    assert resource_slice["metadata"]["name"] == "n-gpu.example.com"
    assert resource_slice["spec"]["pool"] == {"name": "n", "generation": 1, "resourceSliceCount": 1}
    assert list(map(dict, resource_slice["spec"]["devices"])) == [{"name": "gpu-0"}, {"name": "gpu-1"}]


def test_driver_publishes_nothing_for_other_instance_types() -> None:
    cluster = start_cluster()
    cluster.device_driver.devices_by_type = {"p5.48xlarge": [{"name": "gpu"}]}
    cluster.start_node(make_node_boot("n"))
    run(cluster, 120)
    assert cluster.api.list(RESOURCE_SLICES) == []


def test_claim_is_created_from_the_template_and_owned_by_its_pod() -> None:
    cluster = start_cluster()
    add_devices(cluster)
    create_template(cluster)
    create_pod(cluster, "p", resourceClaimTemplateName="gpu")
    run(cluster)
    claim = cluster.api.get(RESOURCE_CLAIMS, "p-gpu", "default")
    assert claim["spec"] == CLAIM_SPEC
    assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Pod", get_pod(cluster, "p")["metadata"]["uid"])
    assert get_pod(cluster, "p")["status"]["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": "p-gpu"}]
    assert get_pod(cluster, "p")["spec"]["nodeName"] == "n"


def test_template_that_is_created_later_creates_the_claims_of_waiting_pods() -> None:
    cluster = start_cluster()
    add_devices(cluster)
    create_pod(cluster, "p", resourceClaimTemplateName="gpu")
    cluster.api.create("pods", make_pod("without-claims"), "default")
    run(cluster)
    assert cluster.api.list(RESOURCE_CLAIMS) == []
    create_template(cluster)
    run(cluster)
    assert list_names(cluster.api.list(RESOURCE_CLAIMS)) == ["p-gpu"]


def test_pod_that_names_a_claim_gets_no_other() -> None:
    cluster = start_cluster()
    add_devices(cluster)
    cluster.api.create(RESOURCE_CLAIMS, {"metadata": {"name": "own"}, "spec": CLAIM_SPEC}, "default")
    create_pod(cluster, "p", resourceClaimName="own")
    run(cluster)
    assert list_names(cluster.api.list(RESOURCE_CLAIMS)) == ["own"]
    assert get_claim_status(cluster, "own")["reservedFor"][0]["name"] == "p"


def test_claim_is_released_when_the_last_of_its_pods_is_deleted() -> None:
    cluster = start_cluster()
    add_devices(cluster)
    cluster.api.create(RESOURCE_CLAIMS, {"metadata": {"name": "own"}, "spec": CLAIM_SPEC}, "default")
    for name in ("first", "second"):
        create_pod(cluster, name, resourceClaimName="own")
    run(cluster)
    assert len(get_claim_status(cluster, "own")["reservedFor"]) == 2
    cluster.api.delete("pods", "first", "default")
    run(cluster)
    status = get_claim_status(cluster, "own")
    assert [consumer["name"] for consumer in status["reservedFor"]] == ["second"]
    assert status["allocation"]
    cluster.api.delete("pods", "second", "default")
    run(cluster)
    status = get_claim_status(cluster, "own")
    assert (status.get("reservedFor"), status.get("allocation")) == ([], None)


def test_release_is_repeated_until_the_api_server_responds() -> None:
    cluster, api = start_flaky_cluster()
    add_devices(cluster)
    cluster.api.create(RESOURCE_CLAIMS, {"metadata": {"name": "own"}, "spec": CLAIM_SPEC}, "default")
    create_pod(cluster, "p", resourceClaimName="own")
    run(cluster)
    api.failing = {f"patch {RESOURCE_CLAIMS}"}
    cluster.api.delete("pods", "p", "default")
    run(cluster)
    assert get_claim_status(cluster, "own")["allocation"]
    api.failing = set()
    run(cluster, 600)
    assert get_claim_status(cluster, "own").get("allocation") is None
