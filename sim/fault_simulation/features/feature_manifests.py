"""Manifests of the optional features: gangs, ProvisioningRequests, pods with ResourceClaims, and their NodePools.

Each feature has a NodePool of its own, whose taint keeps other pods away. The NodePool `blocked` is for what must never
get a node: a gang and a ProvisioningRequest that exceed its limit, and a device that no instance type has.
"""

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from shared.model.core.labels import CANARY, IMAGE_MINIMUM_AGE, NODEPOOL
from sim.fault_simulation.features.feature_events import DeviceJob, Gang, Request
from sim.fault_simulation.features.feature_setup import FeatureSetup
from sim.world import manifests
from sim.world.manifests import Json

GANG_POOL: Final = "gang"
REQUEST_POOL: Final = "request"
DEVICE_POOL: Final = "device"
BLOCKED_POOL: Final = "blocked"
FEATURE_TYPES: Final = ("m5.xlarge", "m5.2xlarge")
"""Instance types of the NodePools of features: one and three members of a gang fit."""
LIMIT_CPU_BY_POOL: Final[Mapping[str, int]] = MappingProxyType(
    {GANG_POOL: 64, REQUEST_POOL: 32, DEVICE_POOL: 32, BLOCKED_POOL: 8}
)
MEMBER_CPU: Final = "2500m"
"""CPU of the pods of gangs and ProvisioningRequests."""
MEMBER_CPU_MILLI: Final = 2500
BLOCKED_COUNT: Final = 4
"""Number of pods of `blocked`, which exceed the limit of their NodePool: three of them fit."""
BLOCKED: Final = "blocked"
"""Name of the workload, the gang and the ProvisioningRequest that never get nodes."""
BLOCKED_DEVICE: Final = "blocked-device"
POOL_TAINT: Final = "example.com/pool"
DRIVER: Final = "gpu.example.com"
DEVICE_TYPE: Final = "m5.2xlarge"
"""The only instance type with devices."""
KNOWN_MODEL: Final = "a100"
UNKNOWN_MODEL: Final = "h100"
DEVICES_PER_NODE: Final = 2
DEVICES: Final = tuple(
    {"name": f"gpu-{number}", "attributes": {"model": {"string": KNOWN_MODEL}}} for number in range(DEVICES_PER_NODE)
)
"""The devices of each node of `DEVICE_TYPE`, as in a ResourceSlice."""
REQUESTS: Final = "provisioningrequests.autoscaling.x-k8s.io"
ATOMIC_CLASS: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
GANG_NAME: Final = "joiner.dev/gang"
CONSUMED_REQUEST: Final = "autoscaling.x-k8s.io/consume-provisioning-request"


def build_class_annotations(features: FeatureSetup) -> dict[str, str]:
    """Return the annotations of the EC2NodeClass."""
    annotations = {CANARY: features.canary, IMAGE_MINIMUM_AGE: features.image_minimum_age}
    return {key: text for key, text in annotations.items() if text}


def list_pools(features: FeatureSetup) -> tuple[str, ...]:
    """Return the names of the NodePools of *features*."""
    names = (
        *([GANG_POOL] if features.has_gangs else []),
        *([REQUEST_POOL] if features.has_requests else []),
        *([DEVICE_POOL] if features.has_devices else []),
    )
    return (*names, BLOCKED_POOL) if names else ()


def list_blocked_workloads(features: FeatureSetup) -> tuple[str, ...]:
    """Return the names of the Deployments whose pods never get a node."""
    return (*([BLOCKED] if features.has_gangs else []), *([BLOCKED_DEVICE] if features.has_devices else []))


def build_pool(name: str, template: Json, disruption: Json) -> Json:
    """Return a NodePool of a feature, with the labels and requirements of *template*."""
    spec = template["spec"] | {"taints": [{"key": POOL_TAINT, "value": name, "effect": "NoSchedule"}]}
    limits = {"cpu": str(LIMIT_CPU_BY_POOL[name])}
    return manifests.build_node_pool(name, template | {"spec": spec}, limits=limits, disruption=disruption)


