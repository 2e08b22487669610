"""Zonal shifts as the reason why pods cannot be scheduled: pods that need a shifted zone wait for its end."""

from collections.abc import Iterable

from msgspec.structs import replace

from shared.decide.scheduling.constraints.preference_relaxation import RelaxationStage
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.templates.node_claim_template import NodeClaimTemplate, TemplateRefusal
from shared.model.core.labels import ZONE
from shared.model.core.requirements import Requirements


def explain_zonal_shifts(
    refusal: TemplateRefusal, template: NodeClaimTemplate, pod_class: PodEquivalenceClass, stage: RelaxationStage
) -> TemplateRefusal:
    """Return *refusal* with the zonal shifts that may have caused it."""
    if not template.shifted_zones:
        return refusal
    joint_requirements = template.initial_state.requirements & stage.requirements
    if refusal.reason == "VolumeNotUsable":
        zones = _list_shifted_zones(template, pod_class.volume_alternatives)
    elif refusal.reason in ("NoOffering", "TopologyNotSatisfied"):
        zones = _list_shifted_zones(template, (joint_requirements,))
    else:
        return refusal
    texts = [
        f"zone {zone} ({template.shifted_zones[zone].zone_id}) has a zonal shift "
        f"{template.shifted_zones[zone].describe_end()}, so no nodes are launched there"
        for zone in zones
    ]
    return replace(refusal, message="; ".join((refusal.message, *texts)))


def _list_shifted_zones(template: NodeClaimTemplate, alternatives: Iterable[Requirements]) -> list[str]:
    """Return the shifted zones that one of *alternatives* allows."""
    allowed_zones = [alternative[ZONE] for alternative in alternatives if ZONE in alternative]
    return [
        zone
        for zone in template.shifted_zones
        if not allowed_zones or any(requirement.has(zone) for requirement in allowed_zones)
    ]
