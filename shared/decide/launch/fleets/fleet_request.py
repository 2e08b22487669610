"""The fleet request of one NodeClaim, without its client token, or the reason why the claim cannot be launched."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from shared.decide.launch.fleets.launch_template import FittedTemplate, build_fitted_templates, build_launch_tags
from shared.decide.launch.fleets.offerings import (
    LaunchOffering,
    SpotPriceTolerance,
    get_capacity_type,
    get_reservation_type,
    select_launch_offerings,
    select_preferred_capacity_type,
)
from shared.decide.launch.fleets.spot_risk import select_safe_offerings
from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.cluster import ClusterSnapshot
from shared.model.core.digest import compute_digest
from shared.model.core.labels import MIN_VALUES_RELAXED, NODEPOOL
from shared.model.core.requirements import Requirement, Requirements
from shared.model.ec2.account import ControlPlaneFacts
from shared.model.ec2.fleet import FleetRequest, LaunchTemplateConfig, Override
from shared.model.ec2.types import AllocationStrategy, CapacityType
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.karpenter.node_class import NODE_CLASS_CRD, EC2NodeClass

MAX_TYPES_PER_REQUEST: Final = 60
MAX_OVERRIDES_PER_REQUEST: Final = 300
"""EC2 accepts no more overrides in one request."""


class Unlaunchable(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that cannot be launched now; *final* means that waiting will not help."""

    claim: NodeClaim
    reason: str
    """`InsufficientCapacity`, `NodeClassNotReady`, `NodeClassNotFound`, `UserDataInvalid`, `CatalogMissing`,
    `LimitExceeded`, `LaunchBreakerOpen`, `LaunchesPaused`.
    """
    message: str
    final: bool


class FleetRequestDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet request without its client token, and the launch templates that it uses."""

    request: FleetRequest
    fitted_templates: tuple[FittedTemplate, ...]
    node_class_hash: str

    def compute_key(self) -> str:
        """Return the digest that equal requests share."""
        return compute_digest(self.request)

    def get_lowest_price(self) -> float:
        """Return the price of the cheapest override, in USD per hour."""
        return min(override.priority or 0.0 for config in self.request.configs for override in config.overrides)


class LaunchRequirements(msgspec.Struct, frozen=True, kw_only=True):
    """How one claim is launched, in addition to its own spec."""

    prefers_on_demand: bool = False
    """On-demand is tried before spot."""
    uses_open_reservations: bool = False
    best_effort: bool = False
    """Launch even if one request cannot name enough values for minValues."""
    spot_price_tolerance: SpotPriceTolerance = SpotPriceTolerance()
    zone: str = ""
    """The zone that balances the NodePool; "" for any. If it has no offering, all zones are requested."""


def draft_fleet_request(
    claim: NodeClaim, cluster: ClusterSnapshot, counts: Mapping[str, int], launch_requirements: LaunchRequirements
) -> FleetRequestDraft | Unlaunchable:
    """Return the fleet request for *claim*, or why it cannot be launched; *counts* are free addresses by subnet."""
    node_class = next(
        (node_class for node_class in cluster.node_classes if node_class.name == claim.node_class.name), None
    )
    if node_class is None or node_class.meta.deleted_at is not None:
        return _explain_missing_node_class(claim, cluster)
    if not node_class.is_ready():
        # Not resolved yet for this generation: not an error of the claim, it waits for the catalog function.
        return build_unlaunchable(
            claim, "NodeClassNotReady", f"EC2NodeClass {node_class.name} is not Ready", final=node_class.is_current()
        )
    if cluster.catalog is None or cluster.facts is None:
        return build_unlaunchable(claim, "CatalogMissing", "there is no catalog of instance types yet", final=False)
    launch_offerings = select_launch_offerings(claim, cluster, counts)
    min_values_shortfall = _describe_min_values_shortfall(
        limit_offerings(launch_offerings, claim.requirements), claim.requirements
    )
    if (
        launch_offerings
        and min_values_shortfall
        and not launch_requirements.best_effort
        and claim.meta.get_annotation(MIN_VALUES_RELAXED) != "true"
    ):
        message = f"one fleet request cannot meet minValues: {min_values_shortfall}"
        return build_unlaunchable(claim, "InsufficientCapacity", message, final=True)
    preferred_offerings = select_preferred_capacity_type(
        launch_offerings, prefers_on_demand=launch_requirements.prefers_on_demand
    )
    zone_offerings = tuple(offer for offer in preferred_offerings if offer.zone == launch_requirements.zone)
    preferred_offerings = zone_offerings or preferred_offerings
    requested_offerings = limit_offerings(
        select_safe_offerings(
            launch_requirements.spot_price_tolerance.select_offerings(preferred_offerings, claim.requirements),
            claim,
            cluster,
        ),
        claim.requirements,
    )
    return _build_draft(claim, node_class, requested_offerings, cluster.facts, launch_requirements)


def _build_draft(
    claim: NodeClaim,
    node_class: EC2NodeClass,
    launch_offerings: list[LaunchOffering],
    facts: ControlPlaneFacts,
    launch_requirements: LaunchRequirements,
) -> FleetRequestDraft | Unlaunchable:
    try:
        fitted_templates = build_fitted_templates(
            claim,
            node_class,
            launch_offerings,
            facts,
            uses_open_reservations=launch_requirements.uses_open_reservations,
        )
    except ValueError as error:
        return build_unlaunchable(claim, "UserDataInvalid", f"EC2NodeClass {node_class.name}: {error}", final=False)
    if not fitted_templates:
        return build_unlaunchable(
            claim, "InsufficientCapacity", "all requested instance types were unavailable", final=True
        )
    request = _build_fleet_request(claim, node_class, facts, fitted_templates)
    return FleetRequestDraft(request=request, fitted_templates=fitted_templates, node_class_hash=node_class.spec_hash)


def build_unlaunchable(claim: NodeClaim, reason: str, message: str, *, final: bool) -> Unlaunchable:
    """Build the result for a *claim* that cannot be launched."""
    return Unlaunchable(claim=claim, reason=reason, message=message, final=final)


def limit_offerings(launch_offerings: Iterable[LaunchOffering], requirements: Requirements) -> list[LaunchOffering]:
    """Keep the cheapest offerings within the limits on types and overrides of one request; cheapest first.

    The limits are `MAX_TYPES_PER_REQUEST` and `MAX_OVERRIDES_PER_REQUEST`. A more expensive type with a value that
    minValues still lacks goes before a cheaper type without one, and the cheapest offering of a type before the second
    offering of another.
    """
    sorted_offers = sorted(launch_offerings, key=LaunchOffering.get_sort_key)
    cheapest_by_type: dict[str, LaunchOffering] = {}
    for offer in sorted_offers:
        cheapest_by_type.setdefault(offer.instance_type.name, offer)
    min_values_types = _select_types_for_min_values(
        (offer.instance_type for offer in cheapest_by_type.values()), requirements
    )
    names = list(dict.fromkeys((*min_values_types, *cheapest_by_type)))[:MAX_TYPES_PER_REQUEST]
    selected_names = set(names)
    remaining = (
        offer
        for offer in sorted_offers
        if (name := offer.instance_type.name) in selected_names and offer is not cheapest_by_type[name]
    )
    return sorted(
        [*(cheapest_by_type[name] for name in names), *remaining][:MAX_OVERRIDES_PER_REQUEST],
        key=LaunchOffering.get_sort_key,
    )


def _explain_missing_node_class(claim: NodeClaim, cluster: ClusterSnapshot) -> Unlaunchable:
    name = claim.node_class.name
    if cluster.is_unserved(NODE_CLASS_CRD):
        return build_unlaunchable(
            claim, "NodeClassNotReady", (f"EC2NodeClass {name}: EC2NodeClasses cannot be listed"), final=False
        )
    if any(problem.kind == "EC2NodeClass" and problem.name == name for problem in cluster.problems):
        return build_unlaunchable(claim, "NodeClassNotReady", f"EC2NodeClass {name} cannot be read", final=False)
    return build_unlaunchable(claim, "NodeClassNotFound", f"EC2NodeClass {name} does not exist", final=True)


def _build_fleet_request(
    claim: NodeClaim, node_class: EC2NodeClass, facts: ControlPlaneFacts, fitted_templates: tuple[FittedTemplate, ...]
) -> FleetRequest:
    launch_offerings = [offer for fitted in fitted_templates for offer in fitted.launch_offerings]
    capacity_type = get_capacity_type(launch_offerings)
    configs = [
        LaunchTemplateConfig(
            launch_template_name=fitted.template.name,
            overrides=tuple(_build_override(offer, fitted) for offer in fitted.launch_offerings),
        )
        for fitted in fitted_templates
    ]
    is_relaxed = claim.meta.get_annotation(MIN_VALUES_RELAXED) == "true"
    return FleetRequest(
        client_token="",
        capacity=1,
        capacity_type=capacity_type,
        allocation_strategy=_choose_allocation_strategy(
            capacity_type, is_overlaid=any(offer.offering.is_overlaid for offer in launch_offerings)
        ),
        configs=tuple(sorted(configs, key=_get_config_name)),
        tags=build_launch_tags(claim.meta.get_label(NODEPOOL), node_class, facts.name),
        context="" if is_relaxed else node_class.context,
        reservation_type=get_reservation_type(launch_offerings[0].offering),
    )


def _choose_allocation_strategy(capacity_type: CapacityType, *, is_overlaid: bool) -> AllocationStrategy:
    """Return how EC2 chooses: by its own prices, or in the order of the priorities where NodeOverlays change prices."""
    if capacity_type == "spot":
        return "capacity-optimized-prioritized" if is_overlaid else "price-capacity-optimized"
    return "prioritized" if is_overlaid else "lowest-price"


def _get_config_name(config: LaunchTemplateConfig) -> str:
    return config.launch_template_name


def _build_override(offer: LaunchOffering, fitted: FittedTemplate) -> Override:
    return Override(
        instance_type=offer.instance_type.name,
        zone=offer.zone,
        subnet_id=offer.subnet_id,
        image_id=fitted.template.image_id,
        priority=offer.offering.billed_usd_per_hour,
    )


def _describe_min_values_shortfall(launch_offerings: Iterable[LaunchOffering], requirements: Requirements) -> str:
    """Return which minValues of *requirements* the types of *launch_offerings* do not meet; "" if all are met."""
    types = {offer.instance_type.name: offer.instance_type for offer in launch_offerings}
    for requirement in _list_min_values_requirements(requirements):
        values = {
            value for instance_type in types.values() for value in _list_allowed_values(instance_type, requirement)
        }
        if len(values) < (requirement.min_values or 0):
            return f"{requirement.key} has {len(values)} of {requirement.min_values} required values"
    return ""


def _select_types_for_min_values(types: Iterable[InstanceType], requirements: Requirements) -> list[str]:
    """Return the cheapest types (*types* is sorted by price) that together meet all minValues, as far as possible."""
    covered_values: dict[str, set[str]] = {item.key: set() for item in _list_min_values_requirements(requirements)}
    type_names: list[str] = []
    for instance_type in types:
        for requirement in _list_min_values_requirements(requirements):
            new_values = _list_allowed_values(instance_type, requirement) - covered_values[requirement.key]
            if new_values and len(covered_values[requirement.key]) < (requirement.min_values or 0):
                type_names.append(instance_type.name)
                for other_requirement in _list_min_values_requirements(requirements):
                    covered_values[other_requirement.key] |= _list_allowed_values(instance_type, other_requirement)
    return list(dict.fromkeys(type_names))


def _list_min_values_requirements(requirements: Requirements) -> list[Requirement]:
    return [requirement for requirement in requirements if requirement.min_values is not None]


def _list_allowed_values(instance_type: InstanceType, requirement: Requirement) -> frozenset[str]:
    return frozenset(value for value in instance_type.requirements[requirement.key].values if requirement.has(value))
