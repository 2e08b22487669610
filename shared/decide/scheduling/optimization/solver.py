"""Packing solver: pattern selection with several fill strategies, then large neighborhood search."""

from collections import Counter
from typing import Final

import msgspec

from shared.decide.scheduling.optimization.dual_values import DualValueSolver
from shared.decide.scheduling.optimization.large_neighborhood_search import LargeNeighborhoodSearch
from shared.decide.scheduling.optimization.packing_problem import DualValues, PackingProblem
from shared.decide.scheduling.optimization.pattern_selection import (
    MAX_DUAL_VALUE_SOLVES,
    SelectedPattern,
    select_patterns,
)
from shared.decide.scheduling.optimization.patterns import FillStrategy, Pattern, PatternFiller

FILL_STRATEGIES: Final = (
    FillStrategy(follows_lp_counts=True, follows_lp_contents=True),
    FillStrategy(value_exponent=2),
    FillStrategy(),
    FillStrategy(value_exponent=30),
    FillStrategy(value_exponent=1, batch_divisor=1000),
    FillStrategy(follows_lp_counts=True),
)
"""Fill strategies in the order in which they are tried, the most promising first."""
GOOD_COST_RATIO: Final = 1.01
"""A solution that costs at most this ratio of the lower bound is not improved further."""
IMPROVEMENT_EFFORT_RATIO: Final = 0.15
"""Share of the effort that is spent on improving each solution.

The effort that remains at the end goes to the best solution.
"""
DEFAULT_EFFORT_STEPS: Final = 40_000
"""Default effort.

A step is one trial placement of a pod (or of several equal pods) on a node, or work that takes as long.
"""

MAX_SMALL_PROBLEM_PODS: Final = 500
"""Up to this number of pods, only `SMALL_PROBLEM_STRATEGY_COUNT` fill strategies are tried, and the dual values are
computed once: local search, which knows all constraints, saves more in the same time.
"""
SMALL_PROBLEM_STRATEGY_COUNT: Final = 1
MAX_STEPS_PER_POD: Final = 30
"""Maximum number of steps per pod."""


class PackingSolution(msgspec.Struct, frozen=True, kw_only=True):
    """Patterns to launch, in order.

    *lower_bound* is the cost of the linear relaxation, in which pods are divisible.
    """

    selected_patterns: tuple[SelectedPattern, ...] = ()
    lower_bound: float = 0.0
    price: float = 0.0


def solve_packing_problem(problem: PackingProblem, effort: int = DEFAULT_EFFORT_STEPS) -> tuple[PackingSolution, ...]:
    """Return solutions that pack all items that some bin type accepts, the cheapest first; always at least one.

    About *effort* steps are spent. A slightly more expensive solution may suit pods better that are not part of the
    problem.
    """
    if not any(problem.accepted_items):
        return (PackingSolution(),)
    counts = [item.count for item in problem.items]
    effort = min(effort, MAX_STEPS_PER_POD * sum(counts))
    dual_value_solver = DualValueSolver(problem, effort)
    dual_values = dual_value_solver.compute_dual_values(counts)
    searches: list[LargeNeighborhoodSearch] = []
    unimproved_solutions: list[PackingSolution] = []
    remaining_steps = effort - dual_value_solver.steps
    is_small = sum(counts) <= MAX_SMALL_PROBLEM_PODS
    for strategy in FILL_STRATEGIES[:SMALL_PROBLEM_STRATEGY_COUNT] if is_small else FILL_STRATEGIES:
        filler, steps_before = PatternFiller(problem, list(counts)), dual_value_solver.steps
        selected_patterns = select_patterns(
            problem, dual_value_solver, filler, strategy, max_solves=1 if is_small else MAX_DUAL_VALUE_SOLVES
        )
        search = LargeNeighborhoodSearch(
            problem, dual_values, [selected.pattern for selected in selected_patterns for _ in range(selected.count)]
        )
        remaining_steps -= dual_value_solver.steps - steps_before
        unimproved_solutions.append(_build_solution(search, dual_values))
        remaining_steps -= filler.steps + search.improve(int(IMPROVEMENT_EFFORT_RATIO * effort))
        searches.append(search)
        is_good = search.price <= GOOD_COST_RATIO * dual_values.lower_bound
        if remaining_steps < filler.steps or is_good:
            break
    best_search = min(searches, key=lambda plan: (plan.price, len(plan.nodes)))
    if best_search.price > GOOD_COST_RATIO * dual_values.lower_bound:
        best_search.improve(max(0, remaining_steps))
    solutions = [*(_build_solution(plan, dual_values) for plan in searches), *unimproved_solutions]
    solutions.sort(key=lambda solution: (solution.price, sum(pattern.count for pattern in solution.selected_patterns)))
    return tuple({frozenset(solution.selected_patterns): solution for solution in reversed(solutions)}.values())[::-1]


def _build_solution(search: LargeNeighborhoodSearch, dual_values: DualValues) -> PackingSolution:
    return PackingSolution(
        selected_patterns=count_patterns(search.nodes), lower_bound=dual_values.lower_bound, price=search.price
    )


def count_patterns(patterns: list[Pattern]) -> tuple[SelectedPattern, ...]:
    """Return each distinct pattern of *patterns* once, with its number of occurrences."""
    return tuple(SelectedPattern(pattern=node, count=count) for node, count in Counter(patterns).items())
