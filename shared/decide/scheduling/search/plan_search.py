"""Plan search: make several plans for the same pods and keep the cheapest; the greedy plan is always among them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, zip_longest
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.decide.scheduling.instance_types.instance_type_index import WITHOUT_RESERVED
from shared.decide.scheduling.optimization.packing_problem import (
    PackingProblem,
    SupplyFilter,
    build_packing_problem,
)
from shared.decide.scheduling.optimization.solver import PackingSolution, solve_packing_problem
from shared.decide.scheduling.packing.first_fit import FirstFitPacking
from shared.decide.scheduling.packing.node_costs import compute_placement_cost
from shared.decide.scheduling.packing.plan_completion import Plan, PlanStart, complete_plan, select_types_up_to
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.decide.scheduling.search.acceptance import Acceptance
from shared.decide.scheduling.search.guided_packing import GuidedPacking
from shared.decide.scheduling.search.local_search import improve_plans
from shared.decide.scheduling.search.type_widening import widen_instance_types
from shared.model.decisions.placement import Placement
from shared.model.karpenter.spot_share import NOT_SPOT

CPU_CAPS_MILLI: Final = (16000, 8000, 32000, 4000, 64000)
"""Maximum milli cpu of new nodes for further plans, the most promising first; alternates with the other packing
solutions.
"""
REMAINDER_CPU_CAP_MILLI: Final = 4000
"""The same, for pods that the packing solution does not cover."""
MAX_EFFORT_STEPS: Final = 6000
"""Steps spent on further plans, in addition to the greedy and the first guided plan.

