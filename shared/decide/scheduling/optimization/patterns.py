"""Patterns: the contents of one new node, filled greedily.

The largest fitting items that match the shape of the node's free resources are placed first.
"""

import math
from collections.abc import Sequence
from operator import mul
from typing import Final

import msgspec

from shared.decide.scheduling.instance_types.resource_index import Bits, build_bits, list_bits
from shared.decide.scheduling.optimization.bin_types import PODS_AXIS
from shared.decide.scheduling.optimization.item_groups import compute_shape_class
from shared.decide.scheduling.optimization.items import NO_HOST_GROUP
from shared.decide.scheduling.optimization.packing_problem import DualValues, PackingProblem, is_pod_limited

MAX_VALUE_RATIO: Final = 2.0
_MIN_SQUARED_LENGTH: Final = 1e-30


class FillStrategy(msgspec.Struct, frozen=True, kw_only=True):
    """How a node is filled.

    *value_exponent* is the power to which an item's value ratio is raised in the score: the higher it is, the more the
    strategy avoids pods that would pay better on another bin type.
    """

    value_exponent: int = 8
    batch_divisor: int = 4
    """Of the number of pods of an item that would fit, 1/*batch_divisor* is added before the items are scored again."""
    follows_lp_counts: bool = False
    """Whether each bin type gets at most as many nodes as in the linear relaxation until the dual values are
    computed again.
    """
    follows_lp_contents: bool = False
    """Whether the pods that the nodes hold in the linear relaxation are placed first."""


