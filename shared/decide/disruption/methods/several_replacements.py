"""Several replacements: several new nodes for several more expensive ones; a packing solution places the pods."""

from collections.abc import Iterator, Sequence
from typing import Final

from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.methods.consolidation_context import UNDERUTILIZED_REASON, ConsolidationContext
from shared.decide.disruption.methods.proposed_command import ProposedCommand, sum_prices
from shared.decide.disruption.methods.replacement_result import Replacement
from shared.decide.disruption.savings.command_value import CommandValue
from shared.decide.disruption.simulation.exceeded_share import find_exceeded_share
from shared.decide.disruption.simulation.simulation import list_pod_moves
from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.model.core.labels import SPOT
from shared.model.decisions.command import MAX_TARGETS_PER_COMMAND

SET_SIZES: Final = (25, 8, 2, 1)
"""Numbers of nodes that are repacked together, one size after the other."""
MAX_PODS_PER_RUN: Final = 20_000
"""Limit of pods repacked on trial in one run."""
MAX_CONSECUTIVE_FAILED_SETS: Final = 2
"""Consecutive failed sets of one size after which the next size is tried."""
MAX_COST_RATIO: Final = 0.95
"""Maximum cost of a replacement as a ratio of the old cost; lower than 1 because it moves many pods."""
MAX_COST_RATIO_WITHOUT_FEWER_NODES: Final = 0.8
"""Maximum cost ratio if the number of nodes does not decrease."""
COST_RATIO_STEPS: Final = tuple(part / 20 for part in range(15, 0, -1))
MAX_IRREDUCIBLE_SET_SIZE: Final = 2
"""A set of up to this many nodes cannot be replaced by fewer nodes that are still more than one."""


