"""Predicted node class status: the node classes after a status patch, without listing them again."""

from collections.abc import Iterable
from typing import Final

import msgspec

from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.action import Action, PatchStatus
from shared.model.karpenter.node_class import EC2NodeClass
from shared.wire.decode.node_class import parse_node_class
from shared.wire.schema import karpenter as wire
from shared.wire.schema.core import ObjectMetaJson

_MODEL_FIELD_BY_STATUS_KEY: Final = {
    "amis": "resolved_images",
    "capacityReservations": "resolved_capacity_reservations",
    "conditions": "conditions",
    "instanceProfile": "resolved_profile",
    "securityGroups": "resolved_security_groups",
    "subnets": "resolved_subnets",
}


def apply_status_patches(cluster: ClusterSnapshot, actions: Iterable[Action]) -> ClusterSnapshot:
    """Return *cluster* with its node classes as the status patches in *actions* left them."""
    status_by_name = {
        action.name: action.status
        for action in actions
        if isinstance(action, PatchStatus) and action.kind == "EC2NodeClass"
    }
    classes = (
        with_status(node_class, status_by_name[node_class.name]) if node_class.name in status_by_name else node_class
        for node_class in cluster.node_classes
    )
    return msgspec.structs.replace(cluster, node_classes=tuple(classes))


def with_status(node_class: EC2NodeClass, status: str) -> EC2NodeClass:
    """Return *node_class* with the JSON *status* merged into it; fields that *status* does not contain stay."""
    patch_fields = msgspec.json.decode(status, type=dict[str, msgspec.Raw])
    patched_class = parse_node_class(
        wire.NodeClassJson(
            metadata=ObjectMetaJson(name=node_class.name),
            status=msgspec.json.decode(status, type=wire.NodeClassStatusJson),
        )
    )
    parts = {
        field: getattr(patched_class, field) for key, field in _MODEL_FIELD_BY_STATUS_KEY.items() if key in patch_fields
    }
    return msgspec.structs.replace(node_class, **parts)
