"""Items of the packing problem: equal pods, in a fixed zone where pods must be spread evenly over zones."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import msgspec

from shared.decide.scheduling.constraints.topology_constraint import TopologyConstraint
from shared.decide.scheduling.optimization.linear_programming.simplex import Amounts
from shared.decide.scheduling.packing.first_fit import FirstFitPacking
from shared.decide.scheduling.packing.launchable_templates import (
    LaunchableTemplates,
    drop_stages_before,
    find_launchable_stage,
    find_launchable_templates,
)
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.model.core.labels import HOSTNAME, ZONE
from shared.model.core.requirements import ANYTHING, Requirement, Requirements

_MIN_SIZE: Final = 1e-6
UNLIMITED_COUNT: Final = 1 << 30
NO_HOST_GROUP: Final = -1
"""Host group of an item that has no maximum number of pods per node."""
HostLimit: TypeAlias = tuple[int, int]
"""Maximum number of pods of a host group on one node, and the number of the group."""


class Item(msgspec.Struct, kw_only=True, eq=False):
    """*count* equal pods: in one zone, or in any zone if *zone* is empty."""

    class_number: int
    """Number of the pod class."""
    pods: PodEquivalenceClass
    zone: str
    count: int
    max_per_node: int
    """Maximum number of pods on one node, summed over all items of the *host_group*."""
    host_group: int
    launchable: LaunchableTemplates
    scaled_need: Amounts

    @property
    def size(self) -> float:
        """Size of one pod: scaled cpu plus scaled memory; always positive, even if the pod requests neither."""
        return max(self.scaled_need[0] + self.scaled_need[1], _MIN_SIZE)


def build_items(
    packing: FirstFitPacking,
    classes: Iterable[PodEquivalenceClass],
    closed: frozenset[int] = frozenset(),
    *,
    everywhere: bool = False,
) -> list[Item]:
    """Return the items of those *classes* that can be modeled, not scaled yet.

    *closed* are the numbers of templates that launch no more nodes. With *everywhere*, classes that are spread over
    zones get at least one pod in each zone, regardless of existing pods.
    """
    item_builder = _ItemBuilder(packing, closed, int(everywhere))
    classes = (
        drop_stages_before(relaxed_class, find_launchable_stage(packing, relaxed_class)) for relaxed_class in classes
    )
    return [
        item
        for number, pod_class in enumerate(classes)
        if pod_class.pods
        for item in item_builder.build_class_items(number, pod_class)
    ]


class _ItemBuilder:
    """Builds the items of one class after another.

    Pods that were assigned to zones count for the classes that follow.
    """

    def __init__(self, packing: FirstFitPacking, closed: frozenset[int], min_per_zone: int) -> None:
        self._packing, self._closed, self._min_per_zone = packing, closed, min_per_zone
        groups = enumerate(packing.topology.groups)
        self._counts_by_group = {
            number: dict(group.counts)
            for number, group in groups
            if group.rule.kind == "spread" and group.rule.key == ZONE
        }

    def build_class_items(self, number: int, pods: PodEquivalenceClass) -> Iterator[Item]:
        if pods.device_demand is not None:
            return
        bound_groups = [(number, self._packing.topology.groups[number]) for number in pods.binding_groups[0]]
        host_rules = [(number, group.rule) for number, group in bound_groups if group.rule.key == HOSTNAME]
        zonal_groups = [(number, group) for number, group in bound_groups if group.rule.key == ZONE]
        is_supported = len(host_rules) + len(zonal_groups) == len(bound_groups) and len(pods.volume_alternatives) == 1
        if not is_supported or len(zonal_groups) > 1 or any(group.rule.kind != "spread" for _, group in zonal_groups):
            return
        if any(rule.kind == "affinity" for _, rule in host_rules):
            return
        host_limit = min(
            (_compute_host_limit(group, rule, pods) for group, rule in host_rules),
            default=(UNLIMITED_COUNT, NO_HOST_GROUP),
        )
        launchable = self._find_launchable(pods)
        if not launchable:
            return
        if not zonal_groups:
            yield self._build_item(number, pods, "", len(pods.pods), host_limit, launchable)
            return
        yield from self._build_zonal_items(number, pods, host_limit, launchable, zonal_groups[0][0])

    def _build_zonal_items(
        self,
        number: int,
        pods: PodEquivalenceClass,
        host_limit: HostLimit,
        launchable: LaunchableTemplates,
        zonal_group: int,
    ) -> Iterator[Item]:
        counts = self._counts_by_group[zonal_group]
        launchable_by_zone = {zone: self._narrow_to_zone(launchable, zone) for zone in sorted(counts)}
        open_zones = {zone: zonal_templates for zone, zonal_templates in launchable_by_zone.items() if zonal_templates}
        if not open_zones:
            return
        if zonal_group not in pods.selecting_groups:
            yield self._build_item(number, pods, "", len(pods.pods), host_limit, launchable)
            return
        count_by_zone = dict.fromkeys(open_zones, 0)
        for _ in pods.pods:
            least_zone = min(count_by_zone, key=lambda zone: (counts[zone], zone))
            count_by_zone[least_zone] += 1
            counts[least_zone] += 1
        for group_counts in self._find_counting_groups(pods, zonal_group):
            for zone, count in count_by_zone.items():
                group_counts[zone] = group_counts.get(zone, 0) + count
        for zone, count in count_by_zone.items():
            if count := max(count, self._min_per_zone):
                yield self._build_item(number, pods, zone, count, host_limit, open_zones[zone])

    def _find_counting_groups(self, pods: PodEquivalenceClass, zonal_group: int) -> Iterator[dict[str, int]]:
        """Yield the zone counts of the other groups that are certain to count such pods."""
        for number in pods.counting_groups:
            rule = self._packing.topology.groups[number].rule
            is_sure = rule.counts_elsewhere or ANYTHING in rule.terms or number in pods.binding_groups[0]
            if number != zonal_group and number in self._counts_by_group and is_sure:
                yield self._counts_by_group[number]

    def _build_item(
        self,
        number: int,
        pods: PodEquivalenceClass,
        zone: str,
        count: int,
        host_limit: HostLimit,
        launchable: LaunchableTemplates,
    ) -> Item:
        max_per_node, group = host_limit
        return Item(
            class_number=number,
            pods=pods,
            zone=zone,
            count=count,
            max_per_node=max_per_node,
            host_group=group,
            launchable=launchable,
            scaled_need=(),
        )

    def _find_launchable(self, pods: PodEquivalenceClass) -> LaunchableTemplates:
        return find_launchable_templates(self._packing, pods, self._closed)

    def _narrow_to_zone(self, launchable: LaunchableTemplates, zone: str) -> LaunchableTemplates:
        narrowed_templates = (
            (number, self._packing.templates[number].narrow(state, build_zone_requirements(zone)))
            for number, state in launchable
        )
        return tuple((number, state) for number, state in narrowed_templates if state is not None)


def _compute_host_limit(group: int, rule: TopologyConstraint, pods: PodEquivalenceClass) -> HostLimit:
    """Return how many such pods a new node may have by *rule*, with the number of the group."""
    if rule.kind == "spread":
        return (rule.max_skew, group) if group in pods.selecting_groups else (UNLIMITED_COUNT, NO_HOST_GROUP)
    return (
        (1, group)
        if group in pods.counting_groups or group in pods.selecting_groups
        else (UNLIMITED_COUNT, NO_HOST_GROUP)
    )


def build_zone_requirements(zone: str) -> Requirements:
    """Return the requirements that fix a node's zone to *zone*; no requirement if *zone* is empty."""
    return Requirements(items=(Requirement(key=ZONE, values=frozenset((zone,))),)) if zone else ANYTHING
