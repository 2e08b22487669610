"""Guided packing: opens and fills nodes according to a solution of the packing problem.

Every pod still passes all checks of the packing. Pods that do not fit as planned are placed like any other pod; so a
bad solution costs money, but cannot violate a constraint.
"""

from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Final

import msgspec

from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.nodes.commitment_manager import CommitmentManager
from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.decide.scheduling.nodes.spot_share_quota import (
    exclude_spot,
    is_spot_possible,
)
from shared.decide.scheduling.optimization.bin_types import BinType
from shared.decide.scheduling.optimization.items import build_zone_requirements
from shared.decide.scheduling.optimization.packing_problem import PackingProblem, build_packing_problem
from shared.decide.scheduling.optimization.solver import PackingSolution, solve_packing_problem
from shared.decide.scheduling.packing.first_fit import FirstFitPacking
from shared.decide.scheduling.packing.launchable_templates import drop_stages_before, find_launchable_stage
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.search.type_widening import widen_instance_types
from shared.decide.scheduling.templates.node_claim_template import NarrowedTemplate, NodeClaimTemplate
from shared.model.core.labels import CAPACITY_TYPE, HOSTNAME, RESERVED, ZONE
from shared.model.core.requirements import ANYTHING, Requirements, build_label_requirements
from shared.model.karpenter.spot_share import NOT_SPOT, ONLY_SPOT
from shared.model.kubernetes.pod import Pod

MAX_SOLVES: Final = 6
"""Maximum number of times that the problem is solved again because NodePool limits prevented nodes."""
MAX_SOLVES_WITHIN_LIMITS: Final = 3
"""Maximum number of times that it is solved for nodes within these limits; after that, their NodePools are excluded."""
RETRY_EFFORT_STEPS: Final = 8_000
"""Effort of solving the problem again."""


class RelaxedTypeLimit(msgspec.Struct, kw_only=True, eq=False):
    """A node that is restricted to the capacity type that it was selected for.

    Without the restriction, a later pod could make the node expensive.
    """

    node: OpenNodeClaim
    state: NarrowedTemplate
    """The state of the node if only its pods restricted it."""


