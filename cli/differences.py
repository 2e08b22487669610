"""In what a machine differs that has drifted: what it has, and what is asked for, in words."""

from collections.abc import Callable, Mapping
from typing import Final

from shared.disruption.drifting import PLACEMENT_GROUP, Drifting, fitting_images, unmet
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODECLASS_HASH, NODEPOOL_HASH, RESERVATION_ID, ZONE
from shared.scheduling.hashes import node_pool_hash


def difference(one: Drifting, reason: str) -> tuple[str, str]:
    """Answer what the machine has and what is asked for, in words, where it has drifted for *reason*."""
    teller = _TELLERS.get(reason)
    return ("", "") if teller is None else teller(one)


def _pool_words(one: Drifting) -> tuple[str, str]:
    return f"template {one.claim.meta.annotation(NODEPOOL_HASH)}", f"template {node_pool_hash(one.pool)}"


def _requirement_words(one: Drifting) -> tuple[str, str]:
    item = unmet(one)
    if item is None:
        return "labels", "requirements"
    own = f"{item.key}={one.label(item.key)}" if one.label(item.key) else f"no label {item.key}"
    return own, " ".join((item.key, item.operator, ", ".join(sorted(item.values)))).strip()


def _type_words(one: Drifting) -> tuple[str, str]:
    what = f"{one.label(INSTANCE_TYPE)} as {one.label(CAPACITY_TYPE)} in {one.label(ZONE)}"
    return what, "what is sold"


def _class_words(one: Drifting) -> tuple[str, str]:
    hashed = one.node_class.hashed if one.node_class is not None else "none"
    return f"node class {one.claim.meta.annotation(NODECLASS_HASH)}", f"node class {hashed}"


def _image_words(one: Drifting) -> tuple[str, str]:
    every = one.node_class.resolved_images if one.node_class is not None else ()
    wanted = fitting_images(one) or {image.image_id for image in every}
    return one.claim.image_id, " or ".join(sorted(wanted))


def _group_words(one: Drifting) -> tuple[str, str]:
    groups = one.node_class.resolved_security_groups if one.node_class is not None else ()
    own = one.instance.security_group_ids if one.instance is not None else ("security groups",)
    return ", ".join(sorted(own)), ", ".join(sorted(group.group_id for group in groups))


def _subnet_words(one: Drifting) -> tuple[str, str]:
    subnets = one.node_class.resolved_subnets if one.node_class is not None else ()
    own = one.instance.subnet_id if one.instance is not None else "subnet"
    return own, " or ".join(sorted(subnet.subnet_id for subnet in subnets))


def _reservation_words(one: Drifting) -> tuple[str, str]:
    known = one.node_class.resolved_capacity_reservations if one.node_class is not None else ()
    return one.label(RESERVATION_ID), " or ".join(sorted(item.reservation_id for item in known)) or "no reservation"


def _placement_words(one: Drifting) -> tuple[str, str]:
    group = one.node_class.resolved_placement_group if one.node_class is not None else None
    return one.label(PLACEMENT_GROUP) or "no placement group", group.group_id if group is not None else "none"


_TELLERS: Final[Mapping[str, Callable[[Drifting], tuple[str, str]]]] = {
    "AMIDrift": _image_words,
    "CapacityReservationDrift": _reservation_words,
    "DriftRequested": lambda _: ("as it is", "another one, as its annotation asks"),
    "InstanceTypeNotFound": _type_words,
    "NodeClassDrift": _class_words,
    "NodePoolDrifted": _pool_words,
    "PlacementGroupDrift": _placement_words,
    "RequirementsDrifted": _requirement_words,
    "SecurityGroupDrift": _group_words,
    "SubnetDrift": _subnet_words,
}
