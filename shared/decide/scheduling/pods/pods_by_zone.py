"""Zones of pending pods: the zones that are possible before any of the pods is placed."""

from collections import Counter
from collections.abc import Iterable

from shared.decide.scheduling.pods.equivalence_class import ANYWHERE, PodEquivalenceClass
from shared.decide.scheduling.topology.topology import Topology
from shared.model.core.labels import ZONE


def count_pods_by_zone(classes: Iterable[PodEquivalenceClass], topology: Topology) -> tuple[tuple[str, int], ...]:
    """Count pods by their only zone, sorted; `flexible`: several or all zones, `none`: contradictory constraints.

    Buffer pods are not counted.
    """
    zone_spread_groups = {
        number for number, group in enumerate(topology.groups) if group.rule.kind == "spread" and group.rule.key == ZONE
    }
    counts: Counter[str] = Counter()
    for pod_class in (
        equivalence_class for equivalence_class in classes if not equivalence_class.pods[0].is_buffer_pod()
    ):
        is_free = pod_class.volume_alternatives is ANYWHERE and zone_spread_groups.isdisjoint(
            pod_class.binding_groups[0]
        )
        counts[_find_required_zone(pod_class) if is_free else _find_zone(pod_class, topology, zone_spread_groups)] += (
            len(pod_class.pods)
        )
    return tuple(sorted(counts.items()))


def _find_required_zone(pod_class: PodEquivalenceClass) -> str:
    strict = pod_class.stages[0].strict
    return _describe_zones(None if strict[ZONE].complement else strict[ZONE].values) if ZONE in strict else "flexible"


def _find_zone(pod_class: PodEquivalenceClass, topology: Topology, zone_spread_groups: set[int]) -> str:
    zone_requirement = pod_class.stages[0].strict[ZONE]
    volume_requirements = [alternative[ZONE] for alternative in pod_class.volume_alternatives]
    zone_sets = [None if zone_requirement.complement else zone_requirement.values]
    if not any(item.complement for item in volume_requirements):
        zone_sets.append(
            frozenset(value for item in volume_requirements for value in item.values if zone_requirement.has(value))
        )
    group_numbers = sorted(zone_spread_groups.intersection(pod_class.binding_groups[0]))
    zone_sets += (
        topology.groups[number].find_open_domains(zone_requirement, int(number in pod_class.selecting_groups))
        for number in group_numbers
    )
    restricted_sets = [zones for zones in zone_sets if zones is not None]
    return _describe_zones(frozenset.intersection(*restricted_sets) if restricted_sets else None)


def _describe_zones(zones: frozenset[str] | None) -> str:
    if zones is None or len(zones) > 1:
        return "flexible"
    return next(iter(zones), "none")
