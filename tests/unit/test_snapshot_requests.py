"""What a pod asks for in all, by KEP-753."""

from typing import Any

import pytest

from shared.model.resources import Resources
from shared.snapshot.kinds import LISTINGS

[PODS] = (listing for listing in LISTINGS if listing.kind == "Pod")


def requests(status: dict[str, Any] | None = None, **spec: Any) -> Resources:
    [pod], [] = PODS.objects([{"metadata": {"name": "cart"}, "spec": spec, "status": status or {}}])
    found: Resources = pod.spec.requests
    return found


def box(cpu: str = "", *, limit: str = "", sidecar: bool = False, name: str = "app") -> dict[str, Any]:
    always = {"restartPolicy": "Always"} if sidecar else {}
    amounts = {"requests": {"cpu": cpu} if cpu else {}, "limits": {"cpu": limit} if limit else {}}
    return {"name": name, "resources": amounts} | always


def side(cpu: str) -> dict[str, Any]:
    return box(cpu, sidecar=True)


@pytest.mark.parametrize(
    ("init", "regular", "cpu_milli"),
    [
        ([], [], 0),
        ([], ["1", "250m"], 1250),
        ([box("3")], ["1", "1"], 3000),
        ([box("1"), box("2")], ["1"], 2000),
        ([side("1")], ["2"], 3000),
        ([side("1"), box("5")], ["2"], 6000),
        ([box("5"), side("1")], ["2"], 5000),
        ([side("1"), box("2"), side("4")], ["1"], 6000),
        ([side("1"), side("1"), box("3"), side("1")], ["1"], 5000),
        ([box("")], ["1"], 1000),
    ],
)
def test_the_most_that_any_moment_needs(init: list[dict[str, Any]], regular: list[str], cpu_milli: int) -> None:
    assert requests(initContainers=init, containers=[box(cpu) for cpu in regular])["cpu"] == cpu_milli


def test_a_pod_is_one_pod_whatever_it_asks_for() -> None:
    assert requests().amounts == (("pods", 1),)
    assert requests(containers=[box("1"), box("1")])["pods"] == 1


def test_each_resource_has_its_own_worst_moment() -> None:
    init = [{"resources": {"requests": {"memory": "4Gi", "cpu": "1"}}}]
    found = requests(initContainers=init, containers=[{"resources": {"requests": {"memory": "1Gi", "cpu": "2"}}}])
    assert (found["cpu"], found["memory"]) == (2000, 4 * 1024**3)


def test_a_limit_is_the_request_where_there_is_none() -> None:
    assert requests(containers=[box("", limit="2")])["cpu"] == 2000
    assert requests(containers=[box("1", limit="2")])["cpu"] == 1000
    assert requests(containers=[{"resources": {"requests": {"cpu": "0"}, "limits": {"cpu": "2"}}}])["cpu"] == 0
    assert requests(initContainers=[box("", limit="3")], containers=[box("1")])["cpu"] == 3000


def test_overhead_is_added_on_top_of_everything() -> None:
    assert requests(containers=[box("1")], overhead={"cpu": "250m", "memory": "1Ki"})["cpu"] == 1250
    assert requests(containers=[box("1")], resources={"requests": {"cpu": "5"}}, overhead={"cpu": "1"})["cpu"] == 6000


def test_what_the_pod_as_a_whole_asks_for_replaces_the_sum() -> None:
    boxes = [box("1"), box("1")]
    assert requests(containers=boxes, resources={"requests": {"cpu": "5"}})["cpu"] == 5000
    assert requests(containers=boxes, resources={"requests": {"cpu": "1"}})["cpu"] == 1000
    assert requests(containers=boxes, resources={"requests": {"memory": "1Ki"}})["cpu"] == 2000


def test_only_cpu_memory_and_hugepages_may_be_asked_for_as_a_whole() -> None:
    found = requests(resources={"requests": {"hugepages-2Mi": "2Mi", "nvidia.com/gpu": "1"}})
    assert found.names() == ("hugepages-2Mi", "pods")


def test_a_limit_of_the_whole_counts_where_no_container_asks() -> None:
    assert requests(containers=[box("")], resources={"limits": {"cpu": "5"}})["cpu"] == 5000
    assert requests(containers=[box("1")], resources={"limits": {"cpu": "5"}})["cpu"] == 1000
    assert requests(resources={"limits": {"cpu": "5"}, "requests": {"cpu": "2"}})["cpu"] == 2000


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
def test_a_container_that_is_resized_counts_with_the_larger_size(status: dict[str, Any], cpu_milli: int) -> None:
    assert requests({"containerStatuses": [{"name": "app"} | status]}, containers=[box("2")])["cpu"] == cpu_milli


def test_a_sidecar_can_be_resized_too() -> None:
    status = {"initContainerStatuses": [{"name": "proxy", "allocatedResources": {"cpu": "3"}}]}
    init = [box("1", sidecar=True, name="proxy")]
    assert requests(status, initContainers=init, containers=[box("2")])["cpu"] == 5000


def test_numbers_are_quantities_too() -> None:
    found = requests(
        containers=[{"resources": {"requests": {"cpu": 2, "memory": 1024}}}, {"resources": {"requests": {"cpu": 0.5}}}]
    )
    assert (found["cpu"], found["memory"]) == (2500, 1024)
