"""Kinds that are read only if a feature needs them. In a cluster without such a kind, its list is empty."""

from typing import Final

from shared.take.kubernetes.resource_kinds import ResourceKind
from shared.wire.decode.dynamic_resources.devices import (
    parse_device_class,
    parse_resource_claim,
    parse_resource_claim_template,
    parse_resource_slice,
)
from shared.wire.decode.node_overlay import parse_node_overlay
from shared.wire.decode.workloads import (
    parse_capacity_buffer,
    parse_deployment,
    parse_pod_group,
    parse_pod_template,
    parse_provisioning_request,
    parse_replica_set,
    parse_replication_controller,
    parse_service,
    parse_stateful_set,
)
from shared.wire.schema import devices
from shared.wire.schema import feature_kinds as wire

_DEVICE_API_VERSION: Final = "resource.k8s.io/v1"


class OptionalResource(ResourceKind):
    """A kind that may be missing in a cluster."""

    is_optional = True


OPTIONAL_KINDS: Final = (
    OptionalResource("node_overlays", "karpenter.sh/v1alpha1", "NodeOverlay", wire.NodeOverlayJson, parse_node_overlay),
    OptionalResource(
        "capacity_buffers",
        "autoscaling.x-k8s.io/v1beta1",
        "CapacityBuffer",
        wire.CapacityBufferJson,
        parse_capacity_buffer,
    ),
    OptionalResource("pod_templates", "v1", "PodTemplate", wire.PodTemplateObjectJson, parse_pod_template),
    OptionalResource("deployments", "apps/v1", "Deployment", wire.WorkloadJson, parse_deployment),
    OptionalResource("replica_sets", "apps/v1", "ReplicaSet", wire.WorkloadJson, parse_replica_set),
    OptionalResource("stateful_sets", "apps/v1", "StatefulSet", wire.WorkloadJson, parse_stateful_set),
    OptionalResource(
        "replication_controllers",
        "v1",
        "ReplicationController",
        wire.ReplicationControllerJson,
        parse_replication_controller,
    ),
    OptionalResource("services", "v1", "Service", wire.ServiceJson, parse_service),
    OptionalResource(
        "resource_slices", _DEVICE_API_VERSION, "ResourceSlice", devices.ResourceSliceJson, parse_resource_slice
    ),
    OptionalResource(
        "resource_claims", _DEVICE_API_VERSION, "ResourceClaim", devices.ResourceClaimJson, parse_resource_claim
    ),
    OptionalResource(
        "resource_claim_templates",
        _DEVICE_API_VERSION,
        "ResourceClaimTemplate",
        devices.ResourceClaimTemplateJson,
        parse_resource_claim_template,
    ),
    OptionalResource("device_classes", _DEVICE_API_VERSION, "DeviceClass", devices.DeviceClassJson, parse_device_class),
    OptionalResource(
        "provisioning_requests",
        "autoscaling.x-k8s.io/v1",
        "ProvisioningRequest",
        wire.ProvisioningRequestJson,
        parse_provisioning_request,
    ),
    OptionalResource("pod_groups", "scheduling.x-k8s.io/v1alpha1", "PodGroup", wire.PodGroupJson, parse_pod_group),
)

OVERLAY_LISTS: Final = ("node_overlays",)
BUFFER_LISTS: Final = ("capacity_buffers",)
BUFFER_TARGET_LISTS: Final = ("pod_templates", "deployments", "replica_sets", "stateful_sets")
"""The kinds that a CapacityBuffer can refer to."""
SPREAD_SELECTOR_LISTS: Final = ("services", "replication_controllers", "replica_sets", "stateful_sets")
"""The kinds with the selectors that default spread constraints are derived from."""
SURGE_DRAIN_LISTS: Final = ("deployments",)
"""The kind whose rollouts start new pods before old ones are evicted."""
DEVICE_LISTS: Final = ("resource_slices", "resource_claims", "resource_claim_templates", "device_classes")
"""The kinds of dynamic resource allocation."""
SCALED_LISTS: Final = ("deployments", "stateful_sets")
"""The kinds that schedules can scale."""
POD_GROUP_LISTS: Final = ("pod_groups",)
"""The kind that has the size of gangs of scheduler-plugins."""
PROVISIONING_REQUEST_LISTS: Final = ("provisioning_requests",)
REQUEST_TEMPLATE_LISTS: Final = ("pod_templates",)
"""The kind that a ProvisioningRequest refers to."""
