"""Decoding of resource.k8s.io/v1, and of the annotation joiner.dev/devices."""

from typing import Any

import msgspec
import pytest

from shared.model.core.devices import ClaimSpec
from shared.model.core.requirements import build_label_requirements
from shared.model.core.taints import Taint, Toleration
from shared.wire.decode.dynamic_resources.declared_devices import parse_declared_devices
from shared.wire.decode.dynamic_resources.devices import (
    parse_device_class,
    parse_resource_claim,
    parse_resource_claim_template,
    parse_resource_slice,
)
from shared.wire.schema import devices as wire

DRIVER = "gpu.example.com"


def read_slice(**spec: Any) -> Any:
    document = {
        "metadata": {"name": "s"},
        "spec": {
            "driver": DRIVER,
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 3, "resourceSliceCount": 2},
            **spec,
        },
    }
    return parse_resource_slice(msgspec.convert(document, wire.ResourceSliceJson))


def read_spec(*requests: dict[str, Any], **devices: Any) -> ClaimSpec:
    document = {"metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": requests, **devices}}}}
    return parse_resource_claim_template(msgspec.convert(document, wire.ResourceClaimTemplateJson)).spec


def test_slice_has_its_pool_and_devices() -> None:
    resource_slice = read_slice(
        devices=[
            {
                "name": "gpu-0",
                "attributes": {
                    "model": {"string": "a100"},
                    "index": {"int": 3},
                    "ecc": {"bool": True},
                    "resource.kubernetes.io/driverVersion": {"version": "1.2.3"},
                },
                "capacity": {"memory": {"value": "80Gi"}},
                "taints": [{"key": "broken", "effect": "NoExecute"}, {"key": "info", "effect": "None"}],
                "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": "40"}}}],
            }
        ],
        sharedCounters=[{"name": "card", "counters": {"memory": {"value": "80"}}}],
    )
    assert (resource_slice.pool, resource_slice.generation, resource_slice.slice_count) == ("n1", 3, 2)
    assert (resource_slice.node_name, resource_slice.counters) == ("n1", (("card", "memory", 80_000),))
    [device] = resource_slice.devices
    assert device.id == (DRIVER, "n1", "gpu-0")
    assert device.attributes == (
        (f"{DRIVER}/ecc", "bool", "true"),
        (f"{DRIVER}/index", "int", "3"),
        (f"{DRIVER}/model", "string", "a100"),
        ("resource.kubernetes.io/driverVersion", "version", "1.2.3"),
    )
    assert device.capacity == ((f"{DRIVER}/memory", "80Gi"),)
    assert device.taints == (Taint(key="broken", effect="NoExecute"),)
    assert device.counters == (("card", "memory", 40_000),)


@pytest.mark.parametrize(
    ("fields", "unsupported"),
    [
        ({}, ""),
        ({"allowMultipleAllocations": True}, "allowMultipleAllocations"),
        ({"allNodes": True}, "nodeName, nodeSelector or allNodes of a device"),
        ({"nodeSelector": {}}, "nodeName, nodeSelector or allNodes of a device"),
    ],
)
def test_device_with_an_unsupported_field_is_marked(fields: dict[str, Any], unsupported: str) -> None:
    assert read_slice(devices=[{"name": "a", **fields}]).devices[0].unsupported == unsupported


def test_invalid_capacity_names_the_device() -> None:
    with pytest.raises(ValueError, match=r"spec.devices\[a\].capacity: not a quantity: 'much'"):
        read_slice(devices=[{"name": "a", "capacity": {"memory": {"value": "much"}}}])


