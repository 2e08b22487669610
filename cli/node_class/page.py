"""The output of `joiner nodeclass resolve`: text, or JSON and YAML."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from cli.node_class.resolution import ResolvedNodeClass
from cli.terminal.table import TableLayout, render_table
from cli.terminal.text import Palette
from shared.decide.launch.ami_families.user_data import build_user_data
from shared.decide.node_class.status import find_unmatched_terms, resolve_node_class_status
from shared.decide.node_class.validation import build_sample_bootstrap, lint_node_class
from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.core.formatting import format_count, join_names
from shared.model.core.labels import ON_DEMAND, SPOT
from shared.model.core.requirements import Requirements
from shared.model.core.resources import CPU, MEMORY, PODS, STORAGE, format_quantities
from shared.model.core.units import BYTES_PER_GIB

MAX_INSTANCE_TYPES: Final = 15


def list_blocking_conditions(resolved_class: ResolvedNodeClass, at: datetime) -> Iterator[str]:
    """Yield the reasons why the class would not be Ready."""
    for condition in build_status(resolved_class, at)["conditions"]:
        kind, reason = condition["type"], condition["reason"]
        if condition["status"] != "True" and kind != "Ready" and reason != "DependenciesNotReady":
            name = resolved_class.node_class.name
            yield f"EC2NodeClass {name}: {kind}: {reason}: {condition['message'] or reason}"


def list_warnings(resolved_class: ResolvedNodeClass) -> Iterator[str]:
    """Yield likely mistakes: settings that are allowed, but probably not intended."""
    node_class, answers = resolved_class.node_class, resolved_class.answers
    warnings = [*find_unmatched_terms(node_class, answers), *lint_node_class(node_class)]
    blocking_messages = {finding.message for finding in answers.findings}
    warnings += [
        f"ec2:{refusal.action}: {refusal.code}: {refusal.message}"
        for refusal in resolved_class.refusals
        if not any(refusal.code in message for message in blocking_messages)
    ]
    if resolved_class.crowded_types:
        types_text = format_count(len(resolved_class.crowded_types), "instance type")
        names = join_names(resolved_class.crowded_types, 3)
        warnings.append(
            f"spec.kubelet.maxPods: exceeds the IP addresses of {types_text} ({names}): enable prefix delegation, or "
            "lower maxPods"
        )
    if not resolved_class.instance_types and answers.subnets and answers.images:
        warnings.append("no instance type in the zones of its subnets matches its AMIs")
    yield from (f"EC2NodeClass {node_class.name}: {warning}" for warning in warnings)


def build_status(resolved_class: ResolvedNodeClass, at: datetime) -> dict[str, Any]:
    """Return the status that the class would have."""
    node_class = replace(resolved_class.node_class, conditions=())
    status = resolve_node_class_status(node_class, resolved_class.answers, node_class.resolved_profile, at).status
    status_document: dict[str, Any] = json.loads(status)
    return status_document


def build_sample_user_data(resolved_class: ResolvedNodeClass) -> str:
    """Return the user data for the cheapest instance type; "" if it cannot be built."""
    if resolved_class.cluster_facts is None:
        return ""
    bootstrap = build_sample_bootstrap(resolved_class.cluster_facts)
    if resolved_class.instance_types:
        cheapest_type = min(resolved_class.instance_types, key=_build_type_sort_key)
        bootstrap = replace(bootstrap, max_pods=cheapest_type.capacity[PODS])
    try:
        return build_user_data(resolved_class.node_class, bootstrap)
    except ValueError:
        return ""


def build_node_class_document(
    resolved_class: ResolvedNodeClass, at: datetime, *, with_user_data: bool
) -> dict[str, Any]:
    """Return the JSON and YAML output: the status, with free addresses, instance types and prices.

    *with_user_data* adds the user data.
    """
    node_class, status = resolved_class.node_class, build_status(resolved_class, at)
    free_ips = {subnet.subnet_id: subnet.available_ip_count for subnet in resolved_class.answers.subnets or ()}
    document: dict[str, Any] = {
        "name": node_class.name,
        "amiFamily": node_class.ami_family,
        "hash": node_class.spec_hash,
        **status,
        "subnets": [{**subnet, "freeIPs": free_ips[subnet["id"]]} for subnet in status.get("subnets", ())],
        "instanceTypes": [
            _build_type_document(instance_type, resolved_class)
            for instance_type in sorted(resolved_class.instance_types, key=_build_type_sort_key)
        ],
    }
    group = node_class.resolved_placement_group
    if group is not None:
        document["placementGroup"] = {"id": group.group_id, "name": group.name, "strategy": group.strategy}
    return document | ({"userData": build_sample_user_data(resolved_class)} if with_user_data else {})


def render_node_class(resolved_class: ResolvedNodeClass, at: datetime, *, is_whole: bool, with_user_data: bool) -> str:
    """Return the class as text for the terminal."""
    answers = resolved_class.answers
    subnets = [
        (subnet.subnet_id, subnet.zone, subnet.zone_id, f"{subnet.available_ip_count:,}")
        for subnet in answers.subnets or ()
    ]
    groups = [(group.group_id, group.name) for group in answers.security_groups or ()]
    images = [
        (image.image_id, "deprecated" if image.deprecated else "", _describe(image.requirements), image.name)
        for image in resolved_class.node_class.resolved_images
    ]
    reservations = [
        (item.reservation_id, item.instance_type, item.zone, f"{item.available_count} of {item.total_count}")
        for item in answers.capacity_reservations or ()
    ]
    parts = [
        _render_heading(resolved_class, at),
        _render_table(("SUBNET", "ZONE", "ZONE ID", "FREE IPS"), subnets, "<<<>") or ["no subnets"],
        _render_table(("SECURITY GROUP", "NAME"), groups, "<<") or ["no security groups"],
        _render_table(("AMI", "", "FOR", "NAME"), images, "<<<<") or ["no AMIs"],
        _render_table(("CAPACITY RESERVATION", "TYPE", "ZONE", "FREE"), reservations, "<<<>"),
        _render_instance_types(resolved_class, is_whole=is_whole) or ["no instance types"],
    ]
    text = "\n\n".join("\n".join(lines) for lines in parts if lines)
    return f"{text}\n\nuser data:\n{build_sample_user_data(resolved_class)}\n" if with_user_data else f"{text}\n"


def _render_table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]], alignment: str) -> list[str]:
    return (
        render_table(TableLayout(headings=headings, alignment=alignment), rows, Palette(enabled=False), None)
        if rows
        else []
    )


def _render_heading(resolved_class: ResolvedNodeClass, at: datetime) -> list[str]:
    node_class, conditions = resolved_class.node_class, build_status(resolved_class, at)["conditions"]
    ready = next(condition for condition in conditions if condition["type"] == "Ready")
    result = "would be Ready" if ready["status"] == "True" else f"would not be Ready: {ready['message']}"
    lines = [
        f"EC2NodeClass {node_class.name} ({node_class.ami_family}) {result}",
        f"instance profile: {node_class.resolved_profile or '-'}",
    ]
    group = node_class.resolved_placement_group
    return [*lines, f"placement group: {group.group_id} {group.name} ({group.strategy})"] if group else lines


def _describe(requirements: Requirements) -> str:
    words = []
    for requirement in requirements:
        key = requirement.key.rpartition("/")[2].removeprefix("instance-")
        values = ",".join(sorted(requirement.values)) or f"no {key}"
        words.append(f"any {key}" if requirement.complement else values)
    return ", ".join(words)


def _render_instance_types(resolved_class: ResolvedNodeClass, *, is_whole: bool) -> list[str]:
    usable_types = (item for item in resolved_class.instance_types if item.allocatable[MEMORY] > 0)
    sorted_types = sorted(usable_types, key=_build_type_sort_key)
    shown_types = sorted_types if is_whole else sorted_types[:MAX_INSTANCE_TYPES]
    head = ("TYPE", "AMI", "CPU", "MEMORY", "STORAGE", "PODS", "$/H", "SPOT $/H")
    rows = [_build_type_row(instance_type, resolved_class) for instance_type in shown_types]
    lines = _render_table(head, rows, "<<>>>>>>")
    hidden_count = len(sorted_types) - len(shown_types)
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
        _format_lowest_price(instance_type, ON_DEMAND),
        _format_lowest_price(instance_type, SPOT),
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
                "usdPerHour": offering.price_usd_per_hour,
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


def _format_lowest_price(instance_type: InstanceType, capacity_type: str) -> str:
    offerings = (offering for offering in instance_type.offerings if offering.capacity_type == capacity_type)
    price = min((offering.price_usd_per_hour for offering in offerings), default=None)
    return "-" if price is None else f"{price:.4f}"
