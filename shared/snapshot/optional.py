"""Kinds that are read only where a feature wants them. A cluster that does not have them has none of these objects."""

from typing import Final

from shared.snapshot import wire_optional as wire
from shared.snapshot.kinds import Listing
from shared.snapshot.overlays import node_overlay_from_wire
from shared.snapshot.workloads import (
    buffer_from_wire,
    controller_from_wire,
    deployment_from_wire,
    pod_template_from_wire,
    replica_set_from_wire,
    service_from_wire,
    stateful_set_from_wire,
)


class Optional(Listing):
    """A kind that a cluster may do without."""

    is_optional = True


OPTIONAL: Final = (
    Optional("node_overlays", "karpenter.sh/v1alpha1", "NodeOverlay", wire.NodeOverlay, node_overlay_from_wire),
    Optional(
        "capacity_buffers", "autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", wire.CapacityBuffer, buffer_from_wire
    ),
    Optional("pod_templates", "v1", "PodTemplate", wire.PodTemplate, pod_template_from_wire),
    Optional("deployments", "apps/v1", "Deployment", wire.Workload, deployment_from_wire),
    Optional("replica_sets", "apps/v1", "ReplicaSet", wire.Workload, replica_set_from_wire),
    Optional("stateful_sets", "apps/v1", "StatefulSet", wire.Workload, stateful_set_from_wire),
    Optional(
        "replication_controllers",
        "v1",
        "ReplicationController",
        wire.ReplicationController,
        controller_from_wire,
    ),
    Optional("services", "v1", "Service", wire.Service, service_from_wire),
)

OVERLAYS: Final = ("node_overlays",)
BUFFERS: Final = ("capacity_buffers",)
SIZED: Final = ("pod_templates", "deployments", "replica_sets", "stateful_sets")
"""What a buffer may be room for."""
SELECTING: Final = ("services", "replication_controllers", "replica_sets", "stateful_sets")
"""From whose selectors default spread is deduced."""
