"""Planning of pods with ResourceClaims: existing nodes, new nodes, shared claims, and messages."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.scheduling.templates.declared_devices import list_declared_kinds
from shared.model.core.devices import ClaimSpec, DeviceConstraint, NodeDevices
from shared.model.core.labels import HOSTNAME, INSTANCE_TYPE, NODEPOOL
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.karpenter.node_overlay import NodeOverlay
from shared.model.kubernetes.node import Node
from tests.support.catalogues import (
    NOW,
    SIZES,
    attach_claim,
    count_pods_per_new_node,
    locate_pods,
    make_cluster_snapshot,
    make_node,
    make_node_pool,
    make_pod,
    make_requirements,
)
from tests.support.device_cases import (
    DRIVER,
    make_claim,
    make_claiming_pod,
    make_device,
    make_device_cluster,
    make_devices,
    make_request,
    make_slice,
    make_spec,
)
from tests.support.snapshot_decisions import solve

TWO_GPUS = {"m.08": make_devices(2)}


def make_gpu_node(name: str, *, cpu: str = "8", type_name: str = "m.08") -> Node:
    return make_node(name, cpu, "64Gi", labels={HOSTNAME: name, INSTANCE_TYPE: type_name})


def test_pod_gets_a_free_device_of_an_existing_node() -> None:
    cluster = replace(
        make_device_cluster(make_claiming_pod("x"), nodes=(make_gpu_node("n1"), make_gpu_node("n2")), node_pools=()),
        resource_slices=(make_slice("n2", make_devices(1).devices),),
    )
    assert locate_pods(solve(cluster)) == {"x": "n2"}


def test_device_that_is_allocated_is_not_free() -> None:
    cluster = make_device_cluster(make_claiming_pod("x"), nodes=(make_gpu_node("n1"),), node_pools=())
    slices = (make_slice("n1", make_devices(1).devices),)
    used = replace(cluster, resource_slices=slices, resource_claims=(make_claim("c", on="n1", devices=("gpu-0",)),))
    assert locate_pods(solve(used)) == {"x": "NoNodePool"}


@pytest.mark.parametrize(
    ("slices", "location"),
    [
        ((make_slice("n1", (), generation=2), make_slice("n1", make_devices(1).devices)), "NoNodePool"),
        ((make_slice("n1", make_devices(1).devices, slice_count=2),), "NoNodePool"),
        ((make_slice("n1", make_devices(1).devices, node_name=""),), "NoNodePool"),
        ((make_slice("n1", make_devices(1).devices, generation=2), make_slice("n1", ())), "n1"),
    ],
)
def test_only_complete_pools_of_the_newest_generation_count(slices: tuple[object, ...], location: str) -> None:
    cluster = make_device_cluster(make_claiming_pod("x"), nodes=(make_gpu_node("n1"),), node_pools=())
    assert locate_pods(solve(replace(cluster, resource_slices=slices))) == {"x": location}


def test_new_nodes_have_the_devices_that_nodes_of_their_kind_published() -> None:
    pods = [make_claiming_pod(f"p{number}", cpu="100m") for number in range(3)]
    placement = solve(make_device_cluster(*pods, observed=TWO_GPUS))
    assert count_pods_per_new_node(placement) == [1, 2]
    assert {node.instance_types for node in placement.new_nodes} == {("m.08",)}


def test_pods_without_claims_use_what_is_left_of_a_node_with_devices() -> None:
    placement = solve(make_device_cluster(make_claiming_pod("x"), make_pod("y"), observed=TWO_GPUS))
    assert count_pods_per_new_node(placement) == [2]


def test_pod_takes_the_cheapest_instance_type_with_its_devices() -> None:
    spec = make_spec(make_request(count=4))
    observed = {"m.08": make_devices(2), "m.16": make_devices(4)}
    [node] = solve(make_device_cluster(make_claiming_pod("x"), observed=observed, spec=spec)).new_nodes
    assert node.instance_types == ("m.16",)


def test_unknown_devices_are_reported_with_the_ways_to_make_them_known() -> None:
    [failure] = solve(make_device_cluster(make_claiming_pod("x"))).unschedulable
    assert failure.reason == "NoDeviceFits"
    assert failure.message == (
        "NodePool default: the devices of its instance types are not known (1 gpu): Joiner learns them from the "
        "ResourceSlices of nodes with the same instance type and NodePool; to fix: start one such node, or declare "
        "them with joiner.dev/devices on a NodeOverlay"
    )


def test_devices_that_do_not_fit_are_reported_with_the_request() -> None:
    spec = make_spec(make_request(count=3))
    [failure] = solve(make_device_cluster(make_claiming_pod("x"), observed=TWO_GPUS, spec=spec)).unschedulable
    assert failure.message == (
        "NodePool default: no instance type has free devices for 3 gpu: allow other instance types, or change the claim"
    )


def test_broken_selector_is_reported() -> None:
    spec = make_spec(make_request("gpu", "device.absent == 1"))
    [failure] = solve(make_device_cluster(make_claiming_pod("x"), observed=TWO_GPUS, spec=spec)).unschedulable
    assert "selector device.absent == 1 cannot be evaluated for device gpu-0" in failure.message


def test_unsupported_devices_are_reported() -> None:
    device = make_device("a", unsupported="allowMultipleAllocations")
    cluster = make_device_cluster(make_claiming_pod("x"), observed={"m.08": NodeDevices(devices=(device,))})
    [failure] = solve(cluster).unschedulable
    assert "devices with allowMultipleAllocations are not supported" in failure.message


def test_kinds_of_another_node_pool_are_not_assumed() -> None:
    pools = (make_node_pool("default", requirements=make_requirements((INSTANCE_TYPE, "In", ("m.04",)))),)
    cluster = make_device_cluster(make_claiming_pod("x"), observed=TWO_GPUS, node_pools=(*pools, make_node_pool("b")))
    assert locate_pods(solve(cluster)) == {"x": "NoDeviceFits"}


def test_pods_of_a_shared_claim_run_on_one_node() -> None:
    pods = [make_claiming_pod(f"p{number}", claim="both", cpu="3") for number in range(3)]
    cluster = make_device_cluster(*pods, observed=TWO_GPUS)
    placement = solve(replace(cluster, resource_claims=(make_claim("both", make_spec(make_request(count=2))),)))
    assert (count_pods_per_new_node(placement), len(placement.unschedulable)) == ([2], 1)


def test_pod_of_an_allocated_claim_runs_where_the_claim_is() -> None:
    nodes = (make_gpu_node("n1"), make_gpu_node("n2"))
    running = make_claiming_pod("old", claim="one", on="n2")
    claim = make_claim("one", on="n2", devices=("gpu-0",), consumers=("shop/old",))
    cluster = replace(
        make_device_cluster(make_claiming_pod("x", claim="one"), running, nodes=nodes, observed=TWO_GPUS),
        resource_claims=(claim,),
    )
    assert locate_pods(solve(cluster)) == {"x": "n2"}
    full = replace(cluster, nodes=(make_gpu_node("n1"), make_gpu_node("n2", cpu="1")))
    [failure] = solve(full).unschedulable
    assert failure.message == (
        "NodePool default: its allocated ResourceClaims are in topology domains where it cannot launch nodes "
        "(kubernetes.io/hostname In [n2])"
    )


def test_claim_of_a_pending_pod_is_allocated_again() -> None:
    claim = make_claim("x-gpu", on="gone", devices=("gpu-0",), consumers=("shop/x",))
    pod = make_claiming_pod("x", claim_names=(("gpu", "x-gpu"),))
    cluster = replace(make_device_cluster(pod, observed=TWO_GPUS), resource_claims=(claim,))
    assert locate_pods(solve(cluster)) == {"x": "default"}


def test_claim_of_a_pending_pod_leaves_its_device_free_for_the_pod() -> None:
    claim = make_claim("x-gpu", on="n1", devices=("gpu-0",), consumers=("shop/x",))
    pod = make_claiming_pod("x", claim_names=(("gpu", "x-gpu"),))
    cluster = replace(
        make_device_cluster(pod, nodes=(make_gpu_node("n1"),), node_pools=()),
        resource_claims=(claim,),
        resource_slices=(make_slice("n1", make_devices(1).devices),),
    )
    assert locate_pods(solve(cluster)) == {"x": "n1"}


def test_generated_claim_of_a_pending_pod_that_is_not_reserved_leaves_its_device_free() -> None:
    claim = make_claim("x-gpu", on="n1", devices=("gpu-0",))
    pod = make_claiming_pod("x", claim_names=(("gpu", "x-gpu"),))
    cluster = replace(
        make_device_cluster(pod, nodes=(make_gpu_node("n1"),), observed=TWO_GPUS),
        resource_claims=(claim,),
        resource_slices=(make_slice("n1", make_devices(1).devices),),
    )
    assert locate_pods(solve(cluster)) == {"x": "n1"}


@pytest.mark.parametrize(("minutes", "location"), [(5, "n1"), (11, "default")])
def test_node_counts_with_its_expected_devices_until_its_drivers_had_time(minutes: int, location: str) -> None:
    node, claim = attach_claim(make_gpu_node("n1"))
    created_at = NOW - timedelta(minutes=minutes)
    node = replace(node, meta=replace(node.meta, created_at=created_at))
    second_node, other_claim = attach_claim(make_gpu_node("n2", cpu="500m"))
    cluster = make_device_cluster(make_claiming_pod("x"), nodes=(node, second_node), node_claims=(claim, other_claim))
    published = replace(cluster, resource_slices=(make_slice("n2", make_devices(1).devices),))
    assert locate_pods(solve(published)) == {"x": location}


def test_node_of_a_kind_that_published_nothing_is_not_launched_again() -> None:
    node, claim = attach_claim(make_gpu_node("n1"))
    node = replace(node, meta=replace(node.meta, created_at=NOW - timedelta(hours=1)))
    cluster = make_device_cluster(make_claiming_pod("x"), nodes=(node,), node_claims=(claim,), observed=TWO_GPUS)
    assert locate_pods(solve(cluster)) == {"x": "NoDeviceFits"}


def test_claim_without_an_instance_counts_with_its_expected_devices() -> None:
    _, claim = attach_claim(make_gpu_node("n1"))
    claim = replace(
        claim,
        meta=ObjectMeta(name="in-flight", labels=build_pairs({NODEPOOL: "default"})),
        requirements=make_requirements((INSTANCE_TYPE, "In", ("m.08",))),
        requests=SIZES[2].allocatable,
        provider_id="",
        node_name="",
    )
    pods = [make_claiming_pod(f"p{number}") for number in range(3)]
    placement = solve(make_device_cluster(*pods, node_claims=(claim,), observed=TWO_GPUS))
    assert sorted(locate_pods(placement).values()) == ["default", "in-flight", "in-flight"]
    flexible_claim = replace(claim, requirements=make_requirements((INSTANCE_TYPE, "In", ("m.08", "m.16"))))
    placement = solve(make_device_cluster(*pods[:1], node_claims=(flexible_claim,), observed=TWO_GPUS))
    assert locate_pods(placement) == {"p0": "default"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"resource_claim_templates": ()}, "ResourceClaimTemplate gpu does not exist: create it"),
        (
            {"device_classes": ()},
            "ResourceClaimTemplate gpu: DeviceClass gpu of request gpu does not exist: create it",
        ),
    ],
)
def test_missing_objects_are_named(changes: dict[str, object], message: str) -> None:
    cluster = replace(make_device_cluster(make_claiming_pod("x"), observed=TWO_GPUS), **changes)
    [failure] = solve(cluster).unschedulable
    assert (failure.reason, failure.message) == ("ResourceClaimNotUsable", message)


def test_unsupported_field_of_a_claim_is_named() -> None:
    spec = make_spec(make_request(), unsupported="spec.devices.requests[0].exactly.capacity")
    [failure] = solve(make_device_cluster(make_claiming_pod("x"), observed=TWO_GPUS, spec=spec)).unschedulable
    assert "spec.devices.requests[0].exactly.capacity is not supported by Joiner" in failure.message


def explain_refusal(spec: ClaimSpec, devices: NodeDevices) -> str:
    [failure] = solve(make_device_cluster(make_claiming_pod("x"), observed={"m.08": devices}, spec=spec)).unschedulable
    return failure.message


def test_stopped_search_is_named() -> None:
    pairs = tuple(make_device(f"{number:02d}", attributes={"pair": str(number % 30)}) for number in range(60))
    constraint = DeviceConstraint(attribute=f"{DRIVER}/pair", is_distinct=True)
    spec = make_spec(make_request(count=31), constraints=(constraint,))
    message = explain_refusal(spec, NodeDevices(devices=pairs))
    assert "the search for devices for 31 gpu was stopped after 20,000 steps: simplify the claim" in message


def test_attribute_of_a_constraint_that_no_device_has_is_named() -> None:
    spec = make_spec(make_request(), constraints=(DeviceConstraint(attribute="resource.kubernetes.io/pcieRoot"),))
    message = explain_refusal(spec, make_devices(1))
    assert "the values of resource.kubernetes.io/pcieRoot on new nodes are not known" in message


@pytest.mark.parametrize(
    "selector", [f'device.attributes["{DRIVER}"].?model.orValue("") == "a"', "cel.bind(x, 1, x == 1)"]
)
def test_syntax_that_only_kubernetes_supports_is_named(selector: str) -> None:
    message = explain_refusal(make_spec(make_request("gpu", selector)), make_devices(1))
    assert "which is not supported by Joiner: write" in message
    assert "correct the selector" not in message


def test_missing_deleted_and_full_claims_are_named() -> None:
    cluster = make_device_cluster(make_claiming_pod("x", claim="one"), observed=TWO_GPUS)
    deleted = make_claim("one")
    deleted = replace(deleted, meta=replace(deleted.meta, deleted_at=NOW))
    pods = tuple(make_claiming_pod(f"c{number:03d}", claim="one", on="n1") for number in range(256))
    full = make_claim("one", on="n1", devices=("gpu-0",), consumers=tuple(pod.name for pod in pods))
    messages = [
        solve(replace(cluster, resource_claims=claims, pods=(*cluster.pods, *pods))).unschedulable[0].message
        for claims in ((), (deleted,), (full,))
    ]
    assert messages == [
        "ResourceClaim one does not exist: create it",
        "ResourceClaim one is being deleted",
        "ResourceClaim one is in use by 256 pods, the maximum: use another claim",
    ]


def test_constraint_across_requests_selects_the_instance_type() -> None:
    apart = NodeDevices(devices=tuple(make_device(name, attributes={"numa": name}) for name in ("a", "b")))
    together = NodeDevices(devices=tuple(make_device(name, attributes={"numa": "0"}) for name in ("a", "b")))
    constraint = DeviceConstraint(attribute=f"{DRIVER}/numa")
    spec = make_spec(make_request("x"), make_request("y"), constraints=(constraint,))
    cluster = make_device_cluster(make_claiming_pod("x"), observed={"m.08": apart, "m.16": together}, spec=spec)
    [node] = solve(cluster).new_nodes
    assert node.instance_types == ("m.16",)


def test_without_the_setting_the_pod_gets_a_message_that_names_it_and_others_the_same_plan() -> None:
    pods = (make_claiming_pod("x"), make_pod("y"))
    off = replace(make_device_cluster(*pods, observed=TWO_GPUS), has_dynamic_resources=False)
    plain = make_cluster_snapshot(make_pod("x", has_resource_claims=True), make_pod("y"))
    assert solve(off) == solve(plain)
    [failure] = solve(off).unschedulable
    assert failure.reason == "ResourceClaimsIgnored"
    assert failure.message == "spec.resourceClaims: Joiner plans claims only with dynamic-resource-allocation: on"


def test_declared_devices_are_used_until_nodes_publish() -> None:
    overlays = tuple(
        NodeOverlay(
            meta=ObjectMeta(name=name),
            requirements=make_requirements((INSTANCE_TYPE, "In", (type_name,))),
            devices=make_devices(count).devices,
            weight=weight,
        )
        for name, type_name, count, weight in (("a", "m.08", 2, 1), ("b", "m.08", 4, 2), ("c", "m.16", 2, 1))
    )
    pods = [make_claiming_pod(f"p{number}", cpu="100m") for number in range(4)]
    declared = make_device_cluster(*pods, node_overlays=overlays)
    placement = solve(declared)
    assert [(node.instance_types, len(node.pods)) for node in placement.new_nodes] == [(("m.08",), 4)]
    assert list_declared_kinds(declared) == [("m.08", "default"), ("m.16", "default")]
    observed = make_device_cluster(*pods, node_overlays=overlays, observed={"m.08": NodeDevices()})
    assert {node.instance_types for node in solve(observed).new_nodes} == {("m.16",)}
    refused = tuple(replace(overlay, refusal_message="no") for overlay in overlays)
    assert solve(replace(declared, node_overlays=refused)).unschedulable[0].reason == "NoDeviceFits"
