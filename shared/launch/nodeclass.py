"""An EC2NodeClass and the account -> its status: subnets, security groups, images, profile, conditions.

What has to be asked is an answer of this room (`parameters_wanted`, `probe`, the selectors in the spec); asking is done
by the catalog function; what the answers mean is decided here again.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from shared.launch.images import (
    WantedParameter,
    best_images,
    foreign_architectures,
    parameters_wanted,
    unsupported_alias,
)
from shared.launch.stated import stated
from shared.launch.validation import Finding
from shared.model.action import PatchStatus
from shared.model.conditions import conditions_json, rooted, with_condition
from shared.model.ec2 import CapacityReservation, Image, PlacementGroup, Refusal, SecurityGroup, Selector, Subnet
from shared.model.nodeclasses import EC2NodeClass
from shared.model.objects import condition

__all__ = ["Found", "WantedParameter", "filled", "parameters_wanted", "resolve", "unmatched"]

_ROOTS: Final = (
    "AMIsReady",
    "CapacityReservationsReady",
    "InstanceProfileReady",
    "PlacementGroupReady",
    "SecurityGroupsReady",
    "SubnetsReady",
    "ValidationSucceeded",
)
_NEEDED: Final = ("AMIsReady", "InstanceProfileReady", "SecurityGroupsReady", "SubnetsReady")
"""Without these nothing can be validated against EC2."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What the account answered for one node class; None: it could not be asked, so nothing is concluded."""

    subnets: tuple[Subnet, ...] | None
    security_groups: tuple[SecurityGroup, ...] | None
    images: tuple[tuple[Image, tuple[str, ...]], ...] | None
    """Images with the variants they are for; a term of the user's own has none: any type of the architecture."""
    capacity_reservations: tuple[CapacityReservation, ...] | None = ()
    placement_groups: tuple[PlacementGroup, ...] | None = ()
    """At most one."""
    findings: tuple[Finding, ...] = ()
    """What is wrong with the spec, whatever the account says."""
    refusals: tuple[Refusal, ...] | None = ()
    """What EC2 says it would not do."""
    kubernetes_version: str = ""


def filled(node_class: EC2NodeClass, found: Found, profile: str, now: datetime) -> EC2NodeClass:
    """Answer *node_class* with what was found, as its status will have it, and with what no status has room for."""
    parts: dict[str, Any] = {"resolved_profile": node_class.instance_profile or profile}
    if found.subnets is not None:
        parts["resolved_subnets"] = found.subnets
    if found.security_groups is not None:
        parts["resolved_security_groups"] = found.security_groups
    if found.images is not None:
        parts["resolved_images"] = best_images(found.images, now)
    if found.capacity_reservations is not None:
        parts["resolved_capacity_reservations"] = found.capacity_reservations
    if found.placement_groups is not None:
        parts["resolved_placement_group"] = next(iter(found.placement_groups), None)
    return msgspec.structs.replace(node_class, **parts)


def resolve(
    node_class: EC2NodeClass, found: Found, profile: str, now: datetime, problems: Iterable[Finding] = ()
) -> PatchStatus:
    """Answer the new status; what could not be asked stays as it was, unless the spec has changed since.

    *profile* is the instance profile that the stack made for nodes; a class that names its own keeps that.
    *problems* are what else keeps the class from being used.
    """
    own = filled(node_class, found, profile, now)
    held = found.capacity_reservations
    asked = {
        "amis": found.images is not None,
        "capacityReservations": held is not None and bool(held or node_class.resolved_capacity_reservations),
        "instanceProfile": True,
        "securityGroups": found.security_groups is not None,
        "subnets": found.subnets is not None,
    }
    status = {name: value for name, value in stated(own, now).items() if asked[name]}
    states = _states(own, found, (*found.findings, *problems))
    status["conditions"] = _conditions(node_class, states, now)
    return PatchStatus(
        kind="EC2NodeClass",
        name=node_class.name,
        status=json.dumps(status, sort_keys=True),
        why=next((f"{kind}: {why}" for kind, (state, _, why) in sorted(states.items()) if state != "True"), "resolved"),
    )


def unmatched(node_class: EC2NodeClass, found: Found) -> tuple[str, ...]:
    """Name the terms by id or group name that matched nothing, though others did."""
    answers: tuple[tuple[str, tuple[Selector, ...], Iterable[object] | None, set[str]], ...] = (
        (
            "subnetSelectorTerms",
            node_class.subnet_selectors,
            found.subnets,
            {one.subnet_id for one in found.subnets or ()},
        ),
        (
            "securityGroupSelectorTerms",
            node_class.security_group_selectors,
            found.security_groups,
            {word for one in found.security_groups or () for word in (one.group_id, one.name)},
        ),
        (
            "amiSelectorTerms",
            tuple(term for term in node_class.image_selectors if term.id),
            found.images,
            {image.image_id for image, _ in found.images or ()},
        ),
        (
            "capacityReservationSelectorTerms",
            node_class.capacity_reservation_selectors,
            found.capacity_reservations,
            {one.reservation_id for one in found.capacity_reservations or ()},
        ),
    )
    return tuple(
        f"spec.{field}: {term.id or term.name} does not exist here: check account, region and spelling"
        for field, terms, answer, known in answers
        if answer is not None
        for term in terms
        if (term.id or (term.name and field.startswith("security"))) and (term.id or term.name) not in known
    )