class Pattern(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Contents of one node: the index of its bin type, and (item index, number of pods) pairs."""

    bin_type: int
    pods: tuple[tuple[int, int], ...]


class PatternFiller:
    """Fills nodes of any bin type with the pods that remain."""

    def __init__(self, problem: PackingProblem, remaining_counts: list[int]) -> None:
        """Start with *remaining_counts*, the number of pods by item; report placed pods with `take`."""
        self._problem, self.remaining_counts = problem, remaining_counts
        self.steps = 0
        self._is_pod_limited = is_pod_limited(problem)
        self._score_dual_values: DualValues | None = None
        self._scores: dict[tuple[int, int], _ItemScorer] = {}
        self.remaining_items = build_bits([index for index, count in enumerate(remaining_counts) if count])
        self._shape_classes = _group_items_by_shape(problem)
        self._items_by_host_limit = _index_host_limits(problem)
        self._needs = [
            [(axis, amount) for axis, amount in enumerate(item.pods.request_vector) if amount] for item in problem.items
        ]
        """By item: the axes that its pods need, and the amounts."""

    def take_pods(self, pods: Sequence[tuple[int, int]], times: int) -> None:
        """Subtract *pods* from the remaining counts *times* times; a negative *times* adds them back."""
        for item, count in pods:
            self.remaining_counts[item] -= times * count
            if self.remaining_counts[item]:
                self.remaining_items |= 1 << item
            else:
                self.remaining_items &= ~(1 << item)

    def clear_remaining(self) -> None:
        """Set all remaining counts to 0."""
        for item_index in list_bits(self.remaining_items):
            self.remaining_counts[item_index] = 0
        self.remaining_items = 0

    def has_pods(self, pods: Sequence[tuple[int, int]]) -> bool:
        """Return whether all of *pods* still remain."""
        return all(self.remaining_counts[item] >= count for item, count in pods)

    def fill_bin(
        self, number: int, dual_values: DualValues, strategy: FillStrategy, first: Bits | None = None
    ) -> Pattern:
        """Return a full node of bin type *number*, filled with the items *first* before all others."""
        bin_type = self._problem.bin_types[number]
        empty = Pattern(bin_type=number, pods=())
        if first is None:
            return self.fill_remaining_capacity(empty, list(bin_type.capacity), dual_values, strategy)
        pattern = self.fill_remaining_capacity(empty, list(bin_type.capacity), dual_values, strategy, first)
        free = list(bin_type.capacity)
        for item, count in pattern.pods:
            free = [
                available - count * need
                for need, available in zip(self._problem.items[item].pods.request_vector, free, strict=True)
            ]
        return self.fill_remaining_capacity(pattern, free, dual_values, strategy) if pattern.pods else pattern

    def fill_remaining_capacity(
        self, node: Pattern, free: list[int], dual_values: DualValues, strategy: FillStrategy, among: Bits = -1
    ) -> Pattern:
        """Return *node* with as many pods as possible added, of the items in *among*; this uses up *free* resources."""
        number, placed_counts = node.bin_type, dict(node.pods)
        items, remaining_counts = self._problem.items, self.remaining_counts
        candidates = self.remaining_items & self._problem.accepted_items[number] & among
        counts_by_host_group = _count_by_host_group(placed_counts, self._problem)
        for group, count in counts_by_host_group.items():
            candidates &= ~self._find_saturated_items(group, count)
        scorer = self._get_scorer(dual_values, number, strategy.value_exponent)
        fitting = self._problem.resource_index.filter_fitting
        if placed_counts:
            candidates &= ~build_bits(
                [item for item, count in placed_counts.items() if count >= remaining_counts[item]]
            )
        shape_classes = [shape_class for shape_class in self._shape_classes if shape_class & candidates]
        while candidates := fitting(free, candidates):
            self.steps += 1
            index = scorer.choose_item(candidates, shape_classes, free)
            item, needs = items[index], self._needs[index]
            placed_count = placed_counts.get(index, 0)
            remaining = remaining_counts[index] - placed_count
            batch_size = min(
                remaining, max(1, min([free[axis] // need for axis, need in needs]) // strategy.batch_divisor)
            )
            if item.host_group != NO_HOST_GROUP:
                group_count = counts_by_host_group.get(item.host_group, 0)
                batch_size = min(batch_size, item.max_per_node - group_count)
                counts_by_host_group[item.host_group] = group_count = group_count + batch_size
                candidates &= ~self._find_saturated_items(item.host_group, group_count)
            placed_counts[index] = placed_count + batch_size
            for axis, need in needs:
                free[axis] -= batch_size * need
            if batch_size == remaining:
                candidates &= ~(1 << index)
        return Pattern(bin_type=number, pods=tuple(sorted(placed_counts.items())))

    def _get_scorer(self, dual_values: DualValues, bin_type: int, value_exponent: int) -> "_ItemScorer":
        """Return the item scorer of a bin type; scorers are cached as long as *dual_values* stays the same."""
        if self._score_dual_values is not dual_values:
            self._score_dual_values = dual_values
            self._scores.clear()
        key = (bin_type, value_exponent)
        if key not in self._scores:
            self._scores[key] = _ItemScorer(
                dual_values, bin_type, self._problem, value_exponent, is_pod_limited=self._is_pod_limited
            )
        return self._scores[key]

    def _find_saturated_items(self, group: int, count: int) -> Bits:
        """Return the items of host group *group* that tolerate at most *count* of its pods on their node."""
        return sum(item_bits for max_per_node, item_bits in self._items_by_host_limit[group] if max_per_node <= count)


class _ItemScorer:
    """Scores items on one bin type: how well they pay for the resources that they use, and which shape they have."""

    def __init__(
        self,
        dual_values: DualValues,
        bin_type: int,
        problem: PackingProblem,
        value_exponent: int,
        *,
        is_pod_limited: bool,
    ) -> None:
        self._value_exponent, self._capacity = value_exponent, problem.bin_types[bin_type].capacity
        self._item_values, self._prices, self._items = (
            dual_values.item_values,
            dual_values.resource_prices[bin_type],
            problem.items,
        )
        self._slots = 1 / self._capacity[PODS_AXIS] if is_pod_limited and self._capacity[PODS_AXIS] else 0.0
        self._cached_scores: dict[int, tuple[float, float, float]] = {}

    def choose_item(self, open_items: Bits, shape_classes: Sequence[Bits], free: Sequence[int]) -> int:
        """Return the item that pays best and matches the shape of the *free* resources.

        Of each of *shape_classes* only the largest item is scored.
        """
        capacity = self._capacity
        cpu, memory, slots = (
            free[0] / capacity[0],
            free[1] / capacity[1],
            free[PODS_AXIS] / (capacity[PODS_AXIS] or 1),
        )
        best_score, best_index, cached_scores = -1.0, -1, self._cached_scores
        for shape_class in shape_classes:
            candidates = open_items & shape_class
            if candidates:
                item_index = candidates.bit_length() - 1
                score_vector = cached_scores.get(item_index)
                if score_vector is None:
                    score_vector = cached_scores[item_index] = self.compute_score_vector(item_index)
                score = score_vector[0] * cpu + score_vector[1] * memory + score_vector[2] * slots
                if score > best_score:
                    best_score, best_index = score, item_index
        return best_index

    def compute_score_vector(self, index: int) -> tuple[float, float, float]:
        """Return the item's direction in cpu, memory and pod slots, scaled by its value ratio.

        The length of the vector is the square root of the item's value divided by its cost, raised to *value_exponent*.
        Pod slots count only where pods are so small that the number of pods per node is a limiting resource.
        """
        item = self._items[index]
        cost = sum(map(mul, self._prices, item.scaled_need))
        ratio = self._item_values[index] / cost if cost > 0 else MAX_VALUE_RATIO
        x, y = item.pods.request_vector[0] / self._capacity[0], item.pods.request_vector[1] / self._capacity[1]
        z = self._slots
        length = math.sqrt(
            max(0.0, min(MAX_VALUE_RATIO, ratio)) ** self._value_exponent
            / (x * x + y * y + z * z + _MIN_SQUARED_LENGTH)
        )
        return length * x, length * y, length * z


def _group_items_by_shape(problem: PackingProblem) -> list[Bits]:
    """Group items by shape.

    Items are also grouped by size where pods are so small that the number of pods per node is a limiting resource.
    """
    shape_classes: dict[tuple[int, int], list[int]] = {}
    is_crowded_bin = is_pod_limited(problem)
    for index, item in enumerate(problem.items):
        size = round(math.log2(item.size)) if is_crowded_bin else 0
        shape_classes.setdefault((compute_shape_class(item), size), []).append(index)
    return [build_bits(item_indices) for _, item_indices in sorted(shape_classes.items())]


def _index_host_limits(problem: PackingProblem) -> dict[int, list[tuple[int, Bits]]]:
    """Return, by host group, pairs of a maximum number of its pods per node and the items that have this maximum."""
    indices_by_limit: dict[int, dict[int, list[int]]] = {}
    for index, item in enumerate(problem.items):
        if item.host_group != NO_HOST_GROUP:
            indices_by_limit.setdefault(item.host_group, {}).setdefault(item.max_per_node, []).append(index)
    return {
        group: [(max_per_node, build_bits(item_indices)) for max_per_node, item_indices in sorted(by_limit.items())]
        for group, by_limit in indices_by_limit.items()
    }


def _count_by_host_group(placed_counts: dict[int, int], problem: PackingProblem) -> dict[int, int]:
    counts: dict[int, int] = {}
    for index, count in placed_counts.items():
        group = problem.items[index].host_group
        if group != NO_HOST_GROUP:
            counts[group] = counts.get(group, 0) + count
    return counts
