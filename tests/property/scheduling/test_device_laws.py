"""Laws of device allocation: no device is used twice, all selectors and constraints hold, order does not matter."""

import itertools
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.scheduling.devices.allocation import allocate, list_used_by_count
from shared.model.core.devices import ClaimSpec, Device, DeviceConstraint, NodeDevices, ResourceSlice
from shared.state.dynamic_resources.node_devices import index_published_devices
from shared.state.dynamic_resources.pod_claims import DeviceDemand
from tests.support.catalogues import locate_pods, make_node
from tests.support.device_cases import (
    CLASS_SELECTOR,
    DRIVER,
    make_claiming_pod,
    make_device,
    make_device_cluster,
    make_request,
    make_slice,
    make_spec,
)
from tests.support.snapshot_decisions import solve

MODELS = ("a", "b")
SELECTORS = ("true", *(f'device.attributes["{DRIVER}"].model == "{model}"' for model in MODELS))


@st.composite
def draw_devices(draw: st.DrawFn, max_count: int = 6) -> NodeDevices:
    attributes = st.fixed_dictionaries({"model": st.sampled_from(MODELS), "numa": st.sampled_from("01")})
    attribute_list = draw(st.lists(attributes, max_size=max_count))
    return NodeDevices(
        devices=tuple(make_device(f"gpu-{number}", attributes=item) for number, item in enumerate(attribute_list))
    )


@st.composite
def draw_spec(draw: st.DrawFn) -> ClaimSpec:
    names = [f"r{number}" for number in range(draw(st.integers(1, 3)))]
    requests = [
        tuple(
            make_request(
                name if count == 1 else f"{name}/{index}",
                CLASS_SELECTOR,
                draw(st.sampled_from(SELECTORS)),
                count=draw(st.integers(1, 3)),
                takes_all=draw(st.booleans()),
            )
            for index in range(count)
        )
        for name in names
        for count in (draw(st.integers(1, 2)),)
    ]
    constraints = draw(
        st.lists(
            st.builds(
                DeviceConstraint,
                requests=st.lists(st.sampled_from(names), unique=True).map(tuple),
                attribute=st.sampled_from([f"{DRIVER}/numa", f"{DRIVER}/model"]),
                is_distinct=st.booleans(),
            ),
            max_size=2,
        )
    )
    return make_spec(*requests, constraints=tuple(constraints))


def get_attribute(device: Device, name: str) -> str:
    return next(text for key, _, text in device.attributes if key == name)


def check_claim(spec: ClaimSpec, allocated: Iterable[tuple[str, Device, bool]]) -> None:
    devices_by_request: dict[str, list[Device]] = {}
    for name, device, _ in allocated:
        devices_by_request.setdefault(name, []).append(device)
    for alternatives in spec.requests:
        [request] = [item for item in alternatives if item.name in devices_by_request]
        devices = devices_by_request[request.name]
        assert request.takes_all or len(devices) == request.count
        model = request.selectors[1].partition("== ")[2].strip('"')
        assert not model or {get_attribute(device, f"{DRIVER}/model") for device in devices} == {model}
    for constraint in spec.constraints:
        values = [
            get_attribute(device, constraint.attribute)
            for name, devices in devices_by_request.items()
            if not constraint.requests or name.partition("/")[0] in constraint.requests
            for device in devices
        ]
        assert len(set(values)) == len(values) if constraint.is_distinct else len(set(values)) <= 1


@given(draw_devices(), st.lists(draw_spec(), min_size=1, max_size=2), st.sets(st.integers(0, 5)))
def test_an_allocation_uses_no_device_twice_and_satisfies_every_claim(
    node_devices: NodeDevices, specs: list[ClaimSpec], used_numbers: set[int]
) -> None:
    used = frozenset((DRIVER, "n", f"gpu-{number}") for number in used_numbers)
    result = allocate(node_devices, used, tuple(specs))
    if result is None:
        return
    taken_ids = [device.id for allocated in result for _, device, _ in allocated]
    assert len(set(taken_ids)) == len(taken_ids)
    assert not set(taken_ids) & used
    for spec, allocated in zip(specs, result, strict=True):
        check_claim(spec, allocated)


@given(draw_devices(), draw_spec(), st.integers(1, 4))
def test_each_pod_takes_further_devices_and_more_devices_never_hold_fewer_pods(
    node_devices: NodeDevices, spec: ClaimSpec, count: int
) -> None:
    demand = DeviceDemand(generated=(spec,))
    used_by_count = list_used_by_count(node_devices, frozenset(), frozenset(), demand, count)
    for earlier, later in itertools.pairwise(used_by_count):
        assert earlier < later
    if not any(request.takes_all for alternatives in spec.requests for request in alternatives):
        used_by_one_pod = list_used_by_count(node_devices, frozenset(), frozenset(), demand, 1)
        larger_node = NodeDevices(
            devices=(*node_devices.devices, make_device("z", attributes={"model": "a", "numa": "0"}))
        )
        assert len(list_used_by_count(larger_node, frozenset(), frozenset(), demand, 1)) >= len(used_by_one_pod)


@given(draw_devices(4), draw_spec(), st.integers(1, 3), st.permutations(range(3)))
def test_plans_do_not_depend_on_the_order_of_slices(
    node_devices: NodeDevices, spec: ClaimSpec, pod_count: int, order: list[int]
) -> None:
    halves = (node_devices.devices[::2], node_devices.devices[1::2])
    slices: list[ResourceSlice] = [make_slice("n1", half, slice_count=2) for half in halves]
    slices = [replace(item, meta=replace(item.meta, name=f"s{number}")) for number, item in enumerate(slices)]
    slices.append(make_slice("n2", node_devices.devices))
    pods = [make_claiming_pod(f"p{number}", cpu="100m") for number in range(pod_count)]
    nodes = (make_node("n1"), make_node("n2"))
    cluster = make_device_cluster(*pods, nodes=nodes, node_pools=(), spec=spec)
    permuted = tuple(slices[number] for number in order)
    assert index_published_devices(permuted) == index_published_devices(slices)
    placements = [solve(replace(cluster, resource_slices=tuple(items))) for items in (slices, permuted)]
    assert locate_pods(placements[0]) == locate_pods(placements[1])
