"""Tests of the total requests of a pod, by KEP-753."""

from typing import Any

import pytest

from shared.model.core.resources import Resources
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS

[PODS] = (listing for listing in RESOURCE_KINDS if listing.kind == "Pod")


def compute_requests(status: dict[str, Any] | None = None, **spec: Any) -> Resources:
    [pod], [] = PODS.convert_objects([{"metadata": {"name": "cart"}, "spec": spec, "status": status or {}}])
    pod_requests: Resources = pod.spec.requests
    return pod_requests


def make_container(cpu: str = "", *, limit: str = "", sidecar: bool = False, name: str = "app") -> dict[str, Any]:
    always = {"restartPolicy": "Always"} if sidecar else {}
    amounts = {"requests": {"cpu": cpu} if cpu else {}, "limits": {"cpu": limit} if limit else {}}
    return {"name": name, "resources": amounts} | always


def make_sidecar(cpu: str) -> dict[str, Any]:
    return make_container(cpu, sidecar=True)


@pytest.mark.parametrize(
    ("init", "regular", "cpu_milli"),
    [
        ([], [], 0),
        ([], ["1", "250m"], 1250),
        ([make_container("3")], ["1", "1"], 3000),
        ([make_container("1"), make_container("2")], ["1"], 2000),
        ([make_sidecar("1")], ["2"], 3000),
        ([make_sidecar("1"), make_container("5")], ["2"], 6000),
        ([make_container("5"), make_sidecar("1")], ["2"], 5000),
        ([make_sidecar("1"), make_container("2"), make_sidecar("4")], ["1"], 6000),
        ([make_sidecar("1"), make_sidecar("1"), make_container("3"), make_sidecar("1")], ["1"], 5000),
        ([make_container("")], ["1"], 1000),
    ],
)
def test_pod_cpu_request_is_the_maximum_over_init_and_regular_phases(
    init: list[dict[str, Any]], regular: list[str], cpu_milli: int
) -> None:
    assert (
        compute_requests(initContainers=init, containers=[make_container(cpu) for cpu in regular])["cpu"] == cpu_milli
    )


def test_pod_requests_include_one_pod() -> None:
    assert compute_requests().amounts == (("pods", 1),)
    assert compute_requests(containers=[make_container("1"), make_container("1")])["pods"] == 1


def test_maximum_request_is_computed_per_resource() -> None:
    init = [{"resources": {"requests": {"memory": "4Gi", "cpu": "1"}}}]
    pod_requests = compute_requests(
        initContainers=init, containers=[{"resources": {"requests": {"memory": "1Gi", "cpu": "2"}}}]
    )
    assert (pod_requests["cpu"], pod_requests["memory"]) == (2000, 4 * 1024**3)


def test_container_limit_is_the_request_if_no_request_is_set() -> None:
    assert compute_requests(containers=[make_container("", limit="2")])["cpu"] == 2000
    assert compute_requests(containers=[make_container("1", limit="2")])["cpu"] == 1000
    assert compute_requests(containers=[{"resources": {"requests": {"cpu": "0"}, "limits": {"cpu": "2"}}}])["cpu"] == 0
    assert (
        compute_requests(initContainers=[make_container("", limit="3")], containers=[make_container("1")])["cpu"]
        == 3000
    )


def test_pod_overhead_is_added_to_the_total_request() -> None:
    assert compute_requests(containers=[make_container("1")], overhead={"cpu": "250m", "memory": "1Ki"})["cpu"] == 1250
    assert (
        compute_requests(containers=[make_container("1")], resources={"requests": {"cpu": "5"}}, overhead={"cpu": "1"})[
            "cpu"
        ]
        == 6000
    )


def test_pod_level_request_replaces_the_sum_of_containers() -> None:
    containers = [make_container("1"), make_container("1")]
    assert compute_requests(containers=containers, resources={"requests": {"cpu": "5"}})["cpu"] == 5000
    assert compute_requests(containers=containers, resources={"requests": {"cpu": "1"}})["cpu"] == 1000
    assert compute_requests(containers=containers, resources={"requests": {"memory": "1Ki"}})["cpu"] == 2000


def test_pod_level_requests_allow_only_cpu_memory_and_hugepages() -> None:
    pod_requests = compute_requests(resources={"requests": {"hugepages-2Mi": "2Mi", "nvidia.com/gpu": "1"}})
    assert pod_requests.list_names() == ("hugepages-2Mi", "pods")


def test_pod_level_limit_is_the_request_if_no_container_has_one() -> None:
    assert compute_requests(containers=[make_container("")], resources={"limits": {"cpu": "5"}})["cpu"] == 5000
    assert compute_requests(containers=[make_container("1")], resources={"limits": {"cpu": "5"}})["cpu"] == 1000
    assert compute_requests(resources={"limits": {"cpu": "5"}, "requests": {"cpu": "2"}})["cpu"] == 2000


@pytest.mark.parametrize(
    ("status", "cpu_milli"),
    [
        ({"resources": {"requests": {"cpu": "3"}}}, 3000),
        ({"allocatedResources": {"cpu": "4"}}, 4000),
        ({"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "4"}}, 4000),
        ({"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "1"}}, 2000),
        ({}, 2000),
    ],
)
def test_resized_container_counts_with_the_larger_request(status: dict[str, Any], cpu_milli: int) -> None:
    assert (
        compute_requests({"containerStatuses": [{"name": "app"} | status]}, containers=[make_container("2")])["cpu"]
        == cpu_milli
    )


def test_resized_sidecar_counts_with_the_larger_request() -> None:
    status = {"initContainerStatuses": [{"name": "proxy", "allocatedResources": {"cpu": "3"}}]}
    init = [make_container("1", sidecar=True, name="proxy")]
    assert compute_requests(status, initContainers=init, containers=[make_container("2")])["cpu"] == 5000


def test_numeric_quantities_are_accepted() -> None:
    pod_requests = compute_requests(
        containers=[{"resources": {"requests": {"cpu": 2, "memory": 1024}}}, {"resources": {"requests": {"cpu": 0.5}}}]
    )
    assert (pod_requests["cpu"], pod_requests["memory"]) == (2500, 1024)
