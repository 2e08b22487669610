"""Pattern selection: repeatedly choose the pattern with the lowest cost per value of its pods.

A pattern is selected again as long as its pods remain. The dual values are computed again when a large share of the
value is packed.
"""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from operator import mul
from typing import Final

import msgspec

from shared.decide.scheduling.instance_types.resource_index import Bits, list_bits
from shared.decide.scheduling.optimization.dual_values import DualValueSolver
from shared.decide.scheduling.optimization.items import Item
from shared.decide.scheduling.optimization.packing_problem import DualValues, PackingProblem
from shared.decide.scheduling.optimization.patterns import FillStrategy, Pattern, PatternFiller

MIN_VALUE_RATIO: Final = 0.85
MAX_BIN_TYPES: Final = 40
MIN_VALUE_TOLERANCE: Final = 1e-9
ROUNDING_TOLERANCE: Final = 0.5
ROUNDING_RATIO: Final = 1 - 1e-9
"""Rounding errors of a sum stay within this ratio."""
MAX_SUMMED_ITEMS: Final = 64
"""If at most this number of items remain, the value of those that a bin type accepts is summed, else that of all."""
MAX_DUAL_VALUE_SOLVES: Final = 3
"""The dual values are computed at most this often per solution; few pods remain after that."""
REMAINING_VALUE_RATIO: Final = 0.4
"""The dual values are computed again when this share of the value remains."""


