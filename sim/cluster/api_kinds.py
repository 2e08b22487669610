"""Which resources the API server serves, and which of its rules apply to each."""

from typing import Any, Final

import msgspec

from sim.cluster.schema import Schema

Object = dict[str, Any]
"""One object as JSON has it. Never changed in place: who writes makes a new one."""

Objects = list[Object]

Key = tuple[str, str]
"""Namespace (empty: cluster-scoped) and name."""


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """One served resource."""

    plural: str
    kind: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    has_status: bool = True
    """There is a /status subresource, and the resource itself ignores `status`."""
    keeps_status: bool = False
    """Creation keeps the `status` it is given (a kubelet registers its node whole)."""
    counts_generations: bool = False
    """A change of the desired state raises `metadata.generation`."""
    schema: Schema | None = None
    """Custom resources only."""

    @property
    def name(self) -> str:
        """Answer ``pods`` or ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """Answer ``v1`` or ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified_kind(self) -> str:
        """Answer ``Pod`` or ``NodePool.karpenter.sh``, as messages name it."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


PODS: Final = "pods"
NODES: Final = "nodes"
NAMESPACES: Final = "namespaces"
EVENTS: Final = "events"
BUDGETS: Final = "poddisruptionbudgets.policy"
DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
PRIORITY_CLASSES: Final = "priorityclasses.scheduling.k8s.io"

_STORAGE: Final = "storage.k8s.io"
_RIGHTS: Final = "rbac.authorization.k8s.io"
_FLOWS: Final = "flowcontrol.apiserver.k8s.io"

BUILT_IN: Final = (
    Resource(plural="pods", kind="Pod", counts_generations=True),
    Resource(plural="nodes", kind="Node", namespaced=False, keeps_status=True),
    Resource(plural="namespaces", kind="Namespace", namespaced=False),
    Resource(plural="events", kind="Event", has_status=False),
    Resource(plural="persistentvolumes", kind="PersistentVolume", namespaced=False),
    Resource(plural="persistentvolumeclaims", kind="PersistentVolumeClaim"),
    Resource(plural="services", kind="Service"),
    Resource(plural="configmaps", kind="ConfigMap", has_status=False),
    Resource(plural="serviceaccounts", kind="ServiceAccount", has_status=False),
    Resource(plural="deployments", kind="Deployment", group="apps", counts_generations=True),
    Resource(plural="replicasets", kind="ReplicaSet", group="apps", counts_generations=True),
    Resource(plural="daemonsets", kind="DaemonSet", group="apps", counts_generations=True),
    Resource(plural="statefulsets", kind="StatefulSet", group="apps", counts_generations=True),
    Resource(plural="jobs", kind="Job", group="batch", counts_generations=True),
    Resource(plural="poddisruptionbudgets", kind="PodDisruptionBudget", group="policy", counts_generations=True),
    Resource(plural="storageclasses", kind="StorageClass", group=_STORAGE, namespaced=False, has_status=False),
    Resource(plural="csinodes", kind="CSINode", group=_STORAGE, namespaced=False, has_status=False),
    Resource(plural="volumeattachments", kind="VolumeAttachment", group=_STORAGE, namespaced=False),
    Resource(plural="leases", kind="Lease", group="coordination.k8s.io", has_status=False),
    Resource(
        plural="priorityclasses", kind="PriorityClass", group="scheduling.k8s.io", namespaced=False, has_status=False
    ),
    Resource(plural="clusterroles", kind="ClusterRole", group=_RIGHTS, namespaced=False, has_status=False),
    Resource(
        plural="clusterrolebindings", kind="ClusterRoleBinding", group=_RIGHTS, namespaced=False, has_status=False
    ),
    Resource(plural="flowschemas", kind="FlowSchema", group=_FLOWS, namespaced=False, counts_generations=True),
    Resource(
        plural="prioritylevelconfigurations",
        kind="PriorityLevelConfiguration",
        group=_FLOWS,
        namespaced=False,
        counts_generations=True,
    ),
    Resource(
        plural="customresourcedefinitions",
        kind="CustomResourceDefinition",
        group="apiextensions.k8s.io",
        namespaced=False,
        counts_generations=True,
    ),
)
