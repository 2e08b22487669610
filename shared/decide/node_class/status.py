"""The status of an EC2NodeClass: subnets, security groups, images, instance profile, conditions.

Three steps: this package decides which AWS calls are needed (`list_image_parameters`, `build_dry_run_request`, the
selectors in the spec), the catalog function makes the calls, and this module computes the status from the answers.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from shared.decide.launch.ami_families.images import (
    describe_unsupported_architectures,
    explain_unsupported_alias,
    select_newest_images,
)
from shared.decide.node_class.canary_status import choose_images, with_canary_condition
from shared.decide.node_class.registration_condition import with_registration_condition
from shared.decide.node_class.status_fields import build_status_fields, is_status_current
from shared.decide.node_class.subnet_addresses import describe_low_addresses
from shared.model.cloud_provider.node_class_findings import NodeClassAnswers, NodeClassFinding
from shared.model.cluster import ClusterSnapshot
from shared.model.core.conditions import encode_conditions, with_condition, with_root_conditions
from shared.model.core.metadata import find_condition
from shared.model.decisions.action import Action, PatchStatus
from shared.model.ec2.account import SelectorTerm
from shared.model.karpenter.node_class import EC2NodeClass

_CONDITION_TYPES: Final = (
    "AMIsReady",
    "CapacityReservationsReady",
    "InstanceProfileReady",
    "PlacementGroupReady",
    "SecurityGroupsReady",
    "SubnetsReady",
    "ValidationSucceeded",
)
_REQUIRED_CONDITION_TYPES: Final = ("AMIsReady", "InstanceProfileReady", "SecurityGroupsReady", "SubnetsReady")
"""Unless these are true, a launch cannot be validated with EC2."""


def with_answers(node_class: EC2NodeClass, answers: NodeClassAnswers, profile: str, now: datetime) -> EC2NodeClass:
    """Return *node_class* with the resolved values, including those that its status cannot store."""
    resolved_fields: dict[str, Any] = {"resolved_profile": node_class.instance_profile or profile}
    if answers.subnets is not None:
        resolved_fields["resolved_subnets"] = answers.subnets
    if answers.security_groups is not None:
        resolved_fields["resolved_security_groups"] = answers.security_groups
    if answers.images is not None:
        resolved_fields["resolved_images"] = choose_images(node_class, select_newest_images(answers.images, now))
    if answers.capacity_reservations is not None:
        resolved_fields["resolved_capacity_reservations"] = answers.capacity_reservations
    if answers.placement_groups is not None:
        resolved_fields["resolved_placement_group"] = next(iter(answers.placement_groups), None)
    return msgspec.structs.replace(node_class, **resolved_fields)


def resolve_node_class_status(
    node_class: EC2NodeClass,
    answers: NodeClassAnswers,
    profile: str,
    now: datetime,
    problems: Iterable[NodeClassFinding] = (),
) -> PatchStatus:
    """Compute the new status; values without an answer stay unchanged, unless the spec has changed since.

    *profile* is the instance profile that the stack creates for nodes; a class with its own instance profile keeps it.
    *problems* are additional findings that make the class unusable.
    """
    resolved_class = with_answers(node_class, answers, profile, now)
    reservations = answers.capacity_reservations
    is_answered = {
        "amis": answers.images is not None,
        "capacityReservations": reservations is not None
        and bool(reservations or node_class.resolved_capacity_reservations),
        "instanceProfile": True,
        "securityGroups": answers.security_groups is not None,
        "subnets": answers.subnets is not None,
    }
    status = {name: value for name, value in build_status_fields(resolved_class, now).items() if is_answered[name]}
    states = _build_condition_states(resolved_class, answers, (*answers.findings, *problems))
    status["conditions"] = _build_conditions(node_class, states, now)
    return PatchStatus(
        kind="EC2NodeClass",
        name=node_class.name,
        status=json.dumps(status, sort_keys=True),
        message=next(
            (f"{kind}: {message}" for kind, (state, _, message) in sorted(states.items()) if state != "True"),
            "resolved",
        ),
    )


def find_unmatched_terms(node_class: EC2NodeClass, answers: NodeClassAnswers) -> tuple[str, ...]:
    """Return a message for each term by id or group name that matched nothing."""
    results_by_field: tuple[tuple[str, tuple[SelectorTerm, ...], Iterable[object] | None, set[str]], ...] = (
        (
            "subnetSelectorTerms",
            node_class.subnet_selectors,
            answers.subnets,
            {subnet.subnet_id for subnet in answers.subnets or ()},
        ),
        (
            "securityGroupSelectorTerms",
            node_class.security_group_selectors,
            answers.security_groups,
            {word for group in answers.security_groups or () for word in (group.group_id, group.name)},
        ),
        (
            "amiSelectorTerms",
            tuple(term for term in node_class.image_selectors if term.id),
            answers.images,
            {image.image_id for image, _ in answers.images or ()},
        ),
        (
            "capacityReservationSelectorTerms",
            node_class.capacity_reservation_selectors,
            answers.capacity_reservations,
            {reservation.reservation_id for reservation in answers.capacity_reservations or ()},
        ),
    )
    return tuple(
        f"spec.{field}: {term.id or term.name} does not exist in this account and region: check the spelling"
        for field, terms, answer, existing in results_by_field
        if answer is not None
        for term in terms
        if (term.id or (term.name and field.startswith("security"))) and (term.id or term.name) not in existing
    )


ConditionState = tuple[str, str, str]
"""Status, reason, message."""


def _build_condition_states(
    resolved_class: EC2NodeClass, answers: NodeClassAnswers, problems: tuple[NodeClassFinding, ...]
) -> Mapping[str, ConditionState]:
    states = {
        "SubnetsReady": _build_subnets_state(resolved_class, answers),
        "SecurityGroupsReady": _build_selector_state(
            "SecurityGroupsReady",
            "SecurityGroupsNotFound",
            "spec.securityGroupSelectorTerms",
            answers.security_groups,
            resolved_class.security_group_selectors,
        ),
        "AMIsReady": _build_images_state(resolved_class, answers),
        "InstanceProfileReady": _build_profile_state(resolved_class),
        "CapacityReservationsReady": _build_unknown_or_ready_state(
            answers.capacity_reservations, "CapacityReservationsReady", "spec.capacityReservationSelectorTerms"
        ),
        "PlacementGroupReady": _build_placement_group_state(resolved_class, answers),
    }
    return states | {"ValidationSucceeded": _build_validation_state(states, answers, problems)}


def _build_validation_state(
    states: Mapping[str, ConditionState], answers: NodeClassAnswers, problems: tuple[NodeClassFinding, ...]
) -> ConditionState:
    if problems:
        return ("False", problems[0].reason, "; ".join(dict.fromkeys(finding.message for finding in problems)))
    unmet_conditions = [f"{name}={states[name][0]}" for name in _REQUIRED_CONDITION_TYPES if states[name][0] != "True"]
    if unmet_conditions:
        status = "False" if any(states[name][0] == "False" for name in _REQUIRED_CONDITION_TYPES) else "Unknown"
        return (status, "DependenciesNotReady", ", ".join(unmet_conditions))
    return _build_unknown_or_ready_state(answers.refusals, "ValidationSucceeded", "a launch")


def _build_subnets_state(resolved_class: EC2NodeClass, answers: NodeClassAnswers) -> ConditionState:
    """Return the state; subnets without free addresses are named, but the class stays ready if it has subnets."""
    status, reason, message = _build_selector_state(
        "SubnetsReady",
        "SubnetsNotFound",
        "spec.subnetSelectorTerms",
        answers.subnets,
        resolved_class.subnet_selectors,
    )
    return (status, reason, message or describe_low_addresses(answers.subnets or ()))


def _build_images_state(resolved_class: EC2NodeClass, answers: NodeClassAnswers) -> ConditionState:
    message = explain_unsupported_alias(resolved_class, answers.kubernetes_version)
    if message:
        return ("False", "UnsupportedAlias", message)
    if answers.images and not resolved_class.resolved_images:
        return (
            "False",
            "AMINotFound",
            f"spec.amiSelectorTerms: {'; '.join(describe_unsupported_architectures(answers.images))}",
        )
    return _build_selector_state(
        "AMIsReady", "AMINotFound", "spec.amiSelectorTerms", answers.images, resolved_class.image_selectors
    )


def _build_profile_state(resolved_class: EC2NodeClass) -> ConditionState:
    if resolved_class.resolved_profile:
        return ("True", "InstanceProfileReady", "")
    message = "the stack has no instance profile for this role: deploy with this role, or set spec.instanceProfile"
    return ("False", "InstanceProfileNotFound", f"spec.role: {message}")


def _build_placement_group_state(resolved_class: EC2NodeClass, answers: NodeClassAnswers) -> ConditionState:
    selector = resolved_class.placement_group_selector
    if selector is None:
        return ("True", "PlacementGroupReady", "")
    if answers.placement_groups is None:
        return ("Unknown", "PlacementGroupResolutionFailed", "spec.placementGroupSelector: the EC2 API call failed")
    if not answers.placement_groups:
        name = selector.id or selector.name
        message = (
            f"{name} does not exist in this account and region, or is not available: create it, or correct the selector"
        )
        return ("False", "PlacementGroupNotFound", f"spec.placementGroupSelector: {message}")
    return ("True", "PlacementGroupReady", "")


def _build_unknown_or_ready_state(answer: tuple[object, ...] | None, kind: str, subject: str) -> ConditionState:
    return (
        ("Unknown", "AwaitingReconciliation", f"{subject}: the EC2 API call failed")
        if answer is None
        else ("True", kind, "")
    )


def _build_selector_state(
    kind: str, missing: str, field: str, answer: tuple[object, ...] | None, terms: Iterable[SelectorTerm]
) -> ConditionState:
    if answer:
        return ("True", kind, "")
    if answer is None:
        return _build_unknown_or_ready_state(None, kind, field)
    term_list = ", ".join(_format_term(number, term) for number, term in enumerate(terms))
    terms_text = f" ({term_list})" if term_list else ""
    message = f"{field} matched no resource in this account and region{terms_text}: check ids, names and tags"
    return ("False", missing, message)


def _format_term(number: int, term: SelectorTerm) -> str:
    tags = ", ".join(f"{key}={value}" for key, value in term.tags)
    identifier = term.id or term.alias or term.ssm_parameter
    return f"[{number}] {identifier or ' '.join(filter(None, (term.name, f'tags {tags}' if tags else '')))}"


def _build_conditions(
    node_class: EC2NodeClass, states: Mapping[str, ConditionState], now: datetime
) -> list[dict[str, Any]]:
    conditions = node_class.conditions
    generation = node_class.meta.generation
    for kind, (status, reason, message) in sorted(states.items()):
        previous = find_condition(conditions, kind)
        if status == "Unknown" and previous is not None and previous.observed_generation >= generation:
            continue
        conditions = with_condition(conditions, kind, status, reason, message, now=now, generation=generation)
    conditions = with_canary_condition(conditions, node_class, now)
    conditions = with_registration_condition(conditions, node_class, now)
    return encode_conditions(
        with_root_conditions(conditions, _CONDITION_TYPES, now, generation, node_class.meta.created_at)
    )


def plan_status_patches(
    cluster: ClusterSnapshot, answers_by_class: Iterable[tuple[str, NodeClassAnswers]], profile: str
) -> tuple[Action, ...]:
    """Return one PatchStatus per node class with an outdated status, in the order of *answers_by_class*."""
    class_by_name = {node_class.name: node_class for node_class in cluster.node_classes}
    patches = (
        resolve_node_class_status(class_by_name[name], answers, profile, cluster.taken_at)
        for name, answers in answers_by_class
        if name in class_by_name
    )
    return tuple(patch for patch in patches if not is_status_current(class_by_name[patch.name], patch))
