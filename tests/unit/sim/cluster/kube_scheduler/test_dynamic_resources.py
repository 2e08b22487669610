"""Tests of the plug-in DynamicResources of the simulated kube-scheduler: nodes for claims, and their allocation."""

from typing import Any

import pytest

from sim.cluster.api_server.api_resources import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from tests.support.cluster_objects import Bench, Obj

DRIVER = "gpu.example.com"
CANNOT_ALLOCATE = "0/1 nodes are available: 1 cannot allocate all claims."


def make_device(name: str, taint: str = "", **attributes: str) -> Obj:
    taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
    texts = {key: {"string": text} for key, text in attributes.items()}
    return {"name": name, "attributes": texts} | ({"taints": taints} if taints else {})


def make_request(name: str = "gpu", *, model: str = "", **fields: Any) -> Obj:
    expression = f'device.attributes["{DRIVER}"].model == "{model}"'
    selectors = {"selectors": [{"cel": {"expression": expression}}]} if model else {}
    return {"name": name, "exactly": {"deviceClassName": "gpu", **selectors, **fields}}


def make_constraint(kind: str, *requests: str) -> Obj:
    return {kind: f"{DRIVER}/model"} | ({"requests": list(requests)} if requests else {})


def publish(bench: Bench, node: str, *devices: Obj, name: str = "", **pool: int) -> None:
    pool_fields = {"name": node, "generation": 1, "resourceSliceCount": 1} | pool
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool_fields, "devices": list(devices)}
    bench.api.create(RESOURCE_SLICES, {"metadata": {"name": name or node}, "spec": spec})


def start_bench(*devices: Obj) -> Bench:
    """Return a cluster whose node `n` publishes *devices*."""
    bench = Bench()
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    bench.api.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}, "spec": {"selectors": selectors}})
    bench.create_node("n")
    publish(bench, "n", *devices)
    return bench


def create_claim(bench: Bench, name: str, *requests: Obj, constraints: list[Obj] | None = None) -> None:
    devices: Obj = {"requests": list(requests)} | ({"constraints": constraints} if constraints else {})
    bench.api.create(RESOURCE_CLAIMS, {"metadata": {"name": name}, "spec": {"devices": devices}}, "default")


def create_pod(bench: Bench, name: str, *claims: str) -> None:
    bench.create_pod(name, spec={"resourceClaims": [{"name": claim, "resourceClaimName": claim} for claim in claims]})


def list_devices(bench: Bench, claim: str) -> list[tuple[str, str]]:
    """Return the requests of a claim with their devices."""
    status = bench.api.get(RESOURCE_CLAIMS, claim, "default").get("status") or {}
    results = (status.get("allocation") or {"devices": {"results": []}})["devices"]["results"]
    return [(result["request"], result["device"]) for result in results]


def test_pod_gets_its_devices_and_the_claim_is_reserved_for_it() -> None:
    bench = start_bench(make_device("a", model="old"), make_device("b", model="new"))
    create_claim(bench, "train", make_request(model="new"))
    create_pod(bench, "p", "train")
    bench.advance_seconds()
    assert bench.get_node_name("p") == "n"
    assert list_devices(bench, "train") == [("gpu", "b")]
    (consumer,) = bench.api.get(RESOURCE_CLAIMS, "train", "default")["status"]["reservedFor"]
    assert (consumer["resource"], consumer["name"]) == ("pods", "p")


def test_devices_of_other_claims_are_not_allocated_again() -> None:
    bench = start_bench(make_device("a"), make_device("b"))
    create_claim(bench, "two", make_request(count=2))
    create_claim(bench, "one", make_request())
    create_pod(bench, "first", "two")
    bench.advance_seconds()
    create_pod(bench, "second", "one")
    bench.advance_seconds()
    assert len(list_devices(bench, "two")) == 2
    assert bench.get_node_name("second") == ""
    assert bench.get_filter_message("second") == CANNOT_ALLOCATE


def test_two_claims_of_a_pod_get_different_devices() -> None:
    bench = start_bench(make_device("a"), make_device("b"))
    for claim in ("left", "right"):
        create_claim(bench, claim, make_request())
    create_pod(bench, "p", "left", "right")
    bench.advance_seconds()
    assert sorted(list_devices(bench, "left") + list_devices(bench, "right")) == [("gpu", "a"), ("gpu", "b")]


def test_second_pod_of_an_allocated_claim_runs_on_its_node() -> None:
    bench = start_bench(make_device("a"))
    create_claim(bench, "shared", make_request())
    create_pod(bench, "first", "shared")
    bench.advance_seconds()
    bench.create_node("other")
    create_pod(bench, "second", "shared")
    bench.create_pod(
        "elsewhere",
        spec={
            "resourceClaims": [{"name": "c", "resourceClaimName": "shared"}],
            "nodeSelector": {"kubernetes.io/hostname": "other"},
        },
    )
    bench.advance_seconds()
    assert bench.get_node_name("second") == "n"
    assert "1 resourceclaim not available on the node" in bench.get_filter_message("elsewhere")
    reserved_for = bench.api.get(RESOURCE_CLAIMS, "shared", "default")["status"]["reservedFor"]
    assert [consumer["name"] for consumer in reserved_for] == ["first", "second"]


