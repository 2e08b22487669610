"""The resource kinds of a snapshot: their list paths, their conversion, and their field in a ClusterSnapshot."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from shared.model.karpenter.node_claim import KARPENTER_API_VERSION, NODE_CLASS_GROUP
from shared.model.kubernetes.workloads import Namespace
from shared.take.kubernetes.page_decoding import PageDecoder
from shared.wire.decode.core import parse_namespace, parse_node
from shared.wire.decode.node_claim import parse_node_claim
from shared.wire.decode.node_class import parse_node_class
from shared.wire.decode.node_pool import parse_node_pool
from shared.wire.decode.pods import parse_daemon_set, parse_pod, parse_pod_disruption_budget
from shared.wire.decode.volumes import (
    parse_csi_node,
    parse_persistent_volume,
    parse_storage_class,
    parse_volume_attachment,
    parse_volume_claim,
)
from shared.wire.schema import core, karpenter, pods, volumes


class ResourceKind(PageDecoder[Any, Any]):
    """One resource kind; *field* is its field in a ClusterSnapshot."""

    is_optional = False
    """Whether the kind may be missing in a cluster."""

    def __init__(
        self,
        field: str,
        api_version: str,
        kind: str,
        wire_type: type,
        convert: Callable[[Any], object],
        selector: str = "",
    ) -> None:
        """Describe *kind* of *api_version* (like ``apps/v1``); *selector* is a field selector."""
        super().__init__(kind, wire_type, convert)
        self.wire_type = wire_type
        self.convert = convert
        self.field = field
        self.api_version = api_version
        self.plural = f"{kind.lower()}{'es' if kind.endswith('s') else 's'}"
        self.path = f"{'/apis' if '/' in api_version else '/api'}/{api_version}/{self.plural}"
        self.selector = selector

    @property
    def crd_name(self) -> str:
        """The name of the CustomResourceDefinition that the kind needs; "" for a built-in kind."""
        group = self.api_version.partition("/")[0]
        return f"{self.plural}.{group}" if group in ("karpenter.sh", "karpenter.k8s.aws") else ""


_ACTIVE_PODS_SELECTOR: Final = "status.phase!=Succeeded,status.phase!=Failed"

RESOURCE_KINDS: Final = (
    ResourceKind("nodes", "v1", "Node", core.NodeJson, parse_node),
    ResourceKind("node_claims", KARPENTER_API_VERSION, "NodeClaim", karpenter.NodeClaimJson, parse_node_claim),
    ResourceKind("pods", "v1", "Pod", pods.PodJson, parse_pod, selector=_ACTIVE_PODS_SELECTOR),
    ResourceKind("node_pools", KARPENTER_API_VERSION, "NodePool", karpenter.NodePoolJson, parse_node_pool),
    ResourceKind("node_classes", f"{NODE_CLASS_GROUP}/v1", "EC2NodeClass", karpenter.NodeClassJson, parse_node_class),
    ResourceKind("daemon_sets", "apps/v1", "DaemonSet", pods.DaemonSetJson, parse_daemon_set),
    ResourceKind(
        "budgets", "policy/v1", "PodDisruptionBudget", pods.PodDisruptionBudgetJson, parse_pod_disruption_budget
    ),
    ResourceKind("namespaces", "v1", "Namespace", core.NamespaceJson, parse_namespace),
    ResourceKind("volumes", "v1", "PersistentVolume", volumes.PersistentVolumeJson, parse_persistent_volume),
    ResourceKind("volume_claims", "v1", "PersistentVolumeClaim", volumes.VolumeClaimJson, parse_volume_claim),
    ResourceKind("storage_classes", "storage.k8s.io/v1", "StorageClass", volumes.StorageClassJson, parse_storage_class),
    ResourceKind("csi_nodes", "storage.k8s.io/v1", "CSINode", volumes.CsiNodeJson, parse_csi_node),
    ResourceKind(
        "volume_attachments",
        "storage.k8s.io/v1",
        "VolumeAttachment",
        volumes.VolumeAttachmentJson,
        parse_volume_attachment,
    ),
)
"""In the order in which they are read: nodes before pods, so that free capacity is underestimated, not
overestimated.
"""

PENDING_PODS: Final = ResourceKind(
    "pods", "v1", "Pod", pods.PodJson, parse_pod, selector=f"spec.nodeName=,{_ACTIVE_PODS_SELECTOR}"
)
"""The pods without a node."""

ALL_LIST_FIELDS: Final = tuple(listing.field for listing in RESOURCE_KINDS)
"""The snapshot fields of all required lists."""


def get_sort_key(value: Any) -> tuple[str, str]:  # noqa: ANN401 - any of a Cluster's values
    """Return the sort key of *value* in its list: namespace, then name."""
    return ("", value.name) if isinstance(value, Namespace) else (value.meta.namespace, value.meta.name)


def sort_objects(values: Iterable[Any]) -> tuple[Any, ...]:
    """Sort *values* in the order of a ClusterSnapshot."""
    return tuple(sorted(values, key=get_sort_key))