def test_claim_has_requests_constraints_allocation_and_consumers() -> None:
    document = {
        "metadata": {"name": "c", "namespace": "shop"},
        "spec": {
            "devices": {
                "requests": [
                    {
                        "name": "gpu",
                        "exactly": {
                            "deviceClassName": "gpu",
                            "selectors": [{"cel": {"expression": "true"}}],
                            "allocationMode": "ExactCount",
                            "count": 2,
                            "tolerations": [{"key": "a", "operator": "Exists"}],
                        },
                    }
                ],
                "constraints": [{"requests": ["gpu"], "matchAttribute": f"{DRIVER}/numa"}],
            }
        },
        "status": {
            "allocation": {
                "devices": {
                    "results": [
                        {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-1"},
                        {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-2", "adminAccess": True},
                    ]
                },
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [{"key": "rack", "operator": "In", "values": ["1"]}],
                            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
                        }
                    ]
                },
            },
            "reservedFor": [{"resource": "pods", "name": "x"}, {"apiGroup": "a", "resource": "things", "name": "y"}],
        },
    }
    claim = parse_resource_claim(msgspec.convert(document, wire.ResourceClaimJson))
    [[request]] = claim.spec.requests
    assert (request.name, request.device_class, request.selectors, request.count) == ("gpu", "gpu", ("true",), 2)
    assert request.tolerations == (Toleration(key="a", operator="Exists"),)
    [constraint] = claim.spec.constraints
    assert (constraint.requests, constraint.attribute, constraint.is_distinct) == (("gpu",), f"{DRIVER}/numa", False)
    assert claim.allocation is not None
    assert claim.allocation.devices == ((DRIVER, "n1", "gpu-1"),)
    assert claim.allocation.node_names == ("n1",)
    assert claim.allocation.terms == (build_label_requirements({"rack": "1"}),)
    assert claim.consumers == ("shop/x", "things y")


def test_prioritized_list_names_its_alternatives() -> None:
    spec = read_spec(
        {
            "name": "gpu",
            "firstAvailable": [
                {"name": "large", "deviceClassName": "gpu", "allocationMode": "All"},
                {"name": "small", "deviceClassName": "gpu", "count": 2},
            ],
        },
        constraints=[{"distinctAttribute": f"{DRIVER}/numa"}],
    )
    [alternatives] = spec.requests
    assert [(item.name, item.takes_all, item.count) for item in alternatives] == [
        ("gpu/large", True, 1),
        ("gpu/small", False, 2),
    ]
    assert spec.constraints[0].is_distinct
    assert not spec.unsupported


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"exactly": {"capacity": {"requests": {}}}}, "spec.devices.requests[0].exactly.capacity"),
        ({"exactly": {"allocationMode": "Some"}}, "spec.devices.requests[0].exactly.allocationMode"),
        ({"exactly": {"selectors": [{"other": {}}]}}, "spec.devices.requests[0].exactly.selectors[0]"),
        ({"firstAvailable": [{"name": "a", "capacity": {}}]}, "spec.devices.requests[0].firstAvailable[0].capacity"),
        ({"future": {}}, "spec.devices.requests[0]"),
    ],
)
def test_unsupported_field_of_a_request_is_kept_by_its_path(request_: dict[str, Any], field: str) -> None:
    assert read_spec({"name": "a", **request_}).unsupported == field


def test_unknown_constraint_is_kept_by_its_path() -> None:
    spec = read_spec({"name": "a", "exactly": {}}, constraints=[{"future": 1}])
    assert spec.unsupported == "spec.devices.constraints[0]"


def test_device_class_has_selectors() -> None:
    document = {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": "true"}}, {"other": {}}]}}
    device_class = parse_device_class(msgspec.convert(document, wire.DeviceClassJson))
    assert (device_class.selectors, device_class.unsupported) == (("true",), "spec.selectors[1]")


def test_declared_devices_are_numbered() -> None:
    assert parse_declared_devices("") is None
    devices = parse_declared_devices(
        '[{"driver": "gpu.example.com", "count": 2, "name": "gpu", "attributes": {"model": {"string": "a100"}},'
        ' "capacity": {"memory": "80Gi"}}, {"driver": "a.example.com"}]'
    )
    assert devices is not None
    assert [(device.driver, device.name) for device in devices] == [
        ("a.example.com", "device-0"),
        (DRIVER, "gpu-0"),
        (DRIVER, "gpu-1"),
    ]
    assert devices[1].attributes == ((f"{DRIVER}/model", "string", "a100"),)
    assert devices[1].capacity == ((f"{DRIVER}/memory", "80Gi"),)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{}", "joiner.dev/devices: Expected `array`.*write a JSON list like"),
        ('[{"driver": "a", "typo": 1}]', "unknown field `typo`"),
        ("[]", "declares 0 devices"),
        ('[{"driver": "a", "count": 500}]', "declares 129 devices; write 1 to 128"),
        ('[{"driver": "a"}, {"driver": "a"}]', "two devices of a driver have the same name"),
        ('[{"driver": "a", "capacity": {"x": "much"}}]', "not a quantity"),
    ],
)
def test_invalid_declaration_is_refused_with_the_fix(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        parse_declared_devices(text)
