"""The kinds that a snapshot holds: where they are listed, how they are read, where in a Cluster they stand."""

from collections.abc import Callable
from typing import Any, Final

from shared.model.cluster import Namespace
from shared.snapshot import wire_core, wire_karpenter, wire_pods, wire_volumes
from shared.snapshot.core import namespace_from_wire, node_from_wire
from shared.snapshot.node_claims import node_claim_from_wire
from shared.snapshot.node_classes import node_class_from_wire
from shared.snapshot.node_pools import node_pool_from_wire
from shared.snapshot.pages import Reader
from shared.snapshot.pods import budget_from_wire, daemon_set_from_wire, pod_from_wire
from shared.snapshot.volumes import (
    csi_node_from_wire,
    persistent_volume_from_wire,
    storage_class_from_wire,
    volume_attachment_from_wire,
    volume_claim_from_wire,
)


class Listing(Reader[Any, Any]):
    """One kind; *field* is its place in a Cluster."""

    is_optional = False
    """Whether a cluster may do without the kind."""

    def __init__(
        self, field: str, api: str, kind: str, wire: type, convert: Callable[[Any], object], selector: str = ""
    ) -> None:
        """Know where *kind* of *api* (``apps/v1``) is listed; *selector* is a field selector."""
        super().__init__(kind, wire, convert)
        self.wire = wire
        self.convert = convert
        self.field = field
        self.api = api
        self.plural = f"{kind.lower()}{'es' if kind.endswith('s') else 's'}"
        self.path = f"{'/apis' if '/' in api else '/api'}/{api}/{self.plural}"
        self.selector = selector

    @property
    def definition(self) -> str:
        """The CustomResourceDefinition that it needs, "" for a kind that Kubernetes has itself."""
        group = self.api.partition("/")[0]
        return f"{self.plural}.{group}" if group in ("karpenter.sh", "karpenter.k8s.aws") else ""


_RUNNING: Final = "status.phase!=Succeeded,status.phase!=Failed"

LISTINGS: Final = (
    Listing("nodes", "v1", "Node", wire_core.Node, node_from_wire),
    Listing("node_claims", "karpenter.sh/v1", "NodeClaim", wire_karpenter.NodeClaim, node_claim_from_wire),
    Listing(
        "pods",
        "v1",
        "Pod",
        wire_pods.Pod,
        pod_from_wire,
        selector=_RUNNING,
    ),
    Listing("node_pools", "karpenter.sh/v1", "NodePool", wire_karpenter.NodePool, node_pool_from_wire),
    Listing("node_classes", "karpenter.k8s.aws/v1", "EC2NodeClass", wire_karpenter.NodeClass, node_class_from_wire),
    Listing("daemon_sets", "apps/v1", "DaemonSet", wire_pods.DaemonSet, daemon_set_from_wire),
    Listing("budgets", "policy/v1", "PodDisruptionBudget", wire_pods.Budget, budget_from_wire),
    Listing("namespaces", "v1", "Namespace", wire_core.Namespace, namespace_from_wire),
    Listing("volumes", "v1", "PersistentVolume", wire_volumes.PersistentVolume, persistent_volume_from_wire),
    Listing("volume_claims", "v1", "PersistentVolumeClaim", wire_volumes.VolumeClaim, volume_claim_from_wire),
    Listing("storage_classes", "storage.k8s.io/v1", "StorageClass", wire_volumes.StorageClass, storage_class_from_wire),
    Listing("csi_nodes", "storage.k8s.io/v1", "CSINode", wire_volumes.CsiNode, csi_node_from_wire),
    Listing(
        "volume_attachments",
        "storage.k8s.io/v1",
        "VolumeAttachment",
        wire_volumes.VolumeAttachment,
        volume_attachment_from_wire,
    ),
)
"""In the order in which they are read: machines before pods, so that too little is seen as free, not too much."""

PENDING: Final = Listing("pods", "v1", "Pod", wire_pods.Pod, pod_from_wire, selector=f"spec.nodeName=,{_RUNNING}")
"""The pods without a node."""

KUBERNETES: Final = tuple(listing.field for listing in LISTINGS)
"""All the lists."""


def order(value: Any) -> tuple[str, str]:  # noqa: ANN401 - any of a Cluster's values
    """Answer the place of *value* in its list: by namespace, then name."""
    return ("", value.name) if isinstance(value, Namespace) else (value.meta.namespace, value.meta.name)
