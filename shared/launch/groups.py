"""Claims without instance -> one CreateFleet per group of equal claims.

A group is written down, with its whole request, before it is sent: whoever finds it unanswered sends the same bytes
with the same ClientToken, and EC2 answers with the same instances. So a claim is in one open group at most, and only
the claims that an answered group left without an instance may join another.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from shared.launch.digest import digest
from shared.launch.offers import Offer, offers, preferred_capacity_type
from shared.launch.templates import Fitted, launch_tags, templates
from shared.model.action import LaunchInstances
from shared.model.catalogue import InstanceType
from shared.model.cluster import Cluster, LaunchGroup
from shared.model.ec2 import CapacityType, ClusterFacts, FleetRequest, LaunchTemplateConfig, Override
from shared.model.labels import LAUNCH_GROUP
from shared.model.nodeclasses import EC2NodeClass
from shared.model.nodes import NodeClaim

MAX_TYPES: Final = 60
MAX_OVERRIDES: Final = 300
MAX_CLAIMS: Final = 500
"""Of one group: EC2 takes 1,000 instances per request."""


class Unlaunchable(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that cannot be launched now; *final* says that waiting will not help it."""

    claim: NodeClaim
    reason: str
    """`InsufficientCapacity`, `NodeClassNotReady`, `NodeClassNotFound`, `UserDataInvalid`, `CatalogueMissing`."""
    message: str
    final: bool


class LaunchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to send, sorted by group name, and whom it does not help, sorted by claim."""

    launches: tuple[LaunchInstances, ...] = ()
    answered: tuple[LaunchGroup, ...] = ()
    """Groups whose answer was written down, but not told to every claim that it gave an instance."""
    unlaunchable: tuple[Unlaunchable, ...] = ()


def plan_launches(cluster: Cluster) -> LaunchPlan:
    """Answer how every claim without an instance gets one."""
    waiting = {
        claim.name: claim for claim in cluster.node_claims if not claim.is_launched() and not claim.is_deleting()
    }
    launches = [
        LaunchInstances(group=group, why="repeated: no answer was written down")
        for group in cluster.launch_groups
        if group.result is None and any(name in waiting for name in group.claims)
    ]
    answered = tuple(group for group in cluster.launch_groups if any(name in waiting for name in served(group)))
    settled = {name for launch in launches for name in launch.group.claims}
    settled |= {name for group in answered for name in served(group)}
    unlaunchable: list[Unlaunchable] = []
    equal: dict[str, tuple[Drafted, list[NodeClaim]]] = {}
    for name, claim in sorted(waiting.items()):
        if name in settled:
            continue
        drafted = _draft(claim, cluster)
        if isinstance(drafted, Unlaunchable):
            unlaunchable.append(drafted)
        else:
            equal.setdefault(drafted.key(), (drafted, []))[1].append(claim)
    for drafted, claims in equal.values():
        parts = (claims[start : start + MAX_CLAIMS] for start in range(0, len(claims), MAX_CLAIMS))
        launches.extend(_launch(drafted, part, cluster) for part in parts)
    return LaunchPlan(
        launches=tuple(sorted(launches, key=lambda launch: launch.group.name)),
        answered=answered,
        unlaunchable=tuple(unlaunchable),
    )


def served(group: LaunchGroup) -> tuple[str, ...]:
    """Answer the claims that EC2 gave an instance: the first ones, one for each."""
    return group.claims[: len(group.result.instances)] if group.result is not None else ()


class Drafted(msgspec.Struct, frozen=True, kw_only=True):
    """A request without its token, and the templates it needs."""

    request: FleetRequest
    fitted: tuple[Fitted, ...]

    def key(self) -> str:
        """Answer what equal requests have in common."""
        return digest(self.request)


def _draft(claim: NodeClaim, cluster: Cluster) -> Drafted | Unlaunchable:
    wanted = f"EC2NodeClass {claim.node_class.name}"
    node_class = next((one for one in cluster.node_classes if one.name == claim.node_class.name), None)
    if node_class is None or node_class.meta.deleted_at is not None:
        return _without_class(claim, cluster)
    if not node_class.is_ready():
        # Not resolved yet for this generation is no fault of the claim: it waits for the catalog function.
        return _refused(claim, "NodeClassNotReady", f"{wanted} is not Ready", final=node_class.is_current())
    if cluster.catalogue is None or cluster.facts is None:
        return _refused(claim, "CatalogueMissing", "there is no catalogue to launch from yet", final=False)
    found = offers(claim, cluster)
    capacity_type = preferred_capacity_type(found)
    chosen = cheapest_types([offer for offer in found if offer.offering.capacity_type == capacity_type])
    try:
        fitted = templates(claim, node_class, _types(chosen), cluster.facts, capacity_type)
    except ValueError as error:
        return _refused(claim, "UserDataInvalid", f"{wanted}: {error}", final=False)
    request = _request(claim, node_class, cluster.facts, capacity_type, fitted, chosen)
    if not request.configs:
        return _refused(claim, "InsufficientCapacity", "all requested instance types were unavailable", final=True)
    return Drafted(request=request, fitted=fitted)


def _without_class(claim: NodeClaim, cluster: Cluster) -> Unlaunchable:
    name = claim.node_class.name
    if any(one.kind == "EC2NodeClass" and one.name == name for one in cluster.problems):
        return _refused(claim, "NodeClassNotReady", f"EC2NodeClass {name} cannot be read", final=False)
    return _refused(claim, "NodeClassNotFound", f"EC2NodeClass {name} does not exist", final=True)


def _refused(claim: NodeClaim, reason: str, message: str, *, final: bool) -> Unlaunchable:
    return Unlaunchable(claim=claim, reason=reason, message=message, final=final)


def cheapest_types(some: list[Offer]) -> list[Offer]:
    """Keep the offers of the `MAX_TYPES` types that have the cheapest ones, cheapest first."""
    ordered = sorted(some, key=lambda offer: (offer.offering.price_usd_per_hour, offer.instance_type.name, offer.zone))
    names: dict[str, None] = {}
    for offer in ordered:
        names.setdefault(offer.instance_type.name)
    kept = set(list(names)[:MAX_TYPES])
    return [offer for offer in ordered if offer.instance_type.name in kept][:MAX_OVERRIDES]


def _types(some: Iterable[Offer]) -> list[InstanceType]:
    by_name = {offer.instance_type.name: offer.instance_type for offer in some}
    return list(by_name.values())


def _request(
    claim: NodeClaim,
    node_class: EC2NodeClass,
    facts: ClusterFacts,
    capacity_type: CapacityType,
    fitted: tuple[Fitted, ...],
    chosen: list[Offer],
) -> FleetRequest:
    configs = [
        LaunchTemplateConfig(
            launch_template_name=one.template.name,
            overrides=tuple(_override(offer, one) for offer in chosen if offer.instance_type in one.instance_types),
        )
        for one in fitted
    ]
    return FleetRequest(
        client_token="",
        capacity=1,
        capacity_type=capacity_type,
        allocation_strategy="price-capacity-optimized" if capacity_type == "spot" else "lowest-price",
        configs=tuple(sorted((config for config in configs if config.overrides), key=_config_name)),
        tags=launch_tags(claim, node_class, facts.name),
        context=node_class.context,
    )


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


def _launch(drafted: Drafted, claims: list[NodeClaim], cluster: Cluster) -> LaunchInstances:
    names = tuple(sorted(claim.name for claim in claims))
    answered = [group.name for group in cluster.launch_groups if set(group.claims) & set(names)]
    # EC2 remembers a token for ever: who was left without an instance must ask under another one.
    token = digest(sorted(claim.meta.uid for claim in claims), sorted(answered))
    tags = tuple(sorted((*drafted.request.tags, (LAUNCH_GROUP, token))))
    request = msgspec.structs.replace(drafted.request, client_token=token, capacity=len(claims), tags=tags)
    group = LaunchGroup(
        name=token,
        claims=names,
        request=request,
        templates=tuple(sorted((one.template for one in drafted.fitted), key=lambda template: template.name)),
        created_at=cluster.taken_at,
    )
    cheapest = min(
        (override for config in request.configs for override in config.overrides),
        key=lambda override: (override.priority or 0.0, override.instance_type, override.zone),
    )
    why = f"{len(names)} x {request.capacity_type}, from ${cheapest.priority:.4f}/h ({cheapest.instance_type})"
    return LaunchInstances(group=group, why=why)
