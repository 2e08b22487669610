"""Neighborhood of a plan: the plan without a few of its nodes, whose pods are placed again in different ways.

The other placements are restored once. Trials that remove the same nodes follow each other, so that those of the few
nodes that stay are restored once for all of them. Each trial then changes only what its own pods need, and is rolled
back in time proportional to these changes.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.decide.scheduling.packing.new_node_placement import NodeAssignment
from shared.decide.scheduling.packing.node_costs import list_extra_costs
from shared.decide.scheduling.packing.plan_completion import (
    Plan,
    PlanStart,
    complete_plan,
    compute_node_costs,
    select_types_up_to,
)
from shared.decide.scheduling.packing.reserved_capacity import has_reserved_offerings
from shared.decide.scheduling.packing.rollback import begin_savepoint, roll_back
from shared.decide.scheduling.pods.stage_compiler import CompiledStage
from shared.decide.scheduling.search.guided_packing import GuidedPacking
from shared.decide.scheduling.templates.node_claim_template import NarrowedTemplate
from shared.model.core.resources import Vector
from shared.model.kubernetes.pod import Pod

TRIAL_STEPS: Final = 6
"""Steps of a trial in addition to its node trials: the savepoint, and the cost of the result."""
NodeCosts: TypeAlias = dict[tuple[NarrowedTemplate, Vector, Mask], float]
"""The cost of a node in USD per hour, by its state, the resources that are used and the possible instance types."""


class Neighborhood:
    """A packing that lacks some nodes of a plan, and trials that fill the gap."""

    def __init__(
        self,
        plan_start: PlanStart,
        plan: Plan,
        nodes: Iterable[OpenNodeClaim],
        stages: Mapping[CompiledStage, int],
        node_costs: NodeCosts,
    ) -> None:
        """Restore *plan* without *nodes*; *stages* are the relaxation stages of the compiled stages.

        *node_costs* are those computed so far by neighborhoods with the same start.
        """
        self._plan, self._stages, self._node_costs = plan, stages, node_costs
        self._packing, self._classes = plan_start.fork()
        self._pods_by_class = [pod_class.pods for pod_class in self._classes]
        self._guided_packing = GuidedPacking(self._packing)
        existing_count = len(self._packing.existing_nodes)
        self._missing_numbers = {existing_count + node.number for node in nodes}
        self._missing_assignments: list[NodeAssignment] = []
        self._numbers: dict[int, int | None] = {number: number for number in range(existing_count)}
        self._placed_names: set[str] = set()
        for assignment in plan.packing.assignments:
            if assignment[0] in self._missing_numbers:
                self._missing_assignments.append(assignment)
            else:
                self._restore(assignment)
        self._extra_costs = dict(zip(self._packing.templates, list_extra_costs(self._packing), strict=True))
        self._has_reserved_offerings = has_reserved_offerings(self._packing)
        self._first_number = len(self._packing.open_nodes)
        self._restored_cost = self._sum_costs(self._packing.open_nodes)
        self._counts_by_savepoint: list[tuple[int, int, int]] = []
        self._removed_numbers: frozenset[int] | None = None
        self._pods_to_place: list[list[Pod]] = []
        self._counting_groups = sorted({group for pods in self._classes for group in pods.counting_groups})
        self._trial_plan: Plan | None = None

    @property
    def steps(self) -> int:
        """Work spent so far, in trial placements on nodes."""
        return self._packing.node_trials

    def run_trial(
        self, removed_nodes: Iterable[OpenNodeClaim], max_cpu_milli: int | None, max_cost: float = math.inf
    ) -> Plan:
        """Return the plan in which only the pods of *removed_nodes* are placed in a different way.

        New nodes have at most *max_cpu_milli*, if first-fit can keep that. The plan changes with the next trial, and
        its cost is an upper bound until `keep_trial`. A plan that will cost at least *max_cost* is not completed.
        """
        packing = self._packing
        if self._trial_plan is not None:
            self._undo()
        removed_numbers = frozenset(len(packing.existing_nodes) + node.number for node in removed_nodes)
        if removed_numbers != self._removed_numbers:
            if self._removed_numbers is not None:
                self._undo()
            self._restore_other_nodes(removed_numbers)
        self._begin_savepoint()
        packing.node_trials += TRIAL_STEPS
        for pod_class, pods in zip(self._classes, self._pods_to_place, strict=True):
            pod_class.pods = pods
        packing.target_types = () if max_cpu_milli is None else select_types_up_to(packing, max_cpu_milli)
        self._trial_plan = complete_plan(packing, self._classes, lambda: self._compute_trial_cost() >= max_cost)
        self._trial_plan.cached_cost = self._compute_trial_cost()
        return self._trial_plan

    def keep_trial(self) -> Plan:
        """Return the plan of the last trial as a plan of its own; no more trials are possible.

        Raises:
            ValueError: there was no trial.
        """
        plan = self._trial_plan
        if plan is None:
            raise ValueError("there is no trial to keep: call run_trial first")
        self._trial_plan = None
        plan.packing.savepoints.clear()
        self._guided_packing.widen_nodes()
        plan.cached_cost = None
        return plan

    def _begin_savepoint(self) -> None:
        packing = self._packing
        begin_savepoint(packing, packing.max_new_nodes)
        packing.savepoints[-1].save_groups(packing.topology, self._counting_groups)
        self._counts_by_savepoint.append(
            (len(packing.assignments), packing.relaxed_preferences, len(packing.open_nodes))
        )

    def _undo(self) -> None:
        """Restore the state of the last savepoint."""
        self._trial_plan = None
        roll_back(self._packing)
        assignment_count, self._packing.relaxed_preferences, node_count = self._counts_by_savepoint.pop()
        del self._packing.assignments[assignment_count:]
        self._guided_packing.forget_nodes(node_count)

    def _restore_other_nodes(self, removed_numbers: frozenset[int]) -> None:
        """Restore the nodes of the neighborhood that are not in *removed_numbers*; the pods of these remain."""
        self._removed_numbers = removed_numbers
        self._begin_savepoint()
        names_before, self._placed_names = self._placed_names, set(self._placed_names)
        for number in self._missing_numbers:
            self._numbers.pop(number, None)
        for assignment in self._missing_assignments:
            if assignment[0] not in removed_numbers:
                self._restore(assignment)
        self._pods_to_place = [
            [pod for pod in pods if pod.name not in self._placed_names] for pods in self._pods_by_class
        ]
        self._placed_names = names_before

    def _restore(self, assignment: NodeAssignment) -> None:
        """Place the pods of *assignment* as in the plan, as far as that is still possible."""
        number, pods, aim, placed_pods = assignment
        packing, existing_count = self._packing, len(self._packing.existing_nodes)
        if number not in self._numbers:
            opened = self._guided_packing.reopen_node(self._plan.packing.open_nodes[number - existing_count])
            self._numbers[number] = None if opened is None else existing_count + opened
        place = self._numbers[number]
        if place is not None:
            placed_count = packing.place_on_node((place, pods, aim, placed_pods))
            self._placed_names.update(pod.name for pod in placed_pods[:placed_count])
            packing.relaxed_preferences += placed_count * self._stages[aim]

    def _compute_trial_cost(self) -> float:
        if self._has_reserved_offerings or self._packing.committed_capacity is not None:
            return compute_node_costs(self._packing)
        open_nodes = self._packing.open_nodes
        changed_nodes = {
            number: node
            for number, node in self._packing.savepoints[-1].open_nodes.items()
            if number < self._first_number
        }
        return (
            self._restored_cost
            - self._sum_costs(changed_nodes.values())
            + self._sum_costs(open_nodes[number] for number in changed_nodes)
            + self._sum_costs(open_nodes[self._first_number :])
        )

    def _sum_costs(self, nodes: Iterable[OpenNodeClaim]) -> float:
        """Return the cost of *nodes* in USD per hour, each with the cheapest instance type that holds its pods."""
        return sum([self._get_cost(node) for node in nodes if node.pods])

    def _get_cost(self, node: OpenNodeClaim) -> float:
        if node.ports:
            return self._compute_cost(node)
        key = (node.state, node.used, node.mask)
        cost = self._node_costs.get(key)
        if cost is None:
            cost = self._node_costs[key] = self._compute_cost(node)
        return cost

    def _compute_cost(self, node: OpenNodeClaim) -> float:
        mask = node.mask
        if node.template.pool.name not in self._packing.remaining_limits:
            mask |= node.template.filter_fitting_types(node.state.mask, node.used, tuple(node.ports))
        cheapest = node.template.type_index.find_cheapest(node.state.requirements, mask)
        price = math.inf if cheapest is None else cheapest.offering.price_usd_per_hour
        return price + self._extra_costs[node.template]
