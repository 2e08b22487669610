"""Tests of the in-memory API server's rules for resource.k8s.io: what Kubernetes refuses is refused."""

from typing import Any

import pytest

from shared.errors import Invalid
from sim.cluster.api_server.api_resources import (
    DEVICE_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from sim.cluster.api_server.api_server import ApiServer
from sim.time.virtual_clock import Clock

Object = dict[str, Any]
EXACT = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
SPEC = {"devices": {"requests": [EXACT]}}
POOL = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
SLICE = {"driver": "gpu.example.com", "pool": POOL, "nodeName": "n1", "devices": [{"name": "a"}]}


@pytest.fixture
def api() -> ApiServer:
    return ApiServer(Clock(), definitions=())


def make_object(spec: Object, name: str = "x") -> Object:
    return {"metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"exactly": EXACT["exactly"]}, r"requests\[0\].name: Required"),
        ({"name": "gpu"}, "exactly one of"),
        ({"name": "gpu", "exactly": {}}, "exactly.deviceClassName: Required"),
        ({"name": "gpu", "exactly": {"deviceClassName": "g", "count": 0}}, "must be greater than zero"),
        ({"name": "gpu", "exactly": {"deviceClassName": "g", "count": 1, "allocationMode": "All"}}, "must not be"),
        ({"name": "gpu", "exactly": {"deviceClassName": "g", "allocationMode": "Some"}}, "Unsupported value"),
        ({"name": "gpu", "exactly": {"deviceClassName": "g", "selectors": [{}]}}, "cel.expression: Required"),
        ({"name": "gpu", "firstAvailable": [{"deviceClassName": ""}]}, r"firstAvailable\[0\].deviceClassName"),
        ({"name": "gpu", "firstAvailable": [{"deviceClassName": "g"}] * 9}, "firstAvailable: Too many"),
    ],
)
def test_invalid_request_is_refused(api: ApiServer, request_: Object, error: str) -> None:
    spec = {"devices": {"requests": [request_]}}
    with pytest.raises(Invalid, match=error):
        api.create(RESOURCE_CLAIMS, make_object(spec), "default")
    with pytest.raises(Invalid, match=r"spec\.spec"):
        api.create(RESOURCE_CLAIM_TEMPLATES, make_object({"spec": spec}), "default")


@pytest.mark.parametrize(
    ("devices", "error"),
    [
        ({"requests": [EXACT, EXACT]}, "Duplicate"),
        ({"requests": [EXACT | {"name": f"r{number}"} for number in range(33)]}, "at most 32"),
        ({"requests": [EXACT], "constraints": [{}]}, "exactly one constraint"),
    ],
)
def test_invalid_claim_is_refused(api: ApiServer, devices: Object, error: str) -> None:
    with pytest.raises(Invalid, match=error):
        api.create(RESOURCE_CLAIMS, make_object({"devices": devices}), "default")


def test_claim_spec_and_allocation_do_not_change(api: ApiServer) -> None:
    api.create(RESOURCE_CLAIMS, make_object(SPEC), "default")
    with pytest.raises(Invalid, match="immutable"):
        api.patch(RESOURCE_CLAIMS, "x", {"spec": {"devices": {"requests": []}}}, "default")
    with pytest.raises(Invalid, match="not be specified when"):
        api.patch(RESOURCE_CLAIMS, "x", {"status": {"reservedFor": [{"name": "p"}]}}, "default", "status")
    allocation: Object = {"devices": {"results": []}}
    api.patch(RESOURCE_CLAIMS, "x", {"status": {"allocation": allocation}}, "default", "status")
    changed_allocation = {"devices": {"results": [{"request": "gpu"}]}}
    with pytest.raises(Invalid, match=r"status\.allocation"):
        api.patch(RESOURCE_CLAIMS, "x", {"status": {"allocation": changed_allocation}}, "default", "status")
    consumers = [{"name": f"p{number}"} for number in range(257)]
    with pytest.raises(Invalid, match="Too many"):
        api.patch(RESOURCE_CLAIMS, "x", {"status": {"reservedFor": consumers}}, "default", "status")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"driver": ""}, "spec.driver"),
        ({"pool": {"generation": 1, "resourceSliceCount": 1}}, "spec.pool.name"),
        ({"pool": POOL | {"resourceSliceCount": 0}}, "resourceSliceCount"),
        ({"allNodes": True}, "exactly one of nodeName"),
        ({"devices": [{"name": "a"}, {"name": "a"}]}, "Duplicate"),
        ({"devices": [{"name": f"d{number}"} for number in range(129)]}, "at most 128"),
        ({"devices": [{"name": "a", "attributes": {"x": {}}}]}, "exactly one value"),
    ],
)
def test_invalid_slice_is_refused(api: ApiServer, changes: Object, error: str) -> None:
    api.create(RESOURCE_SLICES, make_object(SLICE, "valid"))
    with pytest.raises(Invalid, match=error):
        api.create(RESOURCE_SLICES, make_object(SLICE | changes))


def test_invalid_device_class_is_refused(api: ApiServer) -> None:
    api.create(DEVICE_CLASSES, make_object({}, "valid"))
    for selectors, error in (([{}], "Required"), ([{"cel": {"expression": "true"}}] * 33, "Too many")):
        with pytest.raises(Invalid, match=error):
            api.create(DEVICE_CLASSES, make_object({"selectors": selectors}))
