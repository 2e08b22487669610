"""NodeClaims: wire JSON -> model."""

from collections.abc import Callable
from datetime import timedelta

from shared.model.core.units import parse_duration, parse_nillable_duration
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.wire.decode.core import parse_conditions, parse_object_meta, parse_requirements, parse_taints
from shared.wire.decode.field_errors import DURATION_FIX, add_field_path, parse_resource_list
from shared.wire.schema import karpenter as wire


def parse_node_claim(claim: wire.NodeClaimJson) -> NodeClaim:
    """Parse a NodeClaim; one of another provider has only its metadata, node class and node.

    Raises:
        ValueError: a part of its spec or status cannot be parsed; the message names the field.
    """
    spec, status = claim.spec, claim.status
    if is_foreign_node_class(spec.node_class_ref):
        return NodeClaim(
            meta=parse_object_meta(claim.metadata),
            node_class=parse_node_class_ref(spec.node_class_ref),
            node_name=status.node_name,
            provider_id=status.provider_id,
        )
    return NodeClaim(
        meta=parse_object_meta(claim.metadata),
        node_class=parse_node_class_ref(spec.node_class_ref),
        requirements=parse_requirements("spec.requirements", spec.requirements),
        requests=parse_resource_list("spec.resources.requests", spec.resources.requests),
        taints=parse_taints(spec.taints),
        startup_taints=parse_taints(spec.startup_taints),
        expire_after=parse_duration_or_never("spec.expireAfter", spec.expire_after),
        termination_grace_period=parse_optional_duration("spec.terminationGracePeriod", spec.termination_grace_period),
        node_name=status.node_name,
        provider_id=status.provider_id,
        image_id=status.image_id,
        capacity=parse_resource_list("status.capacity", status.capacity),
        allocatable=parse_resource_list("status.allocatable", status.allocatable),
        conditions=parse_conditions(status.conditions),
        last_pod_event_at=status.last_pod_event_time,
    )


def is_foreign_node_class(ref: wire.NodeClassRefJson) -> bool:
    """Return whether *ref* is complete and refers to a node class of another provider."""
    return bool(ref.group and ref.kind) and not parse_node_class_ref(ref).is_supported()


def parse_node_class_ref(ref: wire.NodeClassRefJson) -> NodeClassRef:
    """Parse a nodeClassRef without validation."""
    return NodeClassRef(name=ref.name, group=ref.group, kind=ref.kind)


def parse_optional_duration(path: str, text: str | None) -> timedelta | None:
    """Parse the duration at *path*; None stays None.

    Raises:
        ValueError: *text* is not a duration, or is negative.
    """
    return None if text is None else _parse_non_negative_duration(path, text, parse_duration)


def parse_duration_or_never(path: str, text: str) -> timedelta | None:
    """Parse the duration at *path*; ``Never`` gives None.

    Raises:
        ValueError: *text* is neither a duration nor ``Never``, or is negative.
    """
    return _parse_non_negative_duration(path, text, parse_nillable_duration)


def _parse_non_negative_duration(path: str, text: str, parse: Callable[[str], timedelta | None]) -> timedelta | None:
    with add_field_path(path, DURATION_FIX):
        parsed_duration = parse(text)
        if parsed_duration is not None and parsed_duration < timedelta():
            raise ValueError(f"below zero: {text!r}")
    return parsed_duration
