"""Mixed sets: spot nodes that become one node together with a node that is not spot.

Without spot-to-spot consolidation, spot nodes are replaced only together with a node that is not spot. If that node is
replaced alone, its spot nodes stay. So a set may grow by nodes that save nothing yet, if a later node makes up for it.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final

from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.methods.consolidation_context import UNDERUTILIZED_REASON, ConsolidationContext
from shared.decide.disruption.methods.proposed_command import ProposedCommand
from shared.decide.disruption.methods.single_and_multi_node_consolidation import (
    MIN_SAVINGS_USD_PER_HOUR,
    SingleAndMultiNodeConsolidation,
)
from shared.decide.disruption.savings.command_value import CommandValue
from shared.decide.disruption.savings.refusal import ReplacementRefusal
from shared.model.core.labels import SPOT
from shared.model.core.resources import CPU

MAX_CANDIDATES: Final = 300
"""Up to this number of candidates, mixed sets are also tried before deletions."""
MAX_TRIALS_PER_RUN: Final = 1500
"""Number of trials that add a node to a set in one run."""
MAX_TRIALS_PER_SET: Final = 60
MAX_ADDITIONS_WITHOUT_GAIN: Final = 6
"""Number of consecutive additions after which the set ends if they save nothing."""
INFEASIBLE_REASONS: Final = frozenset(("NoRoom", "PodNotPlannable", "PreferencesNotMet"))
"""Refusals that no further node of a set can make up for."""


def can_have_mixed_sets(candidates: Sequence[Candidate], *, spot_to_spot: bool) -> bool:
    """Return whether spot nodes among *candidates* can be replaced only together with others, and there are others."""
    spot_count = sum(candidate.capacity_type == SPOT for candidate in candidates)
    return not spot_to_spot and 0 < spot_count < len(candidates) <= MAX_CANDIDATES


class MixedSets:
    """Searches for sets of a node that is not spot, and others, that save more together than alone."""

    def __init__(self, context: ConsolidationContext, search: SingleAndMultiNodeConsolidation) -> None:
        """Search in the simulation of *context*; *search* evaluates and confirms sets."""
        self._context, self._search = context, search
        self._single_savings: dict[str, float] = {}
        """What nodes that are not spot save alone, in USD per hour after costs. Spot nodes save nothing alone."""
        self._remaining_trials = MAX_TRIALS_PER_RUN

    def find_replacements(self, candidates: Sequence[Candidate]) -> list[ProposedCommand]:
        """Return proposed commands: sets of *candidates* with spot nodes and others that become one cheaper node."""
        context, proposed_commands = self._context, list[ProposedCommand]()
        seeds = [candidate for candidate in candidates if candidate.capacity_type != SPOT]
        self._single_savings = {
            seed.name: self._search.evaluate_single(seed) for seed in seeds if not context.is_over()
        }
        for seed in seeds:
            if not context.is_over() and context.filter_remaining((seed,)):
                proposed_command = self._find_best_set(seed, context.filter_remaining(candidates))
                if proposed_command is not None:
                    proposed_commands += context.record_commands((proposed_command,))
        return proposed_commands

    def _find_best_set(self, seed: Candidate, candidates: Iterable[Candidate]) -> ProposedCommand | None:
        other_candidates = [candidate for candidate in candidates if candidate.name != seed.name]
        orders = (other_candidates, sorted(other_candidates, key=_build_price_per_cpu_sort_key))
        targets, gain = max((self._grow_set(seed, order) for order in orders), key=itemgetter(1))
        return self._search.confirm_set(targets) if gain > MIN_SAVINGS_USD_PER_HOUR else None

    def _grow_set(self, seed: Candidate, other_candidates: Iterable[Candidate]) -> tuple[list[Candidate], float]:
        """Return the best set from *seed*, and what it saves in USD per hour more than its nodes save alone."""
        simulation, open_count_before = self._context.simulation, self._context.count_new_nodes()
        targets, best_targets, best_gain, trials = [seed], [seed], 0.0, MAX_TRIALS_PER_SET
        alone_usd_per_hour = self._single_savings.get(seed.name, 0.0)
        simulation.begin(max_new_nodes=1)
        if not self._context.find_unplannable_pod(seed) and not simulation.place_pods(
            simulation.clear_node(simulation.node_numbers[seed.name])
        ):
            for candidate in other_candidates:
                if not trials or not self._remaining_trials or self._context.is_over():
                    break
                if candidate.price_usd_per_hour <= 0 or not self._context.budget_tracker.has_budget_for(
                    (*targets, candidate), UNDERUTILIZED_REASON
                ):
                    continue
                trials, self._remaining_trials = trials - 1, self._remaining_trials - 1
                value = self._add_node(targets, candidate, open_count_before)
                if isinstance(value, ReplacementRefusal) and value.reason in INFEASIBLE_REASONS:
                    continue
                targets = [*targets, candidate]
                alone_usd_per_hour += self._single_savings.get(candidate.name, 0.0)
                if (
                    isinstance(value, CommandValue)
                    and value.net_usd_per_hour - alone_usd_per_hour > best_gain + MIN_SAVINGS_USD_PER_HOUR
                ):
                    best_targets, best_gain = targets, value.net_usd_per_hour - alone_usd_per_hour
                elif len(targets) - len(best_targets) >= MAX_ADDITIONS_WITHOUT_GAIN:
                    break
        simulation.roll_back()
        return best_targets, best_gain

    def _add_node(
        self, targets: Sequence[Candidate], candidate: Candidate, open_count_before: int
    ) -> CommandValue | ReplacementRefusal:
        """Remove *candidate* in addition to *targets*, unless its pods then fit nowhere."""
        simulation = self._context.simulation
        simulation.begin(max_new_nodes=1 - (len(simulation.packing.open_nodes) - open_count_before))
        value = self._search.simulate_removal(
            [*targets, candidate], open_count_before, simulation.clear_node(simulation.node_numbers[candidate.name])
        )
        if isinstance(value, ReplacementRefusal) and value.reason in INFEASIBLE_REASONS:
            simulation.roll_back()
        else:
            simulation.commit()
        return value


def _build_price_per_cpu_sort_key(candidate: Candidate) -> tuple[float, str]:
    """Return a sort key: first the nodes that cost most for each CPU that their pods request."""
    cpu_milli = sum(pod.spec.requests[CPU] for pod in candidate.reschedulable_pods)
    return -candidate.price_usd_per_hour / max(cpu_milli, 1), candidate.name
