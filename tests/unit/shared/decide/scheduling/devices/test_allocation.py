"""Allocation of the devices of one node: requests, prioritized lists, constraints, taints, counters."""

from typing import Any

import pytest

from shared.decide.scheduling.devices.allocation import (
    allocate,
    find_selector_error,
    is_search_stopped,
    list_used_by_count,
    take_devices,
)
from shared.model.core.devices import ClaimSpec, DeviceConstraint, NodeDevices
from shared.model.core.taints import Taint, Toleration
from shared.state.dynamic_resources.pod_claims import DeviceDemand
from tests.support.device_cases import DRIVER, make_device, make_devices, make_request, make_spec

MIXED = NodeDevices(
    devices=(
        make_device("a", attributes={"model": "small", "numa": "0"}, capacity={"memory": "10Gi"}),
        make_device("b", attributes={"model": "large", "numa": "0"}, capacity={"memory": "80Gi"}),
        make_device("c", attributes={"model": "large", "numa": "1"}, capacity={"memory": "80Gi"}),
        make_device("d", attributes={"model": "small", "numa": "1"}, capacity={"memory": "10Gi"}),
    )
)
LARGE = f'device.attributes["{DRIVER}"].model == "large"'
SMALL = f'device.attributes["{DRIVER}"].model == "small"'


def allocate_names(spec: ClaimSpec, devices: NodeDevices = MIXED, *used: str) -> str | None:
    used_ids = frozenset((DRIVER, "n", name) for name in used)
    result = allocate(devices, used_ids, (spec,))
    return None if result is None else " ".join(device.name for _, device, _ in result[0])


@pytest.mark.parametrize(
    ("spec", "used", "names"),
    [
        (make_spec(make_request()), "", "a"),
        (make_spec(make_request()), "ab", "c"),
        (make_spec(make_request(count=3)), "b", "a c d"),
        (make_spec(make_request(count=3)), "bc", None),
        (make_spec(make_request("x", LARGE)), "", "b"),
        (make_spec(make_request("x", LARGE), make_request("y", LARGE)), "", "b c"),
        (make_spec(make_request("x", LARGE, takes_all=True)), "", "b c"),
        (make_spec(make_request("x", LARGE, takes_all=True)), "c", None),
        (make_spec(make_request("x", "false", takes_all=True)), "", None),
        (make_spec(make_request("x"), make_request("y", SMALL, count=2)), "", "b a d"),
        (make_spec((make_request("x/large", LARGE, count=3), make_request("x/small", SMALL, count=2))), "", "a d"),
        (make_spec((make_request("x/large", LARGE), make_request("x/small", SMALL))), "", "b"),
        (make_spec(make_request(has_admin_access=True)), "abcd", "a"),
    ],
)
def test_devices_are_taken_in_their_order_as_far_as_requests_allow(
    spec: ClaimSpec, used: str, names: str | None
) -> None:
    assert allocate_names(spec, MIXED, *used) == names


@pytest.mark.parametrize(
    ("attribute", "fields", "names"),
    [
        ("numa", {}, "a b"),
        ("model", {}, "a d"),
        ("numa", {"is_distinct": True}, "a c"),
        ("absent", {}, None),
        ("numa", {"requests": ("other",)}, "a b"),
        ("model", {"requests": ("gpu",)}, "a d"),
    ],
)
def test_a_constraint_restricts_the_devices_of_its_requests(
    attribute: str, fields: dict[str, Any], names: str | None
) -> None:
    constraint = DeviceConstraint(attribute=f"{DRIVER}/{attribute}", **fields)
    assert allocate_names(make_spec(make_request(count=2), constraints=(constraint,))) == names


def test_the_search_goes_back_when_a_later_request_fails() -> None:
    constraint = DeviceConstraint(attribute=f"{DRIVER}/numa")
    spec = make_spec(make_request("x"), make_request("y", LARGE), constraints=(constraint,))
    assert allocate_names(spec, MIXED, "b") == "d c"