@pytest.mark.parametrize(
    ("requests", "constraints", "expected_devices"),
    [
        ([make_request(count=2)], [make_constraint("matchAttribute")], [("gpu", "a2"), ("gpu", "a3")]),
        ([make_request(count=3)], [make_constraint("matchAttribute")], []),
        (
            [make_request("x"), make_request("y")],
            [make_constraint("distinctAttribute")],
            [("x", "b1"), ("y", "a2")],
        ),
        ([make_request("x", count=3)], [make_constraint("distinctAttribute")], []),
        (
            [make_request("x"), make_request("y", count=2)],
            [make_constraint("matchAttribute", "y")],
            [("x", "b1"), ("y", "a2"), ("y", "a3")],
        ),
        ([make_request(allocationMode="All")], None, [("gpu", "b1"), ("gpu", "a2"), ("gpu", "a3")]),
        ([make_request(allocationMode="All", model="missing")], None, []),
        ([make_request(allocationMode="All"), make_request("more")], None, []),
    ],
)
def test_counts_modes_and_constraints_of_requests(
    requests: list[Obj], constraints: list[Obj] | None, expected_devices: list[tuple[str, str]]
) -> None:
    bench = start_bench(make_device("b1", model="b"), make_device("a2", model="a"), make_device("a3", model="a"))
    create_claim(bench, "claim", *requests, constraints=constraints)
    create_pod(bench, "p", "claim")
    bench.advance_seconds()
    assert list_devices(bench, "claim") == expected_devices
    assert (bench.get_node_name("p") == "n") is bool(expected_devices)


def test_device_without_the_attribute_of_a_constraint_is_not_allocated() -> None:
    bench = start_bench(make_device("plain"), make_device("a", model="a"))
    create_claim(bench, "claim", make_request(count=2), constraints=[make_constraint("matchAttribute")])
    create_pod(bench, "p", "claim")
    bench.advance_seconds()
    assert bench.get_filter_message("p") == CANNOT_ALLOCATE


def test_the_first_alternative_that_fits_is_allocated() -> None:
    bench = start_bench(make_device("a", model="a"))
    alternatives = [
        {"name": "two", "deviceClassName": "gpu", "count": 2},
        {"name": "one", "deviceClassName": "gpu"},
    ]
    create_claim(bench, "claim", {"name": "gpu", "firstAvailable": alternatives})
    create_pod(bench, "p", "claim")
    bench.advance_seconds()
    assert list_devices(bench, "claim") == [("gpu/one", "a")]


def test_tainted_device_needs_a_toleration() -> None:
    bench = start_bench(make_device("a", taint="broken"))
    create_claim(bench, "plain", make_request())
    create_claim(bench, "tolerant", make_request(tolerations=[{"key": "broken", "operator": "Exists"}]))
    create_pod(bench, "first", "plain")
    create_pod(bench, "second", "tolerant")
    bench.advance_seconds()
    assert bench.get_filter_message("first") == CANNOT_ALLOCATE
    assert list_devices(bench, "tolerant") == [("gpu", "a")]


def test_selector_that_cannot_be_evaluated_and_unknown_class_allocate_nothing() -> None:
    bench = start_bench(make_device("a"))
    create_claim(bench, "no-attribute", make_request(model="x"))
    create_claim(bench, "no-class", {"name": "gpu", "exactly": {"deviceClassName": "missing"}})
    create_pod(bench, "first", "no-attribute")
    create_pod(bench, "second", "no-class")
    bench.advance_seconds()
    assert {bench.get_filter_message(name) for name in ("first", "second")} == {CANNOT_ALLOCATE}


def test_only_a_complete_pool_of_the_newest_generation_has_devices() -> None:
    bench = start_bench(make_device("old"))
    publish(bench, "n", make_device("new"), name="new", generation=2, resourceSliceCount=2)
    create_claim(bench, "claim", make_request())
    create_pod(bench, "p", "claim")
    bench.advance_seconds()
    assert bench.get_filter_message("p") == CANNOT_ALLOCATE
    publish(bench, "n", make_device("newer"), name="newer", generation=2, resourceSliceCount=2)
    bench.advance_seconds(600)
    assert list_devices(bench, "claim")[0][1] in ("new", "newer")


def test_pod_waits_for_a_claim_that_does_not_exist_yet() -> None:
    bench = start_bench(make_device("a"))
    create_pod(bench, "p", "later")
    bench.advance_seconds()
    assert "waiting for resource claim later to be created" in bench.get_filter_message("p")
    create_claim(bench, "later", make_request())
    bench.advance_seconds(600)
    assert bench.get_node_name("p") == "n"


def test_claim_of_a_later_version_is_a_problem_of_its_pod_only() -> None:
    bench = start_bench(make_device("a"))
    bench.api.restore("pods", build_restored_pod(["a string"]))
    bench.create_pod("other")
    bench.advance_seconds()
    assert "which this version cannot read" in bench.get_filter_message("strange")
    assert bench.get_node_name("other") == "n"


def build_restored_pod(resource_claims: list[Any]) -> Obj:
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "100m"}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "strange", "namespace": "default", "uid": "uid-strange", "generation": 1},
        "spec": {"containers": containers, "resourceClaims": resource_claims, "schedulerName": "default-scheduler"},
        "status": {"phase": "Pending"},
    }
