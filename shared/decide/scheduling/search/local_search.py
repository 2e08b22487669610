"""Local search: improve a small plan by removing some of its nodes and placing their pods again.

The packing problem models only some constraints, and first-fit ignores prices; so pods with other constraints, or pods
on a few whole nodes, may end up on expensive nodes. Here all checks of the packing apply: the rest of the plan is
restored as it was, each node with the instance type that it would be launched as, and the pods of the removed nodes
follow in one of several ways. The result is a plan like any other. Each trial visits every pod; the search is for
clusters where that is cheap.
"""

from typing import Final

from shared.decide.scheduling.instance_types.instance_type_index import InstanceTypeIndex
from shared.decide.scheduling.instance_types.masks import Mask
from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.decide.scheduling.optimization.large_neighborhood_search import generate_coin_flips
from shared.decide.scheduling.packing.first_fit import FirstFitPacking
from shared.decide.scheduling.packing.plan_completion import Plan, PlanStart, complete_plan, select_types_up_to
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.search.guided_packing import GuidedPacking
from shared.decide.scheduling.templates.node_claim_template import NarrowedTemplate
from shared.model.core.resources import Vector

MAX_PODS: Final = 500
"""Plans with more pods are not improved."""
EFFORT_PER_START: Final = 6_000
"""For each start, the number of pods and nodes that are restored in trials."""
MAX_STARTS: Final = 2
"""Number of plans that are improved, the cheapest first: plans that are nearly the best lead to other local optima."""
MIN_SAVING_RATIO: Final = 1e-4
"""Minimum saving, as a share of the price."""
MAX_FAILED_TRIALS_PER_NODE: Final = 12
"""The search ends after this number of failed trials per node."""
NEIGHBORHOOD_SIZES: Final = (1, 2, 2, 3, 2, 4, 3, 6)
"""Numbers of nodes that are removed at once, in turn."""

CPU_CAPS_MILLI: Final = (None, 4000, None, 8000, 2000, 32000, 16000)
"""Maximum milli cpu of new nodes, if first-fit can keep it, in turn; None: all pods may go to one node."""


