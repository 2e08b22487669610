"""What one claim would be launched with: a request without its token, or why there is none."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from shared.launch.digest import digest
from shared.launch.offers import Offer, capacity_type_of, offers, preferred, reservation_type_of
from shared.launch.templates import Fitted, launch_tags, templates
from shared.model.catalogue import InstanceType
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
from shared.model.requirements import Requirement, Requirements

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
    node_class_hash: str

    def key(self) -> str:
        """Answer what equal requests have in common."""
        return digest(self.request)

    def price(self) -> float:
        """Answer what the cheapest machine of the request costs, in USD per hour."""
        return min(override.priority or 0.0 for config in self.request.configs for override in config.overrides)


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """How one claim is launched, besides what it says itself."""

    steady: bool = False
    """On-demand comes before spot."""
    uses_open_reservations: bool = False
    best_effort: bool = False
    """minValues that one request cannot name are passed over."""


def draft(claim: NodeClaim, cluster: Cluster, counts: Mapping[str, int], wishes: Wishes) -> Drafted | Unlaunchable:
    """Answer how *claim* would be launched; *counts* are free addresses by subnet."""
    node_class = next((one for one in cluster.node_classes if one.name == claim.node_class.name), None)
    if node_class is None or node_class.meta.deleted_at is not None:
        return _without_class(claim, cluster)
    if not node_class.is_ready():
        # Not resolved yet for this generation is no fault of the claim: it waits for the catalog function.
        return refused(
            claim, "NodeClassNotReady", f"EC2NodeClass {node_class.name} is not Ready", final=node_class.is_current()
        )
    if cluster.catalogue is None or cluster.facts is None:
        return refused(claim, "CatalogueMissing", "there is no catalogue to launch from yet", final=False)
    every = offers(claim, cluster, counts)
    short = shortfall(widest(every, claim.requirements), claim.requirements)
    if every and short and not wishes.best_effort and claim.meta.annotation(MIN_VALUES_RELAXED) != "true":
        message = f"minValues are not met by what can be asked for in one request: {short}"
        return refused(claim, "InsufficientCapacity", message, final=True)
    chosen = widest(preferred(every, steady=wishes.steady), claim.requirements)
    return _drafted(claim, node_class, chosen, cluster.facts, wishes)


def _drafted(
    claim: NodeClaim, node_class: EC2NodeClass, chosen: list[Offer], facts: ClusterFacts, wishes: Wishes
) -> Drafted | Unlaunchable:
    try:
        fitted = templates(claim, node_class, chosen, facts, uses_open_reservations=wishes.uses_open_reservations)
    except ValueError as error:
        return refused(claim, "UserDataInvalid", f"EC2NodeClass {node_class.name}: {error}", final=False)
    if not fitted:
        return refused(claim, "InsufficientCapacity", "all requested instance types were unavailable", final=True)
    request = _request(claim, node_class, facts, fitted)
    return Drafted(request=request, fitted=fitted, node_class_hash=node_class.hashed)


def refused(claim: NodeClaim, reason: str, message: str, *, final: bool) -> Unlaunchable:
    """Answer that *claim* cannot be launched."""
    return Unlaunchable(claim=claim, reason=reason, message=message, final=final)


def widest(some: Iterable[Offer], wanted: Requirements) -> list[Offer]:
    """Keep the offers of `MAX_TYPES` types, the cheapest, and of these `MAX_OVERRIDES`; cheapest first.

    A dearer type that brings a value that minValues miss goes before a cheaper one that brings none, and a type's
    cheapest offer before another's second.
    """
    ordered = sorted(some, key=Offer.rank)
    first: dict[str, Offer] = {}
    for offer in ordered:
        first.setdefault(offer.instance_type.name, offer)
    needed = _needed((offer.instance_type for offer in first.values()), wanted)
    names = list(dict.fromkeys((*needed, *first)))[:MAX_TYPES]
    kept = set(names)
    leading = {id(offer) for offer in first.values()}
    others = (one for one in ordered if one.instance_type.name in kept and id(one) not in leading)
    return sorted([*(first[name] for name in names), *others][:MAX_OVERRIDES], key=Offer.rank)


def shortfall(some: Iterable[Offer], wanted: Requirements) -> str:
    """Answer which of the minValues that are *wanted* the types of *some* do not have, "" if they have all."""
    types = {offer.instance_type.name: offer.instance_type for offer in some}
    for item in _minima(wanted):
        have = {value for one in types.values() for value in _values(one, item)}
        if len(have) < (item.min_values or 0):
            return f"{item.key} has {len(have)} of at least {item.min_values} values"
    return ""


def _needed(types: Iterable[InstanceType], wanted: Requirements) -> list[str]:
    """Answer the cheapest types, which come first, that together have all minimum values, as far as any have."""
    seen: dict[str, set[str]] = {item.key: set() for item in _minima(wanted)}
    found: list[str] = []
    for one in types:
        for item in _minima(wanted):
            new = _values(one, item) - seen[item.key]
            if new and len(seen[item.key]) < (item.min_values or 0):
                found.append(one.name)
                for other in _minima(wanted):
                    seen[other.key] |= _values(one, other)
    return list(dict.fromkeys(found))


def _minima(wanted: Requirements) -> list[Requirement]:
    return [item for item in wanted if item.min_values is not None]


def _values(one: InstanceType, item: Requirement) -> frozenset[str]:
    return frozenset(value for value in one.requirements[item.key].values if item.has(value))


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