def build_workloads(features: FeatureSetup) -> Iterator[Json]:
    """Yield the objects that exist from the start: what never gets a node, and the kinds that others define."""
    if features.has_gangs:
        yield build_gang(Gang(at=0, name=BLOCKED, size=BLOCKED_COUNT), BLOCKED_POOL)
    if features.has_requests:
        yield _build_request_definition()
        yield from build_request(Request(at=0, name=BLOCKED, pods=BLOCKED_COUNT), BLOCKED_POOL)
    if features.has_devices:
        yield _build_device_class()
        yield from (_build_claim_template(model) for model in (KNOWN_MODEL, UNKNOWN_MODEL))
        yield _build_overlay()
        yield build_device_job(DeviceJob(at=0, name=BLOCKED_DEVICE, pods=1), BLOCKED_POOL, UNKNOWN_MODEL)


def build_gang(gang: Gang, pool: str = GANG_POOL) -> Json:
    """Return the Deployment or the Job of a gang."""
    annotations = {GANG_NAME: gang.name, "joiner.dev/gang-size": str(gang.size)}
    if gang.is_in_one_zone:
        annotations["joiner.dev/gang-topology"] = "zone"
    pod_spec = _build_pod_spec(MEMBER_CPU, pool)
    if gang.seconds:
        annotations["sim.joiner.dev/run-seconds"] = str(gang.seconds)
        return manifests.build_job(gang.name, gang.size, pod_spec, {"app": gang.name}, annotations, backoffLimit=100)
    deployment = manifests.build_workload("Deployment", gang.name, pod_spec, replicas=gang.size)
    deployment["spec"]["template"]["metadata"]["annotations"] = annotations
    return deployment


def build_request(request: Request, pool: str = REQUEST_POOL) -> tuple[Json, Json]:
    """Return the ProvisioningRequest, after its PodTemplate."""
    metadata = {"name": request.name, "namespace": "default"}
    template = {"metadata": {"labels": {"app": request.name}}, "spec": _build_pod_spec(MEMBER_CPU, pool)}
    pod_sets = [{"podTemplateRef": {"name": request.name}, "count": request.pods}]
    return (
        {"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata, "template": template},
        {
            "apiVersion": "autoscaling.x-k8s.io/v1",
            "kind": "ProvisioningRequest",
            "metadata": metadata,
            "spec": {"provisioningClassName": ATOMIC_CLASS, "podSets": pod_sets},
        },
    )


def build_consumer(request: Request, seconds: int) -> Json:
    """Return the Job whose pods use the capacity of *request*."""
    annotations = {CONSUMED_REQUEST: request.name, "sim.joiner.dev/run-seconds": str(seconds)}
    labels = {"app": request.name}
    pod_spec = _build_pod_spec(MEMBER_CPU, REQUEST_POOL)
    return manifests.build_job(request.name, request.pods, pod_spec, labels, annotations, backoffLimit=100)


def build_device_job(job: DeviceJob, pool: str = DEVICE_POOL, model: str = KNOWN_MODEL) -> Json:
    """Return the Deployment whose pods each claim a device of *model*."""
    pod_spec = _build_pod_spec("500m", pool)
    pod_spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": model}]
    return manifests.build_workload("Deployment", job.name, pod_spec, replicas=job.pods)


def _build_pod_spec(cpu: str, pool: str) -> Json:
    return {
        "containers": [manifests.build_container(cpu)],
        "terminationGracePeriodSeconds": 5,
        "nodeSelector": {NODEPOOL: pool},
        "tolerations": [{"key": POOL_TAINT, "operator": "Equal", "value": pool, "effect": "NoSchedule"}],
    }


def _build_request_definition() -> Json:
    """Return the CustomResourceDefinition of ProvisioningRequests, without their schema."""
    names = {"kind": "ProvisioningRequest", "plural": "provisioningrequests", "singular": "provisioningrequest"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": REQUESTS},
        "spec": {"group": "autoscaling.x-k8s.io", "names": names, "scope": "Namespaced", "versions": [version]},
    }


def _build_device_class() -> Json:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [selector]},
    }


def _build_claim_template(model: str) -> Json:
    selector = {"cel": {"expression": f'device.attributes["{DRIVER}"].model == "{model}"'}}
    exactly = {"deviceClassName": "gpu", "count": 1, "selectors": [selector]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": model, "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }


def _build_overlay() -> Json:
    """Return the NodeOverlay that declares the devices of the first node."""
    attributes = {"model": {"string": KNOWN_MODEL}}
    devices = [{"driver": DRIVER, "count": DEVICES_PER_NODE, "name": "gpu", "attributes": attributes}]
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [DEVICE_TYPE]}
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "devices", "annotations": {"joiner.dev/devices": json.dumps(devices)}},
        "spec": {"requirements": [requirement]},
    }