def test_a_constraint_on_a_request_includes_its_alternatives() -> None:
    constraint = DeviceConstraint(attribute=f"{DRIVER}/model", requests=("x", "y"))
    spec = make_spec((make_request("x/l", LARGE),), make_request("y"), constraints=(constraint,))
    assert allocate_names(spec) == "b c"


def test_capacity_is_compared_as_a_quantity() -> None:
    selector = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("20Gi")) >= 0'
    assert allocate_names(make_spec(make_request("x", selector))) == "b"


def test_a_tainted_device_needs_a_toleration_from_the_request() -> None:
    taint = Taint(key="broken", effect="NoExecute", value="yes")
    devices = NodeDevices(devices=(make_device("a", taints=(taint,)),))
    tolerations = (Toleration(key="broken", operator="Exists"),)
    assert allocate_names(make_spec(make_request()), devices) is None
    assert allocate_names(make_spec(make_request(tolerations=tolerations)), devices) == "a"
    assert allocate_names(make_spec(make_request(takes_all=True)), devices) is None


def test_devices_that_share_counters_are_not_taken_beyond_them() -> None:
    devices = NodeDevices(
        devices=tuple(make_device(name, counters=(("card", "memory", 40),)) for name in "abc"),
        counters=((DRIVER, "n", "card", "memory", 80),),
    )
    assert allocate_names(make_spec(make_request(count=2)), devices) == "a b"
    assert allocate_names(make_spec(make_request(count=3)), devices) is None
    assert allocate_names(make_spec(make_request(count=2)), devices, "c") is None


def test_a_device_with_an_unsupported_field_is_never_taken() -> None:
    devices = NodeDevices(devices=(make_device("a", unsupported="allowMultipleAllocations"), make_device("b")))
    assert allocate_names(make_spec(make_request()), devices) == "b"


def test_a_claim_has_at_most_32_devices() -> None:
    assert allocate_names(make_spec(make_request(count=32)), make_devices(40)) is not None
    assert allocate_names(make_spec(make_request(count=33)), make_devices(40)) is None


def test_a_search_without_end_is_stopped() -> None:
    pairs = [{"pair": str(number)} for number in range(30)]
    devices = NodeDevices(
        devices=tuple(make_device(f"{number:02d}", attributes=pair) for number, pair in enumerate(pairs * 2))
    )
    constraint = DeviceConstraint(attribute=f"{DRIVER}/pair", is_distinct=True)
    spec = make_spec(make_request(count=31), constraints=(constraint,))
    assert allocate_names(spec, devices) is None
    assert is_search_stopped(devices, DeviceDemand(generated=(spec,)))
    assert not is_search_stopped(devices, DeviceDemand(generated=(make_spec(make_request(count=32)),)))


def test_a_selector_that_cannot_be_evaluated_refuses_the_node() -> None:
    spec = make_spec(make_request("x", 'device.attributes["other.example.com"].model == "a"'))
    assert allocate_names(spec) is None
    demand = DeviceDemand(generated=(spec,))
    assert "cannot be evaluated for device a" in find_selector_error(MIXED, demand)
    assert not find_selector_error(MIXED, DeviceDemand(generated=(make_spec(make_request()),)))


def test_pods_are_counted_until_the_devices_are_used_up() -> None:
    demand = DeviceDemand(generated=(make_spec(make_request(count=2)),))
    used_by_count = list_used_by_count(make_devices(5), frozenset(), frozenset(), demand, 9)
    assert [len(used) for used in used_by_count] == [2, 4]


def test_a_shared_claim_takes_its_devices_once() -> None:
    demand = DeviceDemand(shared=(("shop/gpus", make_spec(make_request(count=2))),))
    first = list_used_by_count(make_devices(3), frozenset(), frozenset(), demand, 3)
    assert [len(used) for used in first] == [2, 2, 2]
    later = list_used_by_count(make_devices(3), frozenset(), frozenset({"shop/gpus"}), demand, 1)
    assert later == (frozenset(),)


def test_admin_access_takes_nothing() -> None:
    spec = make_spec(make_request(has_admin_access=True))
    assert take_devices(make_devices(1), frozenset(), (spec,)) == frozenset()
