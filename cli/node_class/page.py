"""A resolved node class rendered for people, and as a document."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from cli.node_class.resolution import ResolvedNodeClass
from cli.terminal.text import align_columns
from shared.decide.launch.ami_families.user_data import build_user_data
from shared.decide.node_class.status import find_unmatched_terms, resolve_node_class_status
from shared.decide.node_class.validation import build_sample_bootstrap, lint_node_class
from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.core.formatting import format_count, join_names
from shared.model.core.labels import ON_DEMAND, SPOT
from shared.model.core.resources import CPU, MEMORY, PODS, STORAGE, format_quantities
from shared.model.core.units import BYTES_PER_GIB

MAX_INSTANCE_TYPES: Final = 15


def list_blocking_conditions(resolved_class: ResolvedNodeClass, at: datetime) -> Iterator[str]:
    """Yield the reasons why the class would not be Ready."""
    for condition in build_status(resolved_class, at)["conditions"]:
        if (
            condition["status"] != "True"
            and condition["type"] != "Ready"
            and condition["reason"] != "DependenciesNotReady"
        ):
            message = condition["message"] or condition["reason"]
            subject = f"EC2NodeClass {resolved_class.node_class.name}"
            yield f"{subject}: {condition['type']}: {condition['reason']}: {message}"


def list_warnings(resolved_class: ResolvedNodeClass) -> Iterator[str]:
    """Yield likely mistakes: settings that are allowed, but probably not intended."""
    subject = f"EC2NodeClass {resolved_class.node_class.name}"
    blocking_messages = {finding.message for finding in resolved_class.answers.findings}
    for line in (
        *find_unmatched_terms(resolved_class.node_class, resolved_class.answers),
        *lint_node_class(resolved_class.node_class),
    ):
        yield f"{subject}: {line}"
    for refusal in resolved_class.refusals:
        if not any(refusal.code in message for message in blocking_messages):
            yield f"{subject}: ec2:{refusal.action}: {refusal.code}: {refusal.message}"
    if resolved_class.crowded_types:
        types_text = format_count(len(resolved_class.crowded_types), "type")
        types = f"{types_text} have addresses for ({join_names(resolved_class.crowded_types, 3)})"
        crowding_text = f"more than {types}: turn prefix delegation on, or lower it"
        yield f"{subject}: spec.kubelet.maxPods: {crowding_text}"
    if not resolved_class.instance_types and resolved_class.answers.subnets and resolved_class.answers.images:
        yield f"{subject}: no instance type of these zones fits the images"


def build_status(resolved_class: ResolvedNodeClass, at: datetime) -> dict[str, Any]:
    """Return the status that the class would have."""
    node_class = replace(resolved_class.node_class, conditions=())
    status_document: dict[str, Any] = json.loads(
        resolve_node_class_status(
            node_class, resolved_class.answers, resolved_class.node_class.resolved_profile, at
        ).status
    )
    return status_document


def build_sample_user_data(resolved_class: ResolvedNodeClass) -> str:
    """Return the user data for the cheapest instance type; "" if it cannot be built."""
    if resolved_class.cluster_facts is None:
        return ""
    cheapest = min(resolved_class.instance_types, key=_build_type_sort_key, default=None)
    bootstrap = build_sample_bootstrap(resolved_class.cluster_facts)
    if cheapest is not None:
        bootstrap = replace(bootstrap, max_pods=cheapest.capacity[PODS])
    try:
        return build_user_data(resolved_class.node_class, bootstrap)
    except ValueError:
        return ""


def build_node_class_document(
    resolved_class: ResolvedNodeClass, at: datetime, *, with_user_data: bool
) -> dict[str, Any]:
    """Return the class as a document: its status, with free addresses, instance types and prices.

    *with_user_data* adds the user data.
    """
    status_fields = build_status(resolved_class, at)
    free_ip_count_by_subnet = {
        subnet.subnet_id: subnet.available_ip_count for subnet in resolved_class.answers.subnets or ()
    }
    class_document: dict[str, Any] = {
        "name": resolved_class.node_class.name,
        "amiFamily": resolved_class.node_class.ami_family,
        "hash": resolved_class.node_class.spec_hash,
        **status_fields,
        "subnets": [
            {**subnet, "freeIPs": free_ip_count_by_subnet[subnet["id"]]} for subnet in status_fields.get("subnets", ())
        ],
        "instanceTypes": [
            _build_type_document(kind, resolved_class)
            for kind in sorted(resolved_class.instance_types, key=_build_type_sort_key)
        ],
    }
    group = resolved_class.node_class.resolved_placement_group
    if group is not None:
        class_document["placementGroup"] = {"id": group.group_id, "name": group.name, "strategy": group.strategy}
    return class_document | ({"userData": build_sample_user_data(resolved_class)} if with_user_data else {})


def render_node_class(resolved_class: ResolvedNodeClass, at: datetime, *, is_whole: bool, with_user_data: bool) -> str:
    """Return the class as text for the terminal."""
    parts = [
        _render_heading(resolved_class, at),
        _render_subnets(resolved_class),
        _render_security_groups(resolved_class),
        _render_images(resolved_class),
        _render_reservations(resolved_class),
        _render_instance_types(resolved_class, is_whole=is_whole),
    ]
    text = "\n\n".join("\n".join(lines) for lines in parts if lines)
    return f"{text}\n\nuser data:\n{build_sample_user_data(resolved_class)}\n" if with_user_data else f"{text}\n"


def _render_heading(resolved_class: ResolvedNodeClass, at: datetime) -> list[str]:
    ready = next(
        status_condition
        for status_condition in build_status(resolved_class, at)["conditions"]
        if status_condition["type"] == "Ready"
    )
    node_class = resolved_class.node_class
    word = "would be Ready" if ready["status"] == "True" else f"would not be Ready: {ready['message']}"
    lines = [
        f"EC2NodeClass {node_class.name} ({node_class.ami_family}) {word}",
        f"instance profile: {node_class.resolved_profile or '-'}",
    ]
    group = node_class.resolved_placement_group
    return [*lines, f"placement group: {group.group_id} {group.name} ({group.strategy})"] if group else lines


def _render_subnets(resolved_class: ResolvedNodeClass) -> list[str]:
    rows = [
        (subnet.subnet_id, subnet.zone, subnet.zone_id, f"{subnet.available_ip_count:,}")
        for subnet in resolved_class.answers.subnets or ()
    ]
    return align_columns([("SUBNET", "ZONE", "ZONE ID", "FREE IPS"), *rows], left_columns=3) if rows else ["no subnet"]


def _render_security_groups(resolved_class: ResolvedNodeClass) -> list[str]:
    rows = [
        (security_group.group_id, security_group.name)
        for security_group in resolved_class.answers.security_groups or ()
    ]
    return align_columns([("SECURITY GROUP", "NAME"), *rows], left_columns=2) if rows else ["no security group"]


def _render_images(resolved_class: ResolvedNodeClass) -> list[str]:
    rows = [
        (
            image.image_id,
            "deprecated" if image.deprecated else "",
            _describe_requirements(image.requirements),
            image.name,
        )
        for image in resolved_class.node_class.resolved_images
    ]
    return align_columns([("IMAGE", "", "FOR", "NAME"), *rows], left_columns=4) if rows else ["no image"]


def _describe_requirements(requirements: Any) -> str:  # noqa: ANN401 - the model's own
    words = []
    for requirement in requirements:
        key = requirement.key.rpartition("/")[2].removeprefix("instance-")
        if requirement.complement:
            words.append(f"some {key}")
        else:
            words.append(",".join(sorted(requirement.values)) or f"no {key}")
    return ", ".join(words)


def _render_reservations(resolved_class: ResolvedNodeClass) -> list[str]:
    rows = [
        (
            reservation.reservation_id,
            reservation.instance_type,
            reservation.zone,
            f"{reservation.available_count} of {reservation.total_count}",
        )
        for reservation in resolved_class.answers.capacity_reservations or ()
    ]
    return align_columns([("RESERVATION", "TYPE", "ZONE", "FREE"), *rows], left_columns=3) if rows else []


def _render_instance_types(resolved_class: ResolvedNodeClass, *, is_whole: bool) -> list[str]:
    sorted_types = sorted(
        (kind for kind in resolved_class.instance_types if kind.allocatable[MEMORY] > 0), key=_build_type_sort_key
    )
    visible_types = sorted_types if is_whole else sorted_types[:MAX_INSTANCE_TYPES]
    if not visible_types:
        return ["no instance type"]
    head = ("TYPE", "IMAGE", "CPU", "MEMORY", "STORAGE", "PODS", "$/H", "SPOT $/H")
    lines = align_columns([head, *(_build_type_row(kind, resolved_class) for kind in visible_types)], left_columns=2)
    hidden_count = len(sorted_types) - len(visible_types)
    return [*lines, f"… and {format_count(hidden_count, 'more type')} (--all shows them)"] if hidden_count else lines


def _build_type_row(instance_type: InstanceType, resolved_class: ResolvedNodeClass) -> tuple[str, ...]:
    allocatable = instance_type.allocatable
    return (
        instance_type.name,
        _find_image_id(instance_type, resolved_class),
        f"{allocatable[CPU] / 1000:g}",
        f"{allocatable[MEMORY] / BYTES_PER_GIB:.2f}Gi",
        f"{allocatable[STORAGE] / BYTES_PER_GIB:.1f}Gi",
        str(allocatable[PODS]),
        _format_price(_find_lowest_price(instance_type, ON_DEMAND)),
        _format_price(_find_lowest_price(instance_type, SPOT)),
    )


def _build_type_document(instance_type: InstanceType, resolved_class: ResolvedNodeClass) -> dict[str, Any]:
    return {
        "name": instance_type.name,
        "ami": _find_image_id(instance_type, resolved_class),
        "capacity": format_quantities(instance_type.capacity),
        "allocatable": format_quantities(instance_type.allocatable),
        "offerings": [
            {
                "zone": offering.zone,
                "capacityType": offering.capacity_type,
                "price": offering.price_usd_per_hour,
                "available": offering.available,
            }
            for offering in instance_type.offerings
        ],
    }


def _find_image_id(instance_type: InstanceType, resolved_class: ResolvedNodeClass) -> str:
    images = resolved_class.node_class.resolved_images
    return next(
        (image.image_id for image in images if not instance_type.requirements.find_conflict(image.requirements)), ""
    )


def _build_type_sort_key(instance_type: InstanceType) -> tuple[float, str]:
    return min((offering.price_usd_per_hour for offering in instance_type.offerings), default=0.0), instance_type.name


def _find_lowest_price(instance_type: InstanceType, capacity_type: str) -> float | None:
    return min(
        (
            offering.price_usd_per_hour
            for offering in instance_type.offerings
            if offering.capacity_type == capacity_type
        ),
        default=None,
    )


def _format_price(price: float | None) -> str:
    return "-" if price is None else f"{price:.4f}"
