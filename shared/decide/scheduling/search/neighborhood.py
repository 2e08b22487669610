"""Neighborhood of a plan: the plan without a few of its nodes, whose pods are placed again in different ways.

The other placements are restored once. Each trial then changes only what its own pods need, and is rolled back in time
proportional to these changes.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final

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

TRIAL_STEPS: Final = 10
"""Steps of a trial in addition to its node trials: the savepoint, and the cost of the result."""


class Neighborhood:
    """A packing that lacks some nodes of a plan, and trials that fill the gap."""

    def __init__(
        self, plan_start: PlanStart, plan: Plan, nodes: Iterable[OpenNodeClaim], stages: Mapping[CompiledStage, int]
    ) -> None:
        """Restore *plan* without *nodes*; *stages* are the relaxation stages of the compiled stages."""
        self._plan, self._stages = plan, stages
        self._packing, self._classes = plan_start.fork()
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
        self._remaining_pods = [
            [pod for pod in pod_class.pods if pod.name not in self._placed_names] for pod_class in self._classes
        ]
        self._extra_costs = dict(zip(self._packing.templates, list_extra_costs(self._packing), strict=True))
        self._has_reserved_offerings = has_reserved_offerings(self._packing)
        self._first_number = len(self._packing.open_nodes)
        self._restored_cost = self._sum_costs(self._packing.open_nodes)
        self._restored_counts = len(self._packing.assignments), self._packing.relaxed_preferences
        self._counting_groups = sorted({group for pods in self._classes for group in pods.counting_groups})
        self._trial_plan: Plan | None = None

    @property
    def steps(self) -> int:
        """Work spent so far, in trial placements on nodes."""
        return self._packing.node_trials

    def run_trial(self, removed_nodes: Iterable[OpenNodeClaim], max_cpu_milli: int | None) -> Plan:
        """Return the plan in which only the pods of *removed_nodes* are placed in a different way.

        New nodes have at most *max_cpu_milli*, if first-fit can keep that. The plan changes with the next trial, and
        its cost is an upper bound until `keep_trial`.
        """
        self._undo_trial()
        packing = self._packing
        begin_savepoint(packing, packing.max_new_nodes)
        packing.savepoints[-1].save_groups(packing.topology, self._counting_groups)
        packing.node_trials += TRIAL_STEPS
        self._restore_missing_nodes({len(packing.existing_nodes) + node.number for node in removed_nodes})
        packing.target_types = () if max_cpu_milli is None else select_types_up_to(packing, max_cpu_milli)
        self._trial_plan = complete_plan(packing, self._classes)
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

    def _undo_trial(self) -> None:
        if self._trial_plan is None:
            return
        self._trial_plan = None
        roll_back(self._packing)
        assignment_count, self._packing.relaxed_preferences = self._restored_counts
        del self._packing.assignments[assignment_count:]
        self._guided_packing.forget_nodes(self._first_number)

    def _restore_missing_nodes(self, removed_numbers: set[int]) -> None:
        """Restore the nodes of the neighborhood that stay; the pods of the others remain."""
        names_before = self._placed_names
        self._placed_names = set()
        for number in self._missing_numbers:
            self._numbers.pop(number, None)
        for assignment in self._missing_assignments:
            if assignment[0] not in removed_numbers:
                self._restore(assignment)
        for pod_class, pods in zip(self._classes, self._remaining_pods, strict=True):
            pod_class.pods = (
                [pod for pod in pods if pod.name not in self._placed_names] if self._placed_names else list(pods)
            )
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
        if self._has_reserved_offerings:
            return compute_node_costs(self._packing)
        changed_nodes = self._packing.savepoints[-1].open_nodes
        return (
            self._restored_cost
            - self._sum_costs(changed_nodes.values())
            + self._sum_costs(self._packing.open_nodes[number] for number in changed_nodes)
            + self._sum_costs(self._packing.open_nodes[self._first_number :])
        )

    def _sum_costs(self, nodes: Iterable[OpenNodeClaim]) -> float:
        """Return the cost of *nodes* in USD per hour, each with the cheapest instance type that holds its pods."""
        return sum(self._compute_cost(node) for node in nodes if node.pods)

    def _compute_cost(self, node: OpenNodeClaim) -> float:
        mask = node.mask
        if node.template.pool.name not in self._packing.remaining_limits:
            mask |= node.template.filter_fitting_types(node.state.mask, node.used, tuple(node.ports))
        cheapest = node.template.type_index.find_cheapest(node.state.requirements, mask)
        price = math.inf if cheapest is None else cheapest.offering.price_usd_per_hour
        return price + self._extra_costs[node.template]