State = tuple[str, str, str]
"""Status, reason, message."""


def _states(own: EC2NodeClass, found: Found, problems: tuple[Finding, ...]) -> Mapping[str, State]:
    states = {
        "SubnetsReady": _state(
            "SubnetsReady", "SubnetsNotFound", "spec.subnetSelectorTerms", found.subnets, own.subnet_selectors
        ),
        "SecurityGroupsReady": _state(
            "SecurityGroupsReady",
            "SecurityGroupsNotFound",
            "spec.securityGroupSelectorTerms",
            found.security_groups,
            own.security_group_selectors,
        ),
        "AMIsReady": _images_state(own, found),
        "InstanceProfileReady": _profile_state(own),
        "CapacityReservationsReady": _asked_state(
            found.capacity_reservations, "CapacityReservationsReady", "spec.capacityReservationSelectorTerms"
        ),
        "PlacementGroupReady": _group_state(own, found),
    }
    return states | {"ValidationSucceeded": _validation_state(states, found, problems)}


def _validation_state(states: Mapping[str, State], found: Found, problems: tuple[Finding, ...]) -> State:
    if problems:
        return ("False", problems[0].reason, "; ".join(dict.fromkeys(one.message for one in problems)))
    poor = [f"{name}={states[name][0]}" for name in _NEEDED if states[name][0] != "True"]
    if poor:
        status = "False" if any(states[name][0] == "False" for name in _NEEDED) else "Unknown"
        return (status, "DependenciesNotReady", ", ".join(poor))
    return _asked_state(found.refusals, "ValidationSucceeded", "a launch")


def _images_state(own: EC2NodeClass, found: Found) -> State:
    why = unsupported_alias(own, found.kubernetes_version)
    if why:
        return ("False", "UnsupportedAlias", why)
    if found.images and not own.resolved_images:
        return ("False", "AMINotFound", f"spec.amiSelectorTerms: {'; '.join(foreign_architectures(found.images))}")
    return _state("AMIsReady", "AMINotFound", "spec.amiSelectorTerms", found.images, own.image_selectors)


def _profile_state(own: EC2NodeClass) -> State:
    if own.resolved_profile:
        return ("True", "InstanceProfileReady", "")
    why = "the stack made no instance profile for it: deploy with this role, or set spec.instanceProfile"
    return ("False", "InstanceProfileNotFound", f"spec.role: {why}")


def _group_state(own: EC2NodeClass, found: Found) -> State:
    selector = own.placement_group_selector
    if selector is None:
        return ("True", "PlacementGroupReady", "")
    if found.placement_groups is None:
        return ("Unknown", "PlacementGroupResolutionFailed", "spec.placementGroupSelector: EC2 could not be asked")
    if not found.placement_groups:
        name = selector.id or selector.name
        why = f"{name} does not exist here, or is not available: make it, or correct the selector"
        return ("False", "PlacementGroupNotFound", f"spec.placementGroupSelector: {why}")
    return ("True", "PlacementGroupReady", "")


def _asked_state(found: tuple[object, ...] | None, kind: str, what: str) -> State:
    return (
        ("Unknown", "AwaitingReconciliation", f"{what}: EC2 could not be asked")
        if found is None
        else ("True", kind, "")
    )


def _state(kind: str, missing: str, field: str, found: tuple[object, ...] | None, terms: Iterable[Selector]) -> State:
    if found:
        return ("True", kind, "")
    if found is None:
        return _asked_state(None, kind, field)
    said = ", ".join(_said(number, term) for number, term in enumerate(terms))
    where = f" ({said})" if said else ""
    why = f"{field} matched nothing in this account and region{where}: check ids, names and tags"
    return ("False", missing, why)


def _said(number: int, term: Selector) -> str:
    tags = ", ".join(f"{key}={value}" for key, value in term.tags)
    word = term.id or term.alias or term.ssm_parameter
    return f"[{number}] {word or ' '.join(filter(None, (term.name, f'tags {tags}' if tags else '')))}"


def _conditions(node_class: EC2NodeClass, states: Mapping[str, State], now: datetime) -> list[dict[str, Any]]:
    some = node_class.conditions
    generation = node_class.meta.generation
    for kind, (status, reason, message) in sorted(states.items()):
        known = condition(some, kind)
        if status == "Unknown" and known is not None and known.observed_generation >= generation:
            continue
        some = with_condition(some, kind, status, reason, message, now=now, generation=generation)
    return conditions_json(rooted(some, _ROOTS, now, generation, node_class.meta.created_at))