class GuidedPacking:
    """Opens nodes in a packing, and remembers how their restrictions can be relaxed at the end."""

    def __init__(self, packing: FirstFitPacking, *, prefers_spot: bool = False) -> None:
        """Start from the current state of *packing*.

        With *prefers_spot*, on-demand nodes of a solution are opened as Spot nodes as far as Spot shares allow it.
        """
        self._packing, self._prefers_spot = packing, prefers_spot
        self._type_limits: dict[int, RelaxedTypeLimit] = {}
        self._closed_templates: set[int] = set()

    def follow_solution(
        self, classes: list[PodEquivalenceClass], problem: PackingProblem, solution: PackingSolution
    ) -> None:
        """Open the nodes of *solution*, and place the pods that they are for; pods that do not fit stay in *classes*.

        If the limits of a NodePool prevent some of the nodes, the problem is solved again within what the limits leave.
        A NodePool in which no more node was opened is excluded.
        """
        limited_templates: set[int] = set()
        for attempt in range(MAX_SOLVES):
            opened_before = len(self._packing.open_nodes)
            slots, refused_templates = self._open_nodes(problem, solution)
            self._place_on_planned_nodes(classes, problem, slots)
            self._packing.close_empty_nodes()
            limited_templates |= refused_templates
            if limited_templates <= self._closed_templates or not any(pod_class.pods for pod_class in classes):
                return
            grown_templates = (
                {node.template for node in self._packing.open_nodes[opened_before:]}
                if attempt < MAX_SOLVES_WITHIN_LIMITS
                else set[NodeClaimTemplate]()
            )
            self._closed_templates |= {
                number for number in limited_templates if self._packing.templates[number] not in grown_templates
            }
            problem = build_packing_problem(self._packing, classes, frozenset(self._closed_templates))
            solution = solve_packing_problem(problem, effort=RETRY_EFFORT_STEPS)[0]

    def open_covered_nodes(
        self,
        classes: list[PodEquivalenceClass],
        problem: PackingProblem,
        solution: PackingSolution,
        commitment_manager: CommitmentManager,
    ) -> None:
        """Open the nodes of *solution* for which commitments pay nearly all, and place the pods that they are for.

        What they pay is used up in *commitment_manager*.
        """
        slots: dict[int, list[tuple[int, int]]] = {}
        for selected in solution.selected_patterns:
            bin_type = problem.bin_types[selected.pattern.bin_type]
            type_index = self._packing.templates[bin_type.template].type_index
            for _ in range(selected.count):
                if not commitment_manager.reserve_type(type_index, bin_type.bit, bin_type.zone):
                    break
                number = self._open_bin(
                    bin_type, is_zonal=any(problem.items[item].zone for item, _ in selected.pattern.pods)
                )
                if number is None:
                    break
                for item, count in selected.pattern.pods:
                    slots.setdefault(item, []).append((number, count))
        self._place_on_planned_nodes(classes, problem, slots)
        self._packing.close_empty_nodes()

    def widen_nodes(self) -> None:
        """Let each node be any instance type that holds its pods and costs little more than the cheapest that does."""
        if all(group.rule.key in (HOSTNAME, ZONE) for group in self._packing.topology.groups):
            self._narrow_type_limits()
            for type_limit in self._type_limits.values():
                _relax_type_limit(type_limit)
        widen_instance_types(self._packing)

    def reopen_node(self, node: OpenNodeClaim) -> int | None:
        """Open an empty node like *node*, of its cheapest instance type.

        Return its number, None if it cannot be opened.
        """
        template, node_requirements = node.template, node.state.requirements
        priced = template.type_index.find_cheapest(node_requirements, node.mask)
        state: NarrowedTemplate | None = template.initial_state
        if state is not None and ZONE in node_requirements:
            state = template.narrow(state, Requirements(items=(node_requirements[ZONE],)))
        if state is None or priced is None:
            return None
        capacity_type = priced.offering.capacity_type
        return self._open_node(
            template,
            state,
            build_label_requirements({CAPACITY_TYPE: capacity_type}) if capacity_type != RESERVED else ANYTHING,
            priced.bit,
        )

    def forget_nodes(self, first_number: int) -> None:
        """Forget the nodes from *first_number* on, which were closed again."""
        for number in [number for number in self._type_limits if number >= first_number]:
            del self._type_limits[number]

    def _open_nodes(
        self, problem: PackingProblem, solution: PackingSolution
    ) -> tuple[dict[int, list[tuple[int, int]]], set[int]]:
        """Open the nodes of *solution*.

        Return, by item, pairs of a node and the number of pods that it is for; and the templates that limits refused.
        """
        node_counts_by_item: dict[int, list[tuple[int, int]]] = {}
        refused_templates: set[int] = set()
        for selected in solution.selected_patterns:
            bin_type = problem.bin_types[selected.pattern.bin_type]
            is_zonal = any(problem.items[item].zone for item, _ in selected.pattern.pods)
            for _ in range(selected.count):
                number = self._open_bin(bin_type, is_zonal=is_zonal)
                if number is None:
                    refused_templates.add(bin_type.template)
                    break
                for item, count in selected.pattern.pods:
                    node_counts_by_item.setdefault(item, []).append((number, count))
        return node_counts_by_item, refused_templates

    def _open_bin(self, bin_type: BinType, *, is_zonal: bool) -> int | None:
        template = self._packing.templates[bin_type.template]
        state = (
            template.narrow(template.initial_state, build_zone_requirements(bin_type.zone))
            if is_zonal
            else template.initial_state
        )
        return (
            None
            if state is None
            else self._open_node(
                template, state, build_label_requirements({CAPACITY_TYPE: bin_type.offering_kind[0]}), bin_type.bit
            )
        )

    def _open_node(
        self, template: NodeClaimTemplate, state: NarrowedTemplate, type_requirements: Requirements, mask: Mask
    ) -> int | None:
        """Open a node of the offerings that *type_requirements* allow; without Spot if its share is used up."""
        alternatives = [type_requirements]
        if template.spot_share is not None:
            alternatives = [*([ONLY_SPOT] if self._prefers_spot else []), type_requirements, NOT_SPOT]
        numbers = (self._open_node_as(template, state, requirements, mask) for requirements in alternatives)
        return next((number for number in numbers if number is not None), None)

    def _open_node_as(
        self, template: NodeClaimTemplate, state: NarrowedTemplate, type_requirements: Requirements, mask: Mask
    ) -> int | None:
        narrowed = template.narrow(state, type_requirements)
        if narrowed is None:
            return None
        if state.min_value_requirements:
            mask = template.type_index.filter_fitting(
                narrowed.mask, template.type_index.allocatable[mask.bit_length() - 1]
            )
        number = self._packing.open_node(template, narrowed, mask)
        if number is not None:
            relaxed_state = state
            if template.spot_share is not None and not is_spot_possible(narrowed):
                relaxed_state = exclude_spot(template, state) or narrowed  # it does not count as Spot
            self._type_limits[number] = RelaxedTypeLimit(node=self._packing.open_nodes[number], state=relaxed_state)
        return number

    def _place_on_planned_nodes(
        self,
        classes: list[PodEquivalenceClass],
        problem: PackingProblem,
        node_counts_by_item: dict[int, list[tuple[int, int]]],
    ) -> None:
        """Place pods on the nodes that are planned for them.

        Pods with topology constraints are placed first, because others might block them.
        """
        items_by_class: dict[int, list[int]] = {}
        for index in sorted(node_counts_by_item):
            items_by_class.setdefault(problem.items[index].class_number, []).append(index)
        for number, pod_class in sorted(
            enumerate(classes), key=lambda pair: (not any(pair[1].binding_groups), pair[0])
        ):
            node_counts_by_zone = [node_counts_by_item[index] for index in items_by_class.get(number, ())]
            if node_counts_by_zone:
                pod_class.pods = self._place_class(pod_class, node_counts_by_zone)

    def _place_class(self, pods: PodEquivalenceClass, node_counts_by_zone: list[list[tuple[int, int]]]) -> list[Pod]:
        stage = find_launchable_stage(self._packing, pods)
        pods, placed_count = drop_stages_before(pods, stage), 0
        node_counts = (
            _alternate_zones(node_counts_by_zone)
            if pods.binding_groups[0]
            else chain.from_iterable(node_counts_by_zone)
        )
        for number, count in node_counts:
            if placed_count == len(pods.pods):
                break
            placed_count += self._packing.place_on_open_node(
                number, pods, pods.pods[placed_count : placed_count + count]
            )
        self._packing.relaxed_preferences += stage * placed_count
        return pods.pods[placed_count:]

    def _narrow_type_limits(self) -> None:
        """Narrow the relaxed states by the requirements of their pods.

        A pod that could be in several places (volume alternatives) keeps its node as it is.
        """
        existing_count = len(self._packing.existing_nodes)
        for number, pods, aim, _ in self._packing.assignments:
            type_limit = self._type_limits.get(number - existing_count)
            if type_limit is not None:
                has_one_alternative = len(pods.volume_alternatives) == 1
                placement_requirements = (
                    pods.volume_alternatives[0] if has_one_alternative else type_limit.node.state.requirements
                )
                for requirements in (aim.stage.requirements, placement_requirements):
                    type_limit.state = (
                        type_limit.node.template.narrow(type_limit.state, requirements) or type_limit.state
                    )


def _alternate_zones(node_counts_by_zone: list[list[tuple[int, int]]]) -> Iterator[tuple[int, int]]:
    """Yield one node per pod, alternating over the zones, which keeps the zones balanced."""
    singles = [[(node, 1) for node, count in zone_counts for _ in range(count)] for zone_counts in node_counts_by_zone]
    return (node for node_counts in zip_longest(*singles) for node in node_counts if node is not None)


def _relax_type_limit(type_limit: RelaxedTypeLimit) -> None:
    """Allow all capacity types again for the node."""
    node = type_limit.node
    if not node.pods or node.devices is not None:
        return
    zone = node.state.requirements[ZONE]
    relaxed_state = (
        node.template.narrow(type_limit.state, Requirements(items=(zone,)))
        if ZONE in node.state.requirements
        else type_limit.state
    )
    if relaxed_state is not None and relaxed_state.mask & node.mask == node.mask and not node.is_relaxed:
        node.state = relaxed_state
