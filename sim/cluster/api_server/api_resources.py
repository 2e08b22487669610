"""The resources that the API server serves, and which of its rules apply to each."""

from typing import Final

import msgspec

from shared.crds.definitions import Object
from shared.crds.schema import Schema

Objects = list[Object]

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""


class ApiResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that the API server serves."""

    plural: str
    kind: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    has_status: bool = True
    """There is a /status subresource, and writes to the resource itself ignore `status`."""
    keeps_status: bool = False
    """Creation keeps the `status` of the request (a kubelet registers its node with its status)."""
    counts_generations: bool = False
    """A change of the desired state increments `metadata.generation`."""
    schema: Schema | None = None
    """The schema of a custom resource; None for built-in kinds."""

    @property
    def name(self) -> str:
        """The resource name, such as ``pods`` or ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """The API version, such as ``v1`` or ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified_kind(self) -> str:
        """The kind as in error messages, such as ``Pod`` or ``NodePool.karpenter.sh``."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


PODS: Final = "pods"
NODES: Final = "nodes"
NAMESPACES: Final = "namespaces"
EVENTS: Final = "events"
POD_DISRUPTION_BUDGETS: Final = "poddisruptionbudgets.policy"
CUSTOM_RESOURCE_DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
RESOURCE_CLAIMS: Final = "resourceclaims.resource.k8s.io"
RESOURCE_CLAIM_TEMPLATES: Final = "resourceclaimtemplates.resource.k8s.io"
RESOURCE_SLICES: Final = "resourceslices.resource.k8s.io"
DEVICE_CLASSES: Final = "deviceclasses.resource.k8s.io"
PRIORITY_CLASSES: Final = "priorityclasses.scheduling.k8s.io"

_STORAGE_GROUP: Final = "storage.k8s.io"
_DEVICE_GROUP: Final = "resource.k8s.io"
_RBAC_GROUP: Final = "rbac.authorization.k8s.io"
_FLOW_CONTROL_GROUP: Final = "flowcontrol.apiserver.k8s.io"

BUILT_IN_RESOURCES: Final = (
    ApiResource(plural="pods", kind="Pod", counts_generations=True),
    ApiResource(plural="nodes", kind="Node", namespaced=False, keeps_status=True),
    ApiResource(plural="namespaces", kind="Namespace", namespaced=False),
    ApiResource(plural="events", kind="Event", has_status=False),
    ApiResource(plural="persistentvolumes", kind="PersistentVolume", namespaced=False),
    ApiResource(plural="persistentvolumeclaims", kind="PersistentVolumeClaim"),
    ApiResource(plural="podtemplates", kind="PodTemplate", has_status=False),
    ApiResource(plural="replicationcontrollers", kind="ReplicationController", counts_generations=True),
    ApiResource(plural="services", kind="Service"),
    ApiResource(plural="configmaps", kind="ConfigMap", has_status=False),
    ApiResource(plural="serviceaccounts", kind="ServiceAccount", has_status=False),
    ApiResource(plural="deployments", kind="Deployment", group="apps", counts_generations=True),
    ApiResource(plural="replicasets", kind="ReplicaSet", group="apps", counts_generations=True),
    ApiResource(plural="daemonsets", kind="DaemonSet", group="apps", counts_generations=True),
    ApiResource(plural="statefulsets", kind="StatefulSet", group="apps", counts_generations=True),
    ApiResource(plural="jobs", kind="Job", group="batch", counts_generations=True),
    ApiResource(plural="poddisruptionbudgets", kind="PodDisruptionBudget", group="policy", counts_generations=True),
    ApiResource(plural="storageclasses", kind="StorageClass", group=_STORAGE_GROUP, namespaced=False, has_status=False),
    ApiResource(plural="csinodes", kind="CSINode", group=_STORAGE_GROUP, namespaced=False, has_status=False),
    ApiResource(plural="volumeattachments", kind="VolumeAttachment", group=_STORAGE_GROUP, namespaced=False),
    ApiResource(plural="deviceclasses", kind="DeviceClass", group=_DEVICE_GROUP, namespaced=False, has_status=False),
    ApiResource(plural="resourceclaims", kind="ResourceClaim", group=_DEVICE_GROUP),
    ApiResource(plural="resourceclaimtemplates", kind="ResourceClaimTemplate", group=_DEVICE_GROUP, has_status=False),
    ApiResource(plural="resourceslices", kind="ResourceSlice", group=_DEVICE_GROUP, namespaced=False, has_status=False),
    ApiResource(plural="leases", kind="Lease", group="coordination.k8s.io", has_status=False),
    ApiResource(
        plural="priorityclasses", kind="PriorityClass", group="scheduling.k8s.io", namespaced=False, has_status=False
    ),
    ApiResource(plural="clusterroles", kind="ClusterRole", group=_RBAC_GROUP, namespaced=False, has_status=False),
    ApiResource(
        plural="clusterrolebindings", kind="ClusterRoleBinding", group=_RBAC_GROUP, namespaced=False, has_status=False
    ),
    ApiResource(
        plural="flowschemas", kind="FlowSchema", group=_FLOW_CONTROL_GROUP, namespaced=False, counts_generations=True
    ),
    ApiResource(
        plural="prioritylevelconfigurations",
        kind="PriorityLevelConfiguration",
        group=_FLOW_CONTROL_GROUP,
        namespaced=False,
        counts_generations=True,
    ),
    ApiResource(
        plural="customresourcedefinitions",
        kind="CustomResourceDefinition",
        group="apiextensions.k8s.io",
        namespaced=False,
        counts_generations=True,
    ),
)
