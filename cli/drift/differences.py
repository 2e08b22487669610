"""Descriptions of drift: for each reason, what a drifted NodeClaim has and what its specification requires."""

from collections.abc import Callable, Mapping
from typing import Final

from shared.decide.disruption.budgets.node_pool_annotations import parse_disruption_annotations
from shared.decide.disruption.drift.drift import DriftInputs, find_unmet_requirement, list_matching_images
from shared.decide.scheduling.templates.node_pool_hash import compute_node_pool_hash
from shared.model.core.labels import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NODECLASS_HASH,
    NODEPOOL_HASH,
    PLACEMENT_GROUP,
    RESERVATION_ID,
    ZONE,
)
from shared.model.core.units import format_instant
from shared.model.karpenter.expiration import compute_expiration_time


def describe_difference(inputs: DriftInputs, reason: str) -> tuple[str, str]:
    """Return the actual and the required state of a NodeClaim that has drifted for *reason*, as text."""
    describe = _DESCRIBERS.get(reason)
    return ("", "") if describe is None else describe(inputs)


def _describe_node_pool(inputs: DriftInputs) -> tuple[str, str]:
    return (
        f"template {inputs.claim.meta.get_annotation(NODEPOOL_HASH)}",
        f"template {compute_node_pool_hash(inputs.pool)}",
    )


def _describe_expiration(inputs: DriftInputs) -> tuple[str, str]:
    expires_at = compute_expiration_time(inputs.claim)
    if expires_at is None:
        return "no expiration", "a new node"
    deadline = expires_at + parse_disruption_annotations(inputs.pool).graceful_expiration
    return (
        f"expired at {format_instant(expires_at)}",
        f"a new node within the budgets, or a forced deletion at {format_instant(deadline)}",
    )


def _describe_requirement(inputs: DriftInputs) -> tuple[str, str]:
    requirement = find_unmet_requirement(inputs)
    if requirement is None:
        return "labels", "requirements"
    actual_label = (
        f"{requirement.key}={inputs.get_label(requirement.key)}"
        if inputs.get_label(requirement.key)
        else f"no label {requirement.key}"
    )
    return actual_label, " ".join(
        (requirement.key, requirement.operator, ", ".join(sorted(requirement.values)))
    ).strip()


def _describe_instance_type(inputs: DriftInputs) -> tuple[str, str]:
    offering = f"{inputs.get_label(INSTANCE_TYPE)}, {inputs.get_label(CAPACITY_TYPE)}, in {inputs.get_label(ZONE)}"
    return offering, "an offering in the catalog"


def _describe_node_class(inputs: DriftInputs) -> tuple[str, str]:
    required_hash = inputs.node_class.spec_hash if inputs.node_class is not None else "none"
    return f"node class {inputs.claim.meta.get_annotation(NODECLASS_HASH)}", f"node class {required_hash}"


def _describe_image(inputs: DriftInputs) -> tuple[str, str]:
    resolved_images = inputs.node_class.resolved_images if inputs.node_class is not None else ()
    image_ids = list_matching_images(inputs) or {image.image_id for image in resolved_images}
    return inputs.claim.image_id, " or ".join(sorted(image_ids))


def _describe_security_groups(inputs: DriftInputs) -> tuple[str, str]:
    groups = inputs.node_class.resolved_security_groups if inputs.node_class is not None else ()
    actual_ids = inputs.instance.security_group_ids if inputs.instance is not None else ("security groups",)
    return ", ".join(sorted(actual_ids)), ", ".join(sorted(group.group_id for group in groups))


def _describe_subnet(inputs: DriftInputs) -> tuple[str, str]:
    subnets = inputs.node_class.resolved_subnets if inputs.node_class is not None else ()
    actual_id = inputs.instance.subnet_id if inputs.instance is not None else "subnet"
    return actual_id, " or ".join(sorted(subnet.subnet_id for subnet in subnets))


def _describe_reservation(inputs: DriftInputs) -> tuple[str, str]:
    reservations = inputs.node_class.resolved_capacity_reservations if inputs.node_class is not None else ()
    return inputs.get_label(RESERVATION_ID), " or ".join(
        sorted(reservation.reservation_id for reservation in reservations)
    ) or "no reservation"


def _describe_placement_group(inputs: DriftInputs) -> tuple[str, str]:
    group = inputs.node_class.resolved_placement_group if inputs.node_class is not None else None
    return inputs.get_label(PLACEMENT_GROUP) or "no placement group", group.group_id if group is not None else "none"


_DESCRIBERS: Final[Mapping[str, Callable[[DriftInputs], tuple[str, str]]]] = {
    "AMIDrift": _describe_image,
    "CapacityReservationDrift": _describe_reservation,
    "RebalanceRecommended": lambda _: (
        "a rebalance recommendation of EC2",
        "a replacement, by joiner.dev/rebalance-policy",
    ),
    "DriftRequested": lambda _: ("not drifted", "a replacement, requested by its annotation"),
    "Expired": _describe_expiration,
    "InstanceTypeNotFound": _describe_instance_type,
    "NodeClassDrift": _describe_node_class,
    "NodePoolDrifted": _describe_node_pool,
    "PlacementGroupDrift": _describe_placement_group,
    "RequirementsDrifted": _describe_requirement,
    "SecurityGroupDrift": _describe_security_groups,
    "SubnetDrift": _describe_subnet,
}
