"""What a node class is after its status was written, without listing it again."""

from collections.abc import Iterable
from typing import Final

import msgspec

from shared.model.action import Action, PatchStatus
from shared.model.cluster import Cluster
from shared.model.nodeclasses import EC2NodeClass
from shared.snapshot import wire_karpenter as wire
from shared.snapshot.node_classes import node_class_from_wire
from shared.snapshot.wire_core import Meta

_FIELDS: Final = {
    "amis": "resolved_images",
    "capacityReservations": "resolved_capacity_reservations",
    "conditions": "conditions",
    "instanceProfile": "resolved_profile",
    "securityGroups": "resolved_security_groups",
    "subnets": "resolved_subnets",
}


def foreseen(cluster: Cluster, done: Iterable[Action]) -> Cluster:
    """Answer *cluster* with its node classes as the status patches among *done* left them."""
    written = {one.name: one.status for one in done if isinstance(one, PatchStatus) and one.kind == "EC2NodeClass"}
    classes = (with_status(one, written[one.name]) if one.name in written else one for one in cluster.node_classes)
    return msgspec.structs.replace(cluster, node_classes=tuple(classes))


def with_status(node_class: EC2NodeClass, status: str) -> EC2NodeClass:
    """Answer *node_class* once *status*, JSON, is merged into it: what it does not speak of stays."""
    said = msgspec.json.decode(status, type=dict[str, msgspec.Raw])
    read = node_class_from_wire(
        wire.NodeClass(
            metadata=Meta(name=node_class.name), status=msgspec.json.decode(status, type=wire.NodeClassStatus)
        )
    )
    parts = {field: getattr(read, field) for key, field in _FIELDS.items() if key in said}
    return msgspec.structs.replace(node_class, **parts)
