"""What one claim would be launched with: a request without its token, or why there is none."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from shared.launch.digest import digest
from shared.launch.offers import Offer, capacity_type_of, offers, preferred, reservation_type_of
from shared.launch.templates import Fitted, launch_tags, templates
from shared.model.cluster import Cluster
from shared.model.ec2 import (
    AllocationStrategy,
    CapacityType,
    ClusterFacts,
    FleetRequest,
    LaunchTemplateConfig,
    Override,
)
from shared.model.labels import MIN_VALUES_RELAXED, NODEPOOL
from shared.model.nodeclasses import EC2NodeClass
from shared.model.nodes import NodeClaim

MAX_TYPES: Final = 60
MAX_OVERRIDES: Final = 300
"""EC2 takes no more of them in one request."""


class Unlaunchable(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that cannot be launched now; *final* says that waiting will not help it."""

    claim: NodeClaim
    reason: str
    """`InsufficientCapacity`, `NodeClassNotReady`, `NodeClassNotFound`, `UserDataInvalid`, `CatalogueMissing`,
    `LimitExceeded`, `LaunchBreakerOpen`."""
    message: str
    final: bool


class Drafted(msgspec.Struct, frozen=True, kw_only=True):
    """A request without its token, and the templates it needs."""

    request: FleetRequest
    fitted: tuple[Fitted, ...]

    def key(self) -> str:
        """Answer what equal requests have in common."""
        return digest(self.request)

    def price(self) -> float:
        """Answer what the cheapest machine of the request costs, in USD per hour."""
        return min(override.priority or 0.0 for config in self.request.configs for override in config.overrides)


def draft(
    claim: NodeClaim, cluster: Cluster, counts: Mapping[str, int], *, steady: bool, uses_open_reservations: bool
) -> Drafted | Unlaunchable:
    """Answer how *claim* would be launched; *counts* are free addresses by subnet."""
    wanted = f"EC2NodeClass {claim.node_class.name}"
    node_class = next((one for one in cluster.node_classes if one.name == claim.node_class.name), None)
    if node_class is None or node_class.meta.deleted_at is not None:
        return _without_class(claim, cluster)
    if not node_class.is_ready():
        # Not resolved yet for this generation is no fault of the claim: it waits for the catalog function.
        return refused(claim, "NodeClassNotReady", f"{wanted} is not Ready", final=node_class.is_current())
    if cluster.catalogue is None or cluster.facts is None:
        return refused(claim, "CatalogueMissing", "there is no catalogue to launch from yet", final=False)
    chosen = cheapest_types(preferred(offers(claim, cluster, counts), steady=steady))
    try:
        fitted = templates(claim, node_class, chosen, cluster.facts, uses_open_reservations=uses_open_reservations)
    except ValueError as error:
        return refused(claim, "UserDataInvalid", f"{wanted}: {error}", final=False)
    if not fitted:
        return refused(claim, "InsufficientCapacity", "all requested instance types were unavailable", final=True)
    return Drafted(request=_request(claim, node_class, cluster.facts, fitted), fitted=fitted)


def refused(claim: NodeClaim, reason: str, message: str, *, final: bool) -> Unlaunchable:
    """Answer that *claim* cannot be launched."""
    return Unlaunchable(claim=claim, reason=reason, message=message, final=final)


def cheapest_types(some: Iterable[Offer]) -> list[Offer]:
    """Keep the offers of the `MAX_TYPES` types that have the cheapest ones, cheapest first."""
    ordered = sorted(some, key=Offer.rank)
    names: dict[str, None] = {}
    for offer in ordered:
        names.setdefault(offer.instance_type.name)
    kept = set(list(names)[:MAX_TYPES])
    return [offer for offer in ordered if offer.instance_type.name in kept][:MAX_OVERRIDES]


def _without_class(claim: NodeClaim, cluster: Cluster) -> Unlaunchable:
    name = claim.node_class.name
    if cluster.lacks("ec2nodeclasses.karpenter.k8s.aws"):
        return refused(claim, "NodeClassNotReady", f"EC2NodeClass {name} cannot be seen", final=False)
    if any(one.kind == "EC2NodeClass" and one.name == name for one in cluster.problems):
        return refused(claim, "NodeClassNotReady", f"EC2NodeClass {name} cannot be read", final=False)
    return refused(claim, "NodeClassNotFound", f"EC2NodeClass {name} does not exist", final=True)


def _request(
    claim: NodeClaim, node_class: EC2NodeClass, facts: ClusterFacts, fitted: tuple[Fitted, ...]
) -> FleetRequest:
    chosen = [offer for one in fitted for offer in one.offers]
    capacity_type = capacity_type_of(chosen)
    configs = [
        LaunchTemplateConfig(
            launch_template_name=one.template.name, overrides=tuple(_override(offer, one) for offer in one.offers)
        )
        for one in fitted
    ]
    is_relaxed = claim.meta.annotation(MIN_VALUES_RELAXED) == "true"
    return FleetRequest(
        client_token="",
        capacity=1,
        capacity_type=capacity_type,
        allocation_strategy=_strategy(capacity_type, is_overlaid=any(one.offering.is_overlaid for one in chosen)),
        configs=tuple(sorted(configs, key=_config_name)),
        tags=launch_tags(claim.meta.label(NODEPOOL), node_class, facts.name),
        context="" if is_relaxed else node_class.context,
        reservation_type=reservation_type_of(chosen[0].offering),
    )


def _strategy(capacity_type: CapacityType, *, is_overlaid: bool) -> AllocationStrategy:
    """Answer how EC2 chooses: by its own prices, or in our order where NodeOverlays know better."""
    if capacity_type == "spot":
        return "capacity-optimized-prioritized" if is_overlaid else "price-capacity-optimized"
    return "prioritized" if is_overlaid else "lowest-price"


def _config_name(config: LaunchTemplateConfig) -> str:
    return config.launch_template_name


def _override(offer: Offer, fitted: Fitted) -> Override:
    return Override(
        instance_type=offer.instance_type.name,
        zone=offer.zone,
        subnet_id=offer.subnet_id,
        image_id=fitted.template.image_id,
        priority=offer.offering.price_usd_per_hour,
    )