class SelectedPattern(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern and the number of nodes that use it."""

    pattern: Pattern
    count: int


def select_patterns(
    problem: PackingProblem,
    dual_value_solver: DualValueSolver,
    filler: PatternFiller,
    strategy: FillStrategy,
    max_solves: int = MAX_DUAL_VALUE_SOLVES,
) -> Iterator[SelectedPattern]:
    """Yield patterns for the pods that remain in *filler* and that bin types accept, in the order of selection.

    The dual values are computed at most *max_solves* times.
    """
    follows_lp_counts = strategy.follows_lp_counts
    dual_values, solve_count = dual_value_solver.compute_dual_values(filler.remaining_counts), 1
    while filler.remaining_items:
        selection = PatternSelection(
            problem, filler, dual_values, strategy, select_bin_types(problem, filler, dual_values)
        )
        remaining_value = sum(map(mul, dual_values.item_values, filler.remaining_counts))
        is_last = solve_count >= max_solves and not follows_lp_counts
        selected_patterns = list(
            selection.select_until(
                0.0 if is_last else remaining_value * REMAINING_VALUE_RATIO, follows_lp_counts=follows_lp_counts
            )
        )
        yield from selected_patterns
        if is_last or not (selected_patterns or follows_lp_counts):
            return
        follows_lp_counts = follows_lp_counts and bool(selected_patterns)
        if solve_count < max_solves:
            dual_values, solve_count = dual_value_solver.compute_dual_values(filler.remaining_counts), solve_count + 1


def select_bin_types(
    problem: PackingProblem,
    filler: PatternFiller,
    dual_values: DualValues,
    *,
    min_ratio: float = MIN_VALUE_RATIO,
    max_count: int = MAX_BIN_TYPES,
) -> list[int]:
    """Return the bin types with the best value per dollar, and at least one for each remaining item.

    At most *max_count* bin types with a value ratio of at least *min_ratio* are chosen for their ratio alone.
    """
    ranked_bin_types = rank_bin_types(dual_values)
    best_bin_types = [row for row in ranked_bin_types[:max_count] if dual_values.value_ratios[row] >= min_ratio]
    return add_accepting_bin_types(problem, filler, best_bin_types, ranked_bin_types)


def rank_bin_types(dual_values: DualValues) -> list[int]:
    """Return the bin types, the one with the best value per dollar first."""
    return sorted(range(len(dual_values.value_ratios)), key=lambda row: (-dual_values.value_ratios[row], row))


def add_accepting_bin_types(
    problem: PackingProblem, filler: PatternFiller, bin_types: Sequence[int], ranked_bin_types: Sequence[int]
) -> list[int]:
    """Return those of *bin_types* that accept a remaining item, and others so that each remaining item has one."""
    selected_bin_types = [row for row in bin_types if problem.accepted_items[row] & filler.remaining_items]
    uncovered_items = filler.remaining_items
    for bin_type in selected_bin_types:
        uncovered_items &= ~problem.accepted_items[bin_type]
    for bin_type in ranked_bin_types if uncovered_items else ():
        if uncovered_items & problem.accepted_items[bin_type]:
            selected_bin_types.append(bin_type)
            uncovered_items &= ~problem.accepted_items[bin_type]
    return selected_bin_types


class PatternSelection:
    """Selects patterns of the given bin types, the one with the lowest cost per value first."""

    def __init__(
        self,
        problem: PackingProblem,
        filler: PatternFiller,
        dual_values: DualValues,
        strategy: FillStrategy,
        bin_types: list[int],
    ) -> None:
        """Rank patterns by *dual_values*."""
        self._problem, self._filler, self._dual_values, self._strategy, self._bin_types = (
            problem,
            filler,
            dual_values,
            strategy,
            bin_types,
        )
        self._value_by_items: dict[Bits, float] = {}
        """The value of the remaining pods, by the items that are summed."""

    def select_until(self, min_value: float, *, follows_lp_counts: bool = False) -> Iterator[SelectedPattern]:
        """Yield selected patterns until at most *min_value* of the remaining value is left.

        A bin type is filled only when no known pattern can be cheaper, and again when the pods of its pattern are used
        up.
        """
        filler, dual_values = self._filler, self._dual_values
        allowed_nodes = {row: int(dual_values.node_counts[row] + ROUNDING_TOLERANCE) for row in self._bin_types}
        lp_contents = (
            {row: _LpContents(dual_values.lp_contents[row]) for row in self._bin_types}
            if follows_lp_counts and self._strategy.follows_lp_contents
            else {}
        )
        bin_types = [row for row in self._bin_types if allowed_nodes[row] or not follows_lp_counts]
        self._value_by_items.clear()
        remaining_value = sum(map(mul, dual_values.item_values, filler.remaining_counts))
        pattern_heap = [
            (self._compute_least_cost_per_value(row, remaining_value), row, Pattern(bin_type=row, pods=()))
            for row in bin_types
        ]
        heapify(pattern_heap)
        # Without a minimum, pods decide: what rounding leaves of tiny dual values can be zero while pods remain.
        while pattern_heap and filler.remaining_items and (remaining_value > min_value or not min_value):
            _, bin_type, pattern = heappop(pattern_heap)
            if not pattern.pods or not filler.has_pods(pattern.pods):
                least_cost = self._compute_least_cost_per_value(bin_type, remaining_value)
                if pattern_heap and least_cost > pattern_heap[0][0]:
                    heappush(pattern_heap, (least_cost, bin_type, Pattern(bin_type=bin_type, pods=())))
                    continue
                preferred_items = lp_contents[bin_type].missing_items if bin_type in lp_contents else None
                pattern = filler.fill_bin(bin_type, dual_values, self._strategy, preferred_items)
                if pattern.pods:
                    heappush(pattern_heap, (self._compute_cost_per_value(pattern), bin_type, pattern))
                continue
            times = min(filler.remaining_counts[item] // count for item, count in pattern.pods)
            if follows_lp_counts:
                times = min(times, allowed_nodes[bin_type])
                times = (
                    lp_contents[bin_type].take_pods(pattern.pods, times, self._problem.items)
                    if bin_type in lp_contents
                    else times
                )
                allowed_nodes[bin_type] -= times
            filler.take_pods(pattern.pods, times)
            self._value_by_items.clear()
            remaining_value -= times * self._compute_value(pattern)
            if allowed_nodes[bin_type] > 0 or not follows_lp_counts:
                heappush(pattern_heap, (self._compute_cost_per_value(pattern), bin_type, pattern))
            yield SelectedPattern(pattern=pattern, count=times)

    def _sum_remaining_values(self, accepted_items: Bits) -> float:
        """Return the value of the remaining pods of *accepted_items*."""
        counts, values = self._filler.remaining_counts, self._dual_values.item_values
        items = self._filler.remaining_items & accepted_items
        value = self._value_by_items.get(items)
        if value is None:
            value = self._value_by_items[items] = sum([counts[item] * values[item] for item in list_bits(items)])
        return value

    def _compute_least_cost_per_value(self, bin_type: int, remaining_value: float) -> float:
        """Return a lower bound of the cost per value of a pattern of *bin_type*.

        A node holds no more than its bin type can pay for, and no more than the pods that remain, which are worth
        *remaining_value* in total.
        """
        accepted_items, remaining_items = self._problem.accepted_items[bin_type], self._filler.remaining_items
        if remaining_items & ~accepted_items and remaining_items.bit_count() <= MAX_SUMMED_ITEMS:
            remaining_value = self._sum_remaining_values(accepted_items)
        value_ratio = max(self._dual_values.value_ratios[bin_type], MIN_VALUE_TOLERANCE)
        price = self._problem.bin_types[bin_type].price
        return max(1 / value_ratio, ROUNDING_RATIO * price / max(remaining_value, MIN_VALUE_TOLERANCE))

    def _compute_value(self, pattern: Pattern) -> float:
        return sum(count * self._dual_values.item_values[item] for item, count in pattern.pods)

    def _compute_cost_per_value(self, pattern: Pattern) -> float:
        return self._problem.bin_types[pattern.bin_type].price / max(self._compute_value(pattern), MIN_VALUE_TOLERANCE)


class _LpContents:
    """Contents that the nodes of one bin type have in the linear relaxation and that are not packed yet."""

    def __init__(self, contents: Sequence[tuple[Bits, float]]) -> None:
        self._remaining = list(contents)

    @property
    def missing_items(self) -> Bits:
        """Items that are not fully packed yet."""
        return sum(item_bits for item_bits, _ in self._remaining)

    def take_pods(self, pods: Sequence[tuple[int, int]], times: int, items: Sequence[Item]) -> int:
        """Subtract nodes with these *pods* as often as the contents allow, between 1 and *times*; return how often."""
        uses = [
            sum(count * items[item].size for item, count in pods if item_bits >> item & 1)
            for item_bits, _ in self._remaining
        ]
        pairs = list(zip(self._remaining, uses, strict=True))
        node_count = min(
            (int(amount / use + ROUNDING_TOLERANCE) for (_, amount), use in pairs if use > 0), default=times
        )
        node_count = max(1, min(times, node_count))
        self._remaining = [
            (item_bits, amount - node_count * use)
            for (item_bits, amount), use in pairs
            if amount - node_count * use >= use / 2
        ]
        return node_count
