"""Gangs in one zone: the zone in which all pods of a gang fit at the lowest price.

The zone is a requirement of the pods of the gang, so each algorithm and each other constraint of the pods holds.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from shared.decide.scheduling.constraints.preference_relaxation import combine_required_terms
from shared.decide.scheduling.templates.template_builder import build_template_requirements
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import WELL_KNOWN, ZONE
from shared.model.core.requirements import Requirements, build_label_requirements
from shared.model.decisions.placement import Placement
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.state.cluster_state import ClusterState
from shared.state.gangs.gang_claims import parse_planned_gangs
from shared.state.gangs.gangs import Gang

MAX_ZONE_TRIALS: Final = 12
"""Limit of the plans that compare zones in one run; each further gang is planned in one zone, which changes."""


def restrict_to_zones(
    cluster_state: ClusterState, gangs: Iterable[Gang], plan: Callable[[ClusterState], Placement]
) -> ClusterState:
    """Return *cluster_state* in which each of *gangs* that must be in one zone requires a zone.

    A gang that has nodes stays in their zone.
    """
    restricted_state, trial_count = cluster_state, 0
    for gang in gangs:
        if not gang.is_in_one_zone:
            continue
        zones = _find_current_zones(gang, cluster_state) or _list_zones(gang, cluster_state.snapshot)
        states = {zone: _restrict_gang(restricted_state, gang, zone) for zone in zones}
        if not states:
            continue
        chosen_zone = _choose_zone(gang, zones, cluster_state.taken_at)
        if len(zones) > 1 and trial_count + len(zones) <= MAX_ZONE_TRIALS:
            trial_count += len(zones)
            chosen_zone = min(zones, key=lambda zone: (*_compute_rank(plan(states[zone]), gang), zone))
        restricted_state = states[chosen_zone]
    return restricted_state


def _compute_rank(placement: Placement, gang: Gang) -> tuple[int, float]:
    """Return how many pods of *gang* do not fit, and the price of all new nodes."""
    names = {pod.name for pod in gang.pods}
    return sum(item.pod in names for item in placement.unschedulable), placement.price_usd_per_hour


def _find_current_zones(gang: Gang, cluster_state: ClusterState) -> tuple[str, ...]:
    """Return the zone of the nodes that the gang has, or that are in flight for it; () if there are none."""
    node_names = {pod.node_name for pod in gang.pods if pod.node_name}
    zones = [state.meta.get_label(ZONE) for state in cluster_state.nodes if state.name in node_names]
    claims = (claim for claim in cluster_state.snapshot.node_claims if not claim.is_deleting())
    zones += [_find_zone(claim) for claim in claims if gang.name in parse_planned_gangs(claim)]
    return tuple(sorted({zone for zone in zones if zone})[:1])


def _find_zone(claim: NodeClaim) -> str:
    requirement = claim.requirements[ZONE]
    return claim.meta.get_label(ZONE) or (min(requirement.values) if not requirement.complement else "")


def _choose_zone(gang: Gang, zones: tuple[str, ...], now: datetime) -> str:
    """Return the zone of a gang whose zones are not compared; it varies, because the gang may not fit in each zone."""
    text = f"{gang.name} {int(now.timestamp()) // 60}"
    return zones[int(sha256(text.encode()).hexdigest(), 16) % len(zones)]


def _list_zones(gang: Gang, cluster: ClusterSnapshot) -> tuple[str, ...]:
    """Return the zones of nodes, and those in which a NodePool that the pods can use may launch nodes."""
    types = cluster.catalog.instance_types if cluster.catalog is not None else ()
    offered_zones = {offering.zone for instance_type in types for offering in instance_type.offerings}
    pool_requirements = [build_template_requirements(pool) for pool in cluster.node_pools]
    usable_requirements = [
        requirements & term
        for spec in {pod.spec for pod in gang.pods}
        for term in combine_required_terms(spec)
        for requirements in pool_requirements
        if requirements.is_compatible(term, WELL_KNOWN)
    ]
    zones = {zone for zone in offered_zones if any(item[ZONE].has(zone) for item in usable_requirements)}
    zones = zones or offered_zones
    return tuple(sorted(zones | {zone for node in cluster.nodes if (zone := node.meta.get_label(ZONE))}))


def _restrict_gang(cluster_state: ClusterState, gang: Gang, zone: str) -> ClusterState:
    names, cluster = {pod.name for pod in gang.pods if not pod.node_name}, cluster_state.snapshot
    requirement, restricted_specs = build_label_requirements({ZONE: zone}), dict[PodSpec, PodSpec]()
    pods = tuple(
        _restrict_pod(pod, requirement, restricted_specs) if pod.name in names else pod for pod in cluster.pods
    )
    return ClusterState(replace(cluster, pods=pods))


def _restrict_pod(pod: Pod, zone: Requirements, restricted_specs: dict[PodSpec, PodSpec]) -> Pod:
    spec = pod.spec
    if spec not in restricted_specs:
        terms = tuple(term & zone for term in spec.required_terms) or (zone,)
        restricted_specs[spec] = replace(spec, required_terms=terms)
    return replace(pod, spec=restricted_specs[spec])