Each plan takes one step per pod ...
"""
STEPS_PER_CLASS: Final = 10
"""... and this number of steps per pod class."""
GOOD_COST_RATIO: Final = 1.04
"""A plan that costs at most this ratio of the lower bound is not improved further."""
COMMITTED_EFFORT_STEPS: Final = 8_000
"""Effort of a packing problem for the instance types of one tier of commitments."""
MAX_SMALL_BATCH_PODS: Final = 30
"""A batch with fewer pods that is cheaper than `MAX_SMALL_BATCH_USD_PER_HOUR` is small: see `Acceptance`."""
MAX_SMALL_BATCH_USD_PER_HOUR: Final = 1.0
MAX_SIMULATED_PLANS: Final = 5
"""Number of plans that are simulated where kube-scheduler gets no nominated node names."""
EQUAL_COST_RATIO: Final = 1.02
"""Plans that cost at most this ratio of the cheapest are considered equally good."""


class SecondLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """Pods that kube-scheduler would leave unscheduled, and the cost of launching nodes for them.

    kube-scheduler is simulated without nominated node names.
    """

    count: int
    usd_per_hour: float


def find_cheapest_placement(
    packing: FirstFitPacking,
    classes: list[PodEquivalenceClass],
    nominations: Mapping[str, int],
    build_placement: Callable[[Plan], Placement],
    estimate_second_launch: Callable[[Placement], SecondLaunch] | None = None,
) -> Placement:
    """Return the placement of the best plan: it places the pods that the greedy plan places, and costs no more.

    With *estimate_second_launch*, plans are compared including the nodes that would have to be launched after them.
    """
    plan_start = PlanStart(packing, classes, nominations)
    greedy = complete_plan(*plan_start.fork())
    greedy_placement = build_placement(greedy)
    greedy_price = greedy_placement.price_usd_per_hour
    greedy_placement = replace(greedy_placement, greedy_usd_per_hour=greedy_price)
    if packing.is_late():
        return greedy_placement
    if packing.options.packing == "Greedy" or not greedy_placement.new_nodes:
        return (
            greedy_placement
            if estimate_second_launch is None
            else replace(greedy_placement, second_launches=estimate_second_launch(greedy_placement).count)
        )
    other_plans, lower_bound = _build_further_plans(plan_start)
    if estimate_second_launch is not None:
        return _choose_by_simulation(
            greedy_placement,
            greedy,
            [_build_segregated_plan(plan_start), *other_plans],
            build_placement,
            estimate_second_launch,
        )
    acceptance = Acceptance(
        greedy=greedy,
        is_small=greedy_price < MAX_SMALL_BATCH_USD_PER_HOUR
        and sum(len(pod_class.pods) for pod_class in classes) < MAX_SMALL_BATCH_PODS,
    )
    best_plan = _choose_plan(
        acceptance, [*other_plans, *improve_plans(plan_start, [greedy, *other_plans], acceptance, lower_bound)]
    )
    if best_plan is greedy:
        return greedy_placement
    best_placement = build_placement(best_plan)
    is_more_expensive = compute_placement_cost(best_placement, packing) > compute_placement_cost(
        greedy_placement, packing
    )
    if len(best_placement.unschedulable) > len(greedy_placement.unschedulable) or is_more_expensive:
        return greedy_placement
    return replace(best_placement, greedy_usd_per_hour=greedy_price)


def _choose_by_simulation(
    greedy_placement: Placement,
    greedy: Plan,
    other_plans: Iterable[Plan],
    build_placement: Callable[[Plan], Placement],
    estimate_second_launch: Callable[[Placement], SecondLaunch],
) -> Placement:
    """Return the placement with the lowest cost including second launches.

    The candidates are the greedy placement and some of the cheapest *other_plans*.
    """
    equal_plans = sorted((plan for plan in other_plans if plan.is_as_complete_as(greedy)), key=Plan.compute_cost)
    placements = [greedy_placement, *(build_placement(plan) for plan in equal_plans[:MAX_SIMULATED_PLANS])]
    placements = [
        placement for placement in placements if len(placement.unschedulable) <= len(greedy_placement.unschedulable)
    ]
    rated_placements = [(estimate_second_launch(placement), placement) for placement in placements]
    costs = [
        (candidate_launch.usd_per_hour + compute_placement_cost(placement, greedy.packing), index)
        for index, (candidate_launch, placement) in enumerate(rated_placements)
    ]
    second_launch, best_placement = rated_placements[min(costs)[1]]
    return replace(
        best_placement, greedy_usd_per_hour=greedy_placement.price_usd_per_hour, second_launches=second_launch.count
    )


def _choose_plan(acceptance: Acceptance, other_plans: list[Plan]) -> Plan:
    """Return the plan with the fewest nodes among the cheapest that are accepted."""
    greedy = acceptance.greedy
    greedy_cost = greedy.compute_cost()
    cheaper_plans = [(greedy_cost, greedy)]
    for plan in other_plans:
        cost = plan.compute_cost()
        if cost < greedy_cost and acceptance.has_accepted_node_count(plan) and plan.is_as_complete_as(greedy):
            cheaper_plans.append((cost, plan))
    min_cost = min(cost for cost, _ in cheaper_plans)
    ranks = [
        (candidate.count_nodes(), cost, index)
        for index, (cost, candidate) in enumerate(cheaper_plans)
        if cost <= min_cost * EQUAL_COST_RATIO
    ]
    return cheaper_plans[min(ranks)[2]][1]


def _build_further_plans(plan_start: PlanStart) -> tuple[list[Plan], float]:
    """Return further plans, and a lower bound of the cost of any plan.

    The first is a guided plan; if it is not good enough, as many others follow as time allows.

    The lower bound is 0 if the packing problem does not cover all pods.
    """
    if plan_start.packing.is_late():
        return [], 0.0
    packing, unplaced_classes = plan_start.fork_with_existing_filled()
    problem = build_packing_problem(packing, unplaced_classes)
    first_solution, *other_solutions = solve_packing_problem(problem)
    covers_all_pods = sum(item.count for item in problem.items) == sum(
        len(pod_class.pods) for pod_class in unplaced_classes
    )
    plans = [_build_guided_plan(plan_start, problem, first_solution)]
    if plans[0].unplaced_count or plans[0].compute_cost() > first_solution.lower_bound * GOOD_COST_RATIO:
        steps = sum(len(pod_class.pods) + STEPS_PER_CLASS for pod_class in plan_start.classes)
        for variation in islice(_alternate_variations(other_solutions, CPU_CAPS_MILLI), MAX_EFFORT_STEPS // steps):
            if plan_start.packing.is_late():
                break
            if isinstance(variation, PackingSolution):
                plans.append(_build_guided_plan(plan_start, problem, variation))
            else:
                plans.append(_build_capped_plan(plan_start, variation))
    plans += [*_build_committed_plans(plan_start), *_build_plans_of_shares(plan_start)]
    return plans, first_solution.lower_bound if covers_all_pods else 0.0


def _alternate_variations(solutions: Iterable[PackingSolution], caps: Iterable[int]) -> Iterator[PackingSolution | int]:
    return (variation for pair in zip_longest(solutions, caps) for variation in pair if variation is not None)


def _build_guided_plan(plan_start: PlanStart, problem: PackingProblem, solution: PackingSolution) -> Plan:
    """Return the plan that follows the packing solution."""
    fork, unplaced_classes = plan_start.fork_with_existing_filled()
    guided_packing = GuidedPacking(fork)
    guided_packing.follow_solution(unplaced_classes, problem, solution)
    fork.target_types = select_types_up_to(fork, REMAINDER_CPU_CAP_MILLI)
    plan = complete_plan(fork, unplaced_classes)
    guided_packing.widen_nodes()
    return plan


def _build_committed_plans(plan_start: PlanStart) -> list[Plan]:
    """Return a plan that uses what is left of commitments before other capacity; none without commitments.

    The packing problem is solved for the instance types of each tier of commitments, and then for the other pods.
    """
    if plan_start.packing.committed_capacity is None or plan_start.packing.is_late():
        return []
    fork, unplaced_classes = plan_start.fork_with_existing_filled()
    guided_packing, commitment_manager = GuidedPacking(fork), plan_start.packing.committed_capacity.start_plan()
    for tier in commitment_manager.list_tiers(fork.templates):
        supply = SupplyFilter(requirements=tier.requirements, type_masks=tier.type_masks)
        problem = build_packing_problem(fork, unplaced_classes, supply=supply)
        if problem.bin_types:
            solution = solve_packing_problem(problem, effort=COMMITTED_EFFORT_STEPS)[0]
            guided_packing.open_covered_nodes(unplaced_classes, problem, solution, commitment_manager)
    problem = build_packing_problem(fork, unplaced_classes)
    guided_packing.follow_solution(unplaced_classes, problem, solve_packing_problem(problem)[0])
    fork.target_types = select_types_up_to(fork, REMAINDER_CPU_CAP_MILLI)
    plan = complete_plan(fork, unplaced_classes)
    guided_packing.widen_nodes()
    return [plan]


def _build_plans_of_shares(plan_start: PlanStart) -> list[Plan]:
    """Return a plan whose nodes are selected by on-demand prices; none without Spot shares.

    As many of them as the shares allow are Spot nodes.
    """
    if not plan_start.packing.share_usages or plan_start.packing.is_late():
        return []
    fork, unplaced_classes = plan_start.fork_with_existing_filled()
    guided_packing = GuidedPacking(fork, prefers_spot=True)
    supply = SupplyFilter(requirements=WITHOUT_RESERVED & NOT_SPOT)
    problem = build_packing_problem(fork, unplaced_classes, supply=supply)
    guided_packing.follow_solution(unplaced_classes, problem, solve_packing_problem(problem)[0])
    fork.target_types = select_types_up_to(fork, REMAINDER_CPU_CAP_MILLI)
    plan = complete_plan(fork, unplaced_classes)
    guided_packing.widen_nodes()
    return [plan]


def _build_segregated_plan(plan_start: PlanStart) -> Plan:
    """Return a plan in which each new node holds pods of one class only.

    The packing problem is solved for each class alone.
    """
    fork, unplaced_classes = plan_start.fork_with_existing_filled()
    guided_packing = GuidedPacking(fork)
    for pod_class in (candidate for candidate in unplaced_classes if candidate.pods):
        problem = build_packing_problem(fork, [pod_class])
        guided_packing.follow_solution([pod_class], problem, solve_packing_problem(problem, effort=0)[0])
        fork.target_types = select_types_up_to(fork, REMAINDER_CPU_CAP_MILLI)
        pod_class.pods = fork.place(pod_class)
        fork.seal()
    guided_packing.widen_nodes()
    return Plan(
        packing=fork, unplaced_classes=[remaining_class for remaining_class in unplaced_classes if remaining_class.pods]
    )


def _build_capped_plan(plan_start: PlanStart, max_cpu_milli: int) -> Plan:
    fork, unplaced_classes = plan_start.fork()
    fork.target_types = select_types_up_to(fork, max_cpu_milli)
    plan = complete_plan(fork, unplaced_classes)
    widen_instance_types(fork)
    return plan