class SeveralReplacements:
    """Searches for sets of nodes that can be replaced by several cheaper nodes."""

    def __init__(self, context: ConsolidationContext) -> None:
        """Search in the simulation of *context*."""
        self._context, self._remaining_pods = context, MAX_PODS_PER_RUN
        self._tried_sets: set[frozenset[str]] = set()
        self._candidates_to_prepare: Sequence[Candidate] | None = None
        """The candidates of the warm start; None: it is prepared."""

    def find_replacements(self, candidates: Sequence[Candidate]) -> list[ProposedCommand]:
        """Return proposed commands that replace several nodes by several cheaper ones."""
        self._candidates_to_prepare = candidates
        return [draft for size in SET_SIZES for draft in self._find_for_set_size(size, candidates)]

    def _find_for_set_size(self, size: int, candidates: Sequence[Candidate]) -> Iterator[ProposedCommand]:
        consecutive_failures, has_mixed_sets = 0, not self._context.replacement_finder.spot_to_spot
        for node_set in _split_into_sets(
            self._filter_within_budget(self._context.filter_remaining(candidates)), size, has_mixed_sets=has_mixed_sets
        ):
            targets = self._filter_within_budget(self._context.filter_remaining(node_set))
            self._remaining_pods -= sum(len(target.reschedulable_pods) for target in targets)
            if (
                consecutive_failures == MAX_CONSECUTIVE_FAILED_SETS
                or self._remaining_pods < 0
                or self._context.is_over()
            ):
                return
            names = frozenset(target.name for target in targets)
            max_cost_ratio = (
                self._find_max_cost_ratio(targets)
                if targets and names not in self._tried_sets and self._can_be_replaced(targets)
                else 0.0
            )
            if max_cost_ratio > 0:
                self._tried_sets.add(names)
                proposed_command = self._replace_set(targets, max_cost_ratio)
                consecutive_failures = 0 if proposed_command is not None else consecutive_failures + 1
                if proposed_command is not None:
                    self._context.record_commands((proposed_command,))
                    yield proposed_command

    def _prepare_warm_start(self) -> None:
        """Compute the dual values before the first trial: a run in which no set is tried does not need them.

        Until then, nothing has changed in the simulation and in the budgets.
        """
        if self._candidates_to_prepare is not None:
            simulation, candidates = self._context.simulation, self._filter_within_budget(self._candidates_to_prepare)
            simulation.prepare_warm_start(simulation.list_pods_on(candidate.name for candidate in candidates))
            self._candidates_to_prepare = None

    def _can_be_replaced(self, targets: Sequence[Candidate]) -> bool:
        return self._context.replacement_finder.spot_to_spot or any(target.capacity_type != SPOT for target in targets)

    def _filter_within_budget(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the *candidates* that can be disrupted together within the disruption budgets."""
        affordable_candidates: list[Candidate] = []
        for candidate in candidates:
            if (
                candidate.price_usd_per_hour > 0
                and not self._context.find_unplannable_pod(candidate)
                and self._context.budget_tracker.has_budget_for((candidate,), UNDERUTILIZED_REASON)
            ):
                affordable_candidates.append(candidate)
                self._context.budget_tracker.reserve((candidate,))
        self._context.budget_tracker.release(affordable_candidates)
        return affordable_candidates

    def _find_max_cost_ratio(self, targets: Sequence[Candidate]) -> float:
        """Return the highest ratio of the old cost at which replacing *targets* is accepted; 0 if none is."""
        price_usd_per_hour = sum_prices(targets)
        ratios = (
            MAX_COST_RATIO if len(targets) > MAX_IRREDUCIBLE_SET_SIZE else MAX_COST_RATIO_WITHOUT_FEWER_NODES,
            *COST_RATIO_STEPS,
        )
        return next(
            (
                part
                for part in ratios
                if isinstance(self._context.evaluate_savings(targets, price_usd_per_hour * (1 - part)), CommandValue)
            ),
            0.0,
        )

    def _replace_set(self, targets: list[Candidate], max_cost_ratio: float) -> ProposedCommand | None:
        self._prepare_warm_start()
        simulation, open_count_before = self._context.simulation, self._context.count_new_nodes()
        savepoint = simulation.begin()
        pods = [pod for target in targets for pod in simulation.clear_node(simulation.node_numbers[target.name])]
        simulation.packing.max_new_nodes = len(pods)
        price, replacements = sum_prices(targets), list[Replacement]()
        unplaced_classes = simulation.place_pods_guided(pods, max_cost_ratio * price)
        open_nodes = [node for node in simulation.packing.open_nodes[open_count_before:] if node.pods]
        if (
            len(open_nodes) > 1 and not unplaced_classes and not find_exceeded_share(simulation)
        ):  # a single new node is left to consolidation, which has more instance types to choose from
            replacements = self.find_cheaper_nodes(targets, open_nodes)
        savings = price - sum(replacement.cheapest.price_usd_per_hour for replacement in replacements)
        value = self._context.evaluate_savings(targets, savings, simulation.list_receivers())
        if not replacements or not isinstance(value, CommandValue):
            simulation.roll_back()
            return None
        new_nodes = [
            self._context.replacement_finder.accept(replacement, simulation.movable_pods)
            for replacement in replacements
        ]
        node_name_by_number = {
            len(simulation.packing.existing_nodes) + replacement.open_node_claim.number: node.name
            for replacement, node in zip(replacements, new_nodes, strict=True)
        }
        pod_moves = list_pod_moves(simulation, savepoint.placements, node_name_by_number)
        simulation.commit()
        simulation.seal_open_nodes()
        return self._context.build_replacement(targets, new_nodes, pod_moves, value)

    def find_cheaper_nodes(
        self, targets: Sequence[Candidate], open_nodes: Sequence[OpenNodeClaim]
    ) -> list[Replacement]:
        """Return replacements for *open_nodes* that together save enough, however they are launched, or none."""
        cost_ratio = MAX_COST_RATIO if len(open_nodes) < len(targets) else MAX_COST_RATIO_WITHOUT_FEWER_NODES
        return self._find_replacements_below(targets, open_nodes, cost_ratio * sum_prices(targets))

    def _find_replacements_below(
        self, targets: Sequence[Candidate], open_nodes: Sequence[OpenNodeClaim], max_price: float
    ) -> list[Replacement]:
        """Return replacements for *open_nodes* that together cost less than *max_price* in each case, or none."""
        lowest_prices = [self._context.replacement_finder.find_lowest_price(node) for node in open_nodes]
        extra_cost = sum(self._context.extra_cost_by_pool.get(node.template.pool.name, 0.0) for node in open_nodes)
        extra_cost -= sum(self._context.extra_cost_by_pool.get(target.pool.name, 0.0) for target in targets)
        price_factor = (max_price - extra_cost) / sum(lowest_prices) if sum(lowest_prices) > 0 else 0.0
        if price_factor <= 1:
            return []
        reservation_manager, nodes_and_prices = (
            self._context.replacement_finder.copy_reservation_manager(),
            zip(open_nodes, lowest_prices, strict=True),
        )
        results = [
            self._context.replacement_finder.find_cheaper(node, targets, price_factor * low, reservation_manager)
            for node, low in nodes_and_prices
        ]
        replacements = [replacement for replacement in results if isinstance(replacement, Replacement)]
        worst_price = sum(replacement.worst_price_usd_per_hour for replacement in replacements)
        return replacements if len(replacements) == len(results) and worst_price < max_price - extra_cost else []


def _split_into_sets(candidates: Sequence[Candidate], size: int, *, has_mixed_sets: bool) -> Iterator[list[Candidate]]:
    """Split *candidates* into sets of about *size*.

    *has_mixed_sets*: each set gets a node that is not spot, as far as there are enough.
    """
    non_spot_candidates = [candidate for candidate in candidates if candidate.capacity_type != SPOT]
    spot_candidates = [candidate for candidate in candidates if candidate.capacity_type == SPOT]
    count = max(1, -(-len(candidates) // size))
    if has_mixed_sets:
        count = max(1, min(count, len(non_spot_candidates)))
    for index in range(count):
        yield [*non_spot_candidates[index::count], *spot_candidates[index::count]][:MAX_TARGETS_PER_COMMAND]