class LocalSearch:
    """Improves a plan in place."""

    def __init__(self, plan_start: PlanStart, plan: Plan, baseline: Plan) -> None:
        """Start with *plan*, made from *plan_start*; all pods that *baseline* places must stay placed."""
        self._plan_start, self._baseline = plan_start, baseline
        self.plan = plan
        self._stages = {
            aim: stage for pod_class in plan_start.classes for stage, aim in enumerate(pod_class.compiled_stages)
        }
        self._coin_flips = generate_coin_flips()
        self._cached_wastes: dict[tuple[NarrowedTemplate, Vector], float] = {}

    def improve(self, target_cost: float) -> None:
        """Run trials until the plan costs *target_cost*, the effort is spent, or too many trials in a row failed."""
        effort, failed_trials, turn = EFFORT_PER_START, 0, 0
        nodes_by_waste = self._sort_nodes_by_waste()
        while (
            nodes_by_waste
            and effort > 0
            and failed_trials < MAX_FAILED_TRIALS_PER_NODE * len(nodes_by_waste)
            and self.plan.compute_cost() > target_cost
        ):
            if self._plan_start.packing.is_late():
                return
            trial = self._rebuild_plan(
                self._choose_nodes_to_remove(nodes_by_waste, turn), CPU_CAPS_MILLI[turn % len(CPU_CAPS_MILLI)]
            )
            effort -= len(self.plan.packing.assignments) + len(nodes_by_waste)
            turn, failed_trials = turn + 1, failed_trials + 1
            if trial.is_as_complete_as(self._baseline) and trial.compute_cost() < self.plan.compute_cost() * (
                1 - MIN_SAVING_RATIO
            ):
                self.plan, failed_trials = trial, 0
                nodes_by_waste = self._sort_nodes_by_waste()

    def _sort_nodes_by_waste(self) -> list[OpenNodeClaim]:
        """Return the new nodes, sorted by the cost above the value of their pods, the highest first."""
        nodes = (node for node in self.plan.packing.open_nodes if node.pods)
        return sorted(nodes, key=lambda node: (-self._compute_waste(node), node.number))

    def _choose_nodes_to_remove(self, nodes_by_waste: list[OpenNodeClaim], turn: int) -> frozenset[int]:
        """Return the numbers of the nodes to remove.

        The first is each node in turn; others of its NodePool come before those of other NodePools.
        """
        group = turn // len(CPU_CAPS_MILLI)
        size, anchor = NEIGHBORHOOD_SIZES[group % len(NEIGHBORHOOD_SIZES)], nodes_by_waste[group % len(nodes_by_waste)]
        same_pool_nodes = [node for node in nodes_by_waste if node is not anchor and node.template is anchor.template]
        other_pool_nodes = [node for node in nodes_by_waste if node.template is not anchor.template]
        chosen_nodes = [anchor]
        for node in (*same_pool_nodes, *other_pool_nodes, *same_pool_nodes, *other_pool_nodes):
            if len(chosen_nodes) >= size:
                break
            if node not in chosen_nodes and next(self._coin_flips):
                chosen_nodes.append(node)
        return frozenset(node.number for node in chosen_nodes)

    def _rebuild_plan(self, removed_nodes: frozenset[int], cap: int | None) -> Plan:
        """Return the plan without *removed_nodes*, with their pods placed again.

        New nodes have at most *cap* milli cpu.
        """
        fork, pod_classes = self._plan_start.fork()
        guided_packing = GuidedPacking(fork)
        self._restore_placements(fork, pod_classes, guided_packing, removed_nodes)
        if cap is not None:
            fork.target_types = select_types_up_to(fork, cap)
        plan = complete_plan(fork, pod_classes)
        guided_packing.widen_nodes()
        return plan

    def _restore_placements(
        self,
        fork: FirstFitPacking,
        pod_classes: list[PodEquivalenceClass],
        guided_packing: GuidedPacking,
        removed_nodes: frozenset[int],
    ) -> None:
        """Restore the placements of the plan, without *removed_nodes*.

        They are restored in the same order, as far as they are still possible.
        """
        existing_count = len(fork.existing_nodes)
        numbers: dict[int, int | None] = {number: number for number in range(existing_count)}
        placed_names: set[str] = set()
        for number, pods, aim, placed_pods in self.plan.packing.assignments:
            if number - existing_count in removed_nodes:
                continue
            if number not in numbers:
                opened = guided_packing.reopen_node(self.plan.packing.open_nodes[number - existing_count])
                numbers[number] = None if opened is None else existing_count + opened
            place = numbers[number]
            if place is not None:
                placed_count = fork.place_on_node((place, pods, aim, placed_pods))
                placed_names.update(pod.name for pod in placed_pods[:placed_count])
                fork.relaxed_preferences += placed_count * self._stages[aim]
        for pod_class in pod_classes:
            pod_class.pods = [pod for pod in pod_class.pods if pod.name not in placed_names]

    def _compute_waste(self, node: OpenNodeClaim) -> float:
        """Return the cost of *node* above the lowest fractional cost of the resources that its pods use."""
        key = (node.state, node.used)
        if key not in self._cached_wastes:
            type_index, requirements = node.template.type_index, node.state.requirements
            priced_types = type_index.sort_by_price(requirements, node.state.mask)
            min_cost = min(
                priced_type.offering.price_usd_per_hour
                * _compute_used_share(node.used, _get_allocatable(type_index, priced_type.bit))
                for priced_type in priced_types
            )
            current_type = type_index.find_cheapest(requirements, node.mask)
            self._cached_wastes[key] = (
                0.0 if current_type is None else current_type.offering.price_usd_per_hour
            ) - min_cost
        return self._cached_wastes[key]


def _get_allocatable(type_index: InstanceTypeIndex, bit: Mask) -> Vector:
    return type_index.allocatable[bit.bit_length() - 1]


def _compute_used_share(used: Vector, capacity: Vector) -> float:
    """Return the largest share of *capacity* that is *used*, over all resources."""
    return max(amount / available if available > 0 else 0.0 for amount, available in zip(used, capacity, strict=True))


def improve_plans(plan_start: PlanStart, plans: list[Plan], baseline: Plan, lower_bound: float) -> list[Plan]:
    """Return improvements of the cheapest of *plans*.

    *lower_bound* is a lower bound of the cost of any plan. The results place all pods that *baseline* places.
    """
    if sum(len(pod_class.pods) for pod_class in plan_start.classes) > MAX_PODS:
        return []
    plan_by_cost = {
        round(candidate.compute_cost(), 6): candidate
        for candidate in reversed(plans)
        if candidate.is_as_complete_as(baseline) and not candidate.has_relaxed_min_values()
    }
    searches = [LocalSearch(plan_start, plan_by_cost[cost], baseline) for cost in sorted(plan_by_cost)[:MAX_STARTS]]
    for search in searches:
        search.improve(lower_bound)
    return [finished_search.plan for finished_search in searches]
