"""NodeClaims: wire -> model."""

from collections.abc import Callable
from datetime import timedelta

from shared.model.nodes import NodeClaim, NodeClassRef
from shared.model.units import parse_duration, parse_nillable_duration
from shared.snapshot import wire_karpenter as wire
from shared.snapshot.core import conditions_from_wire, meta_from_wire, requirements_from_wire, taints_from_wire
from shared.snapshot.fields import DURATION, amounts, at


def node_claim_from_wire(claim: wire.NodeClaim) -> NodeClaim:
    """Read a NodeClaim.

    Raises:
        ValueError: a part of its spec or status cannot be read; the message names the field.
    """
    spec, status = claim.spec, claim.status
    return NodeClaim(
        meta=meta_from_wire(claim.metadata),
        node_class=class_ref_from_wire(spec.node_class_ref),
        requirements=requirements_from_wire("spec.requirements", spec.requirements),
        requests=amounts("spec.resources.requests", spec.resources.requests),
        taints=taints_from_wire(spec.taints),
        startup_taints=taints_from_wire(spec.startup_taints),
        expire_after=nillable_duration("spec.expireAfter", spec.expire_after),
        termination_grace_period=duration("spec.terminationGracePeriod", spec.termination_grace_period),
        node_name=status.node_name,
        provider_id=status.provider_id,
        image_id=status.image_id,
        capacity=amounts("status.capacity", status.capacity),
        allocatable=amounts("status.allocatable", status.allocatable),
        conditions=conditions_from_wire(status.conditions),
        last_pod_event_at=status.last_pod_event_time,
    )


def class_ref_from_wire(ref: wire.ClassRef) -> NodeClassRef:
    """Read a nodeClassRef as it is written."""
    return NodeClassRef(name=ref.name, group=ref.group, kind=ref.kind)


def duration(path: str, text: str | None) -> timedelta | None:
    """Read the duration at *path*; None stays None.

    Raises:
        ValueError: *text* is not a duration, or below zero.
    """
    return None if text is None else _positive(path, text, parse_duration)


def nillable_duration(path: str, text: str) -> timedelta | None:
    """Read the duration at *path*; None for ``Never``.

    Raises:
        ValueError: *text* is neither, or below zero.
    """
    return _positive(path, text, parse_nillable_duration)


def _positive(path: str, text: str, parse: Callable[[str], timedelta | None]) -> timedelta | None:
    with at(path, DURATION):
        found = parse(text)
        if found is not None and found < timedelta():
            raise ValueError(f"below zero: {text!r}")
    return found
