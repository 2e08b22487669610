"""Large neighborhood search: destroy and rebuild the nodes that cost more than their pods are worth.

Each trial destroys a few of the nodes with the largest losses and selects new patterns for their pods; the nodes that
stay do not change. If the new nodes are not cheaper, the old ones are kept. The result is advice only, so it cannot
violate a constraint.
"""

from collections.abc import Iterator
from heapq import nlargest
from typing import Final

from shared.decide.scheduling.optimization.packing_problem import DualValues, PackingProblem
from shared.decide.scheduling.optimization.pattern_selection import (
    PatternSelection,
    add_accepting_bin_types,
    rank_bin_types,
)
from shared.decide.scheduling.optimization.patterns import FillStrategy, Pattern, PatternFiller

REBUILD_STRATEGIES: Final = (
    FillStrategy(),
    FillStrategy(value_exponent=2),
    FillStrategy(value_exponent=30),
    FillStrategy(value_exponent=4, batch_divisor=1000),
)
NEIGHBORHOOD_SIZES: Final = (2, 4, 8, 16, 3, 6)
"""Neighborhood sizes, in turn: about half of the 2n nodes with the largest losses are destroyed at once."""
MIN_VALUE_RATIO: Final = 0.7
"""Bin types with at least this value per dollar are used for rebuilding."""
MAX_FAILED_TRIALS_PER_NODE: Final = 6
"""The search ends after this number of failed trials per node; at most `MAX_COUNTED_NODES` nodes are counted."""
MAX_COUNTED_NODES: Final = 20
LEAST_COST_PER_VALUE: Final = 0.98
"""No nodes for the remaining pods are expected to cost less than this share of the pods' value."""
_COST_TOLERANCE: Final = 1e-9


class LargeNeighborhoodSearch:
    """Improves a list of patterns by destroying and rebuilding some of them."""

    def __init__(self, problem: PackingProblem, dual_values: DualValues, nodes: list[Pattern]) -> None:
        """Start with *nodes*; *dual_values* are those of the whole demand, before any pattern was selected."""
        self._problem, self._dual_values = problem, dual_values
        self.nodes = list(nodes)
        self._losses = self._compute_losses(nodes)
        self._filler = PatternFiller(problem, [0 for _ in problem.items])
        self._ranked_bin_types = rank_bin_types(dual_values)
        self._bin_types = [row for row in self._ranked_bin_types if dual_values.value_ratios[row] >= MIN_VALUE_RATIO]
        self._coin_flips = generate_coin_flips()
        self._trial = 0

    @property
    def price(self) -> float:
        """Total price of all nodes."""
        return sum(self._get_price(node) for node in self.nodes)

    def improve(self, effort: int) -> int:
        """Run trials until *effort* steps are spent or too many trials in a row failed; return the number of steps."""
        first_step, failed_trials = self._filler.steps, 0
        while self._filler.steps - first_step < effort and failed_trials < MAX_FAILED_TRIALS_PER_NODE * min(
            len(self.nodes), MAX_COUNTED_NODES
        ):
            self._filler.steps += len(self.nodes) // 8 + 20
            is_better = self._rebuild(
                self._choose_nodes_to_destroy(), REBUILD_STRATEGIES[self._trial % len(REBUILD_STRATEGIES)]
            )
            failed_trials = 0 if is_better else failed_trials + 1
            self._trial += 1
        return self._filler.steps - first_step

    def _choose_nodes_to_destroy(self) -> list[int]:
        """Return the positions of about half of the nodes with the largest losses."""
        losses = self._losses
        neighborhood_size = NEIGHBORHOOD_SIZES[self._trial // len(REBUILD_STRATEGIES) % len(NEIGHBORHOOD_SIZES)]
        worst_positions = nlargest(2 * neighborhood_size, range(len(self.nodes)), key=losses.__getitem__)
        return sorted(position for position in worst_positions if next(self._coin_flips))

    def _compute_losses(self, nodes: list[Pattern]) -> list[float]:
        """Return the loss of each of *nodes*; equal nodes are often the same object and computed once."""
        loss_by_node = {node: self._compute_loss(node) for node in dict.fromkeys(nodes)}
        return [loss_by_node[node] for node in nodes]

    def _compute_loss(self, node: Pattern) -> float:
        return self._get_price(node) - self._compute_value(node)

    def _compute_value(self, node: Pattern) -> float:
        return sum([count * self._dual_values.item_values[item] for item, count in node.pods])

    def _get_price(self, node: Pattern) -> float:
        return self._problem.bin_types[node.bin_type].price

    def _rebuild(self, positions: list[int], strategy: FillStrategy) -> bool:
        destroyed_nodes = [self.nodes[place] for place in positions]
        for node in destroyed_nodes:
            self._filler.take_pods(node.pods, -1)
        new_nodes = self._find_cheaper_nodes(destroyed_nodes, strategy)
        if new_nodes is not None:
            for position in reversed(positions):
                del self.nodes[position], self._losses[position]
            self.nodes += new_nodes
            self._losses += self._compute_losses(new_nodes)
        self._filler.clear_remaining()
        return new_nodes is not None

    def _find_cheaper_nodes(self, destroyed_nodes: list[Pattern], strategy: FillStrategy) -> list[Pattern] | None:
        """Return nodes that hold the pods of *destroyed_nodes* and cost less; None if there are none."""
        cost = sum(self._get_price(node) for node in destroyed_nodes)
        bin_types = add_accepting_bin_types(self._problem, self._filler, self._bin_types, self._ranked_bin_types)
        selection = PatternSelection(self._problem, self._filler, self._dual_values, strategy, bin_types)
        new_nodes: list[Pattern] = []
        remaining_value = sum([self._compute_value(node) for node in destroyed_nodes])
        for selected in selection.select_until(0.0):
            cost -= selected.count * self._get_price(selected.pattern)
            remaining_value -= selected.count * self._compute_value(selected.pattern)
            new_nodes += [selected.pattern] * selected.count
            if cost <= max(_COST_TOLERANCE, LEAST_COST_PER_VALUE * remaining_value):
                return None
        return None if self._filler.remaining_items else new_nodes


def generate_coin_flips() -> Iterator[bool]:
    """Yield pseudo-random booleans, always the same sequence, so that every subset of nodes is tried eventually."""
    state = 1
    while True:
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        yield bool(state >> 16 & 1)
