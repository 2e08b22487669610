"""Devices, claims and clusters for tests of dynamic resource allocation, with few parameters."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.devices import (
    Allocation,
    ClaimSpec,
    Device,
    DeviceClass,
    DeviceRequest,
    NodeDevices,
    ObservedDevices,
    PodClaim,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from shared.model.core.metadata import ObjectMeta
from shared.model.kubernetes.pod import Pod
from tests.support.catalogues import NOW, make_cluster_snapshot, make_pod

DRIVER = "gpu.example.com"
CLASS = "gpu"
CLASS_SELECTOR = f'device.driver == "{DRIVER}"'


def make_device(name: str, *, pool: str = "n", driver: str = DRIVER, **fields: Any) -> Device:
    """Return a device; *attributes* are strings by name without domain, *capacity* quantities."""
    attributes = {f"{driver}/{key}": value for key, value in fields.pop("attributes", {}).items()}
    capacity = {f"{driver}/{key}": value for key, value in fields.pop("capacity", {}).items()}
    return Device(
        driver=driver,
        pool=pool,
        name=name,
        attributes=tuple(sorted((key, "string", value) for key, value in attributes.items())),
        capacity=tuple(sorted(capacity.items())),
        **fields,
    )


def make_devices(count: int, *, pool: str = "n", **fields: Any) -> NodeDevices:
    """Return *count* equal devices."""
    return NodeDevices(devices=tuple(make_device(f"gpu-{number}", pool=pool, **fields) for number in range(count)))


def make_request(name: str = "gpu", *selectors: str, **fields: Any) -> DeviceRequest:
    """Return a request for a device of the class `gpu`, with the selectors of the class."""
    return DeviceRequest(name=name, device_class=CLASS, selectors=selectors, **fields)


def make_spec(*requests: DeviceRequest | tuple[DeviceRequest, ...], **fields: Any) -> ClaimSpec:
    """Return a claim with *requests*; a tuple is a prioritized list."""
    alternatives = tuple(request if isinstance(request, tuple) else (request,) for request in requests)
    return ClaimSpec(requests=alternatives, **fields)


def make_slice(node: str, devices: Iterable[Device], **fields: Any) -> ResourceSlice:
    """Return the only ResourceSlice of *node*."""
    values: dict[str, Any] = {
        "meta": ObjectMeta(name=f"{node}-slice"),
        "driver": DRIVER,
        "pool": node,
        "generation": 1,
        "slice_count": 1,
        "node_name": node,
        "devices": tuple(replace(device, pool=node) for device in devices),
    }
    return ResourceSlice(**(values | fields))


def make_claim(name: str, spec: ClaimSpec | None = None, **fields: Any) -> ResourceClaim:
    """Return a ResourceClaim of namespace `shop`; *on* and *devices* allocate it."""
    node, devices = fields.pop("on", ""), fields.pop("devices", ())
    allocation = None
    if node:
        ids = tuple((DRIVER, node, device) for device in devices)
        allocation = Allocation(devices=ids, node_names=(node,))
    return ResourceClaim(
        meta=ObjectMeta(name=name, namespace="shop"),
        spec=spec if spec is not None else make_spec(make_request()),
        allocation=allocation,
        **fields,
    )


def make_template(name: str, spec: ClaimSpec) -> ResourceClaimTemplate:
    """Return a ResourceClaimTemplate of namespace `shop`."""
    return ResourceClaimTemplate(meta=ObjectMeta(name=name, namespace="shop"), spec=spec)


def make_claiming_pod(name: str, *, claim: str = "", template: str = "", **fields: Any) -> Pod:
    """Return a pod with one claim: by default of the template `gpu`."""
    pod_claim = PodClaim(name="gpu", claim=claim, template=template or ("" if claim else "gpu"))
    claim_names = fields.pop("claim_names", ())
    pod = make_pod(name, has_resource_claims=True, resource_claims=(pod_claim,), **fields)
    return replace(pod, claim_names=claim_names)


def observe(instance_type: str, node_devices: NodeDevices, pool: str = "default") -> ObservedDevices:
    """Return what nodes of *instance_type* published an hour ago."""
    return ObservedDevices(
        instance_type=instance_type, node_pool=pool, devices=node_devices.devices, at=NOW - timedelta(hours=1)
    )


def make_device_cluster(
    *pods: Pod,
    observed: Mapping[str, NodeDevices] | None = None,
    spec: ClaimSpec | None = None,
    **fields: Any,
) -> ClusterSnapshot:
    """Return a cluster with the setting on, the class and the template `gpu`; *observed*: devices by instance type."""
    cluster = make_cluster_snapshot(*pods, **fields)
    observations = tuple(observe(name, devices) for name, devices in sorted((observed or {}).items()))
    assert cluster.catalog is not None
    return replace(
        cluster,
        has_dynamic_resources=True,
        catalog=replace(cluster.catalog, observed_devices=observations),
        device_classes=(DeviceClass(meta=ObjectMeta(name=CLASS), selectors=(CLASS_SELECTOR,)),),
        resource_claim_templates=(make_template("gpu", spec if spec is not None else make_spec(make_request())),),
    )
