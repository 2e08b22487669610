"""A resolved node class as a page that a person reads, and as a document."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from cli.nodeclass_account import Resolved
from cli.text import aligned, count, some
from shared.launch.nodeclass import resolve, unmatched
from shared.launch.userdata import user_data
from shared.launch.validation import advice, rehearsal
from shared.model.catalogue import InstanceType
from shared.model.labels import ON_DEMAND, SPOT
from shared.model.resources import CPU, MEMORY, PODS, STORAGE, quantities_from

MOST: Final = 15
_GIB: Final = 1024**3


def complaints(one: Resolved, at: datetime) -> Iterator[str]:
    """Iterate over why the class would not be Ready."""
    for condition in status(one, at)["conditions"]:
        if (
            condition["status"] != "True"
            and condition["type"] != "Ready"
            and condition["reason"] != "DependenciesNotReady"
        ):
            said = condition["message"] or condition["reason"]
            yield f"EC2NodeClass {one.node_class.name}: {condition['type']}: {condition['reason']}: {said}"


def warnings(one: Resolved) -> Iterator[str]:
    """Iterate over what is allowed, and hardly meant."""
    grave = {finding.message for finding in one.found.findings}
    for line in (*unmatched(one.node_class, one.found), *advice(one.node_class)):
        yield f"EC2NodeClass {one.node_class.name}: {line}"
    for refusal in one.refusals:
        if not any(refusal.code in message for message in grave):
            yield f"EC2NodeClass {one.node_class.name}: ec2:{refusal.action}: {refusal.code}: {refusal.message}"
    if one.crowded:
        types = f"{count(len(one.crowded), 'type')} have addresses for ({some(one.crowded, 3)})"
        why = f"more than {types}: turn prefix delegation on, or lower it"
        yield f"EC2NodeClass {one.node_class.name}: spec.kubelet.maxPods: {why}"
    if not one.types and one.found.subnets and one.found.images:
        yield f"EC2NodeClass {one.node_class.name}: no instance type of these zones fits the images"


def status(one: Resolved, at: datetime) -> dict[str, Any]:
    """Answer the status that the class would have."""
    bare = replace(one.node_class, conditions=())
    written: dict[str, Any] = json.loads(resolve(bare, one.found, one.node_class.resolved_profile, at).status)
    return written


def told(one: Resolved) -> str:
    """Answer the user data of the cheapest type, "" if it cannot be made."""
    if one.facts is None:
        return ""
    cheapest = min(one.types, key=_rank, default=None)
    boot = rehearsal(one.facts)
    if cheapest is not None:
        boot = replace(boot, max_pods=cheapest.capacity[PODS])
    try:
        return user_data(one.node_class, boot)
    except ValueError:
        return ""


def document(one: Resolved, at: datetime, *, tells: bool) -> dict[str, Any]:
    """Answer the class as JSON has it: its status, with free addresses, types and prices; user data if it *tells*."""
    own = status(one, at)
    free = {subnet.subnet_id: subnet.available_ip_count for subnet in one.found.subnets or ()}
    said: dict[str, Any] = {
        "name": one.node_class.name,
        "amiFamily": one.node_class.ami_family,
        "hash": one.node_class.hashed,
        **own,
        "subnets": [{**subnet, "freeIPs": free[subnet["id"]]} for subnet in own.get("subnets", ())],
        "instanceTypes": [_type_document(kind, one) for kind in sorted(one.types, key=_rank)],
    }
    group = one.node_class.resolved_placement_group
    if group is not None:
        said["placementGroup"] = {"id": group.group_id, "name": group.name, "strategy": group.strategy}
    return said | ({"userData": told(one)} if tells else {})


def page(one: Resolved, at: datetime, *, is_whole: bool, tells: bool) -> str:
    """Answer what a person reads."""
    parts = [
        _head(one, at),
        _subnets(one),
        _groups(one),
        _images(one),
        _reservations(one),
        _types(one, is_whole=is_whole),
    ]
    text = "\n\n".join("\n".join(lines) for lines in parts if lines)
    return f"{text}\n\nuser data:\n{told(one)}\n" if tells else f"{text}\n"


def _head(one: Resolved, at: datetime) -> list[str]:
    ready = next(each for each in status(one, at)["conditions"] if each["type"] == "Ready")
    own = one.node_class
    word = "would be Ready" if ready["status"] == "True" else f"would not be Ready: {ready['message']}"
    lines = [f"EC2NodeClass {own.name} ({own.ami_family}) {word}", f"instance profile: {own.resolved_profile or '-'}"]
    group = own.resolved_placement_group
    return [*lines, f"placement group: {group.group_id} {group.name} ({group.strategy})"] if group else lines


def _subnets(one: Resolved) -> list[str]:
    rows = [
        (each.subnet_id, each.zone, each.zone_id, f"{each.available_ip_count:,}") for each in one.found.subnets or ()
    ]
    return aligned([("SUBNET", "ZONE", "ZONE ID", "FREE IPS"), *rows], left=3) if rows else ["no subnet"]


def _groups(one: Resolved) -> list[str]:
    rows = [(each.group_id, each.name) for each in one.found.security_groups or ()]
    return aligned([("SECURITY GROUP", "NAME"), *rows], left=2) if rows else ["no security group"]


def _images(one: Resolved) -> list[str]:
    rows = [
        (each.image_id, "deprecated" if each.deprecated else "", _wanted(each.requirements), each.name)
        for each in one.node_class.resolved_images
    ]
    return aligned([("IMAGE", "", "FOR", "NAME"), *rows], left=4) if rows else ["no image"]


def _wanted(requirements: Any) -> str:  # noqa: ANN401 - the model's own
    words = []
    for each in requirements:
        key = each.key.rpartition("/")[2].removeprefix("instance-")
        if each.complement:
            words.append(f"some {key}")
        else:
            words.append(",".join(sorted(each.values)) or f"no {key}")
    return ", ".join(words)


def _reservations(one: Resolved) -> list[str]:
    rows = [
        (each.reservation_id, each.instance_type, each.zone, f"{each.available_count} of {each.total_count}")
        for each in one.found.capacity_reservations or ()
    ]
    return aligned([("RESERVATION", "TYPE", "ZONE", "FREE"), *rows], left=3) if rows else []


def _types(one: Resolved, *, is_whole: bool) -> list[str]:
    ranked = sorted((kind for kind in one.types if kind.allocatable[MEMORY] > 0), key=_rank)
    shown = ranked if is_whole else ranked[:MOST]
    if not shown:
        return ["no instance type"]
    head = ("TYPE", "IMAGE", "CPU", "MEMORY", "STORAGE", "PODS", "$/H", "SPOT $/H")
    lines = aligned([head, *(_row(kind, one) for kind in shown)], left=2)
    rest = len(ranked) - len(shown)
    return [*lines, f"… and {count(rest, 'more type')} (--all shows them)"] if rest else lines


def _row(kind: InstanceType, one: Resolved) -> tuple[str, ...]:
    left = kind.allocatable
    return (
        kind.name,
        _image_of(kind, one),
        f"{left[CPU] / 1000:g}",
        f"{left[MEMORY] / _GIB:.2f}Gi",
        f"{left[STORAGE] / _GIB:.1f}Gi",
        str(left[PODS]),
        _money(_price(kind, ON_DEMAND)),
        _money(_price(kind, SPOT)),
    )


def _type_document(kind: InstanceType, one: Resolved) -> dict[str, Any]:
    return {
        "name": kind.name,
        "ami": _image_of(kind, one),
        "capacity": quantities_from(kind.capacity),
        "allocatable": quantities_from(kind.allocatable),
        "offerings": [
            {
                "zone": each.zone,
                "capacityType": each.capacity_type,
                "price": each.price_usd_per_hour,
                "available": each.available,
            }
            for each in kind.offerings
        ],
    }


def _image_of(kind: InstanceType, one: Resolved) -> str:
    images = one.node_class.resolved_images
    return next((each.image_id for each in images if not kind.requirements.conflict(each.requirements)), "")


def _rank(kind: InstanceType) -> tuple[float, str]:
    return min((each.price_usd_per_hour for each in kind.offerings), default=0.0), kind.name


def _price(kind: InstanceType, capacity_type: str) -> float | None:
    return min(
        (each.price_usd_per_hour for each in kind.offerings if each.capacity_type == capacity_type), default=None
    )


def _money(price: float | None) -> str:
    return "-" if price is None else f"{price:.4f}"
