"""The orders in which consolidation takes its steps, and which of them ends with the lowest cost.

Usually, nodes are deleted before others are replaced. Without spot-to-spot consolidation, this can use up the nodes
that are not spot, and leave spot nodes that can no longer be replaced. So mixed sets are also tried first, and both
results are continued until no command is left.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.methods.candidate_order import build_ratio_sort_key, rotate_to_cursor
from shared.decide.disruption.methods.consolidation import Consolidation
from shared.decide.disruption.methods.proposed_command import ProposedCommand

MAX_CANDIDATES_FOR_TWO_ORDERS: Final = 300
"""Up to this number of candidates, two orders are tried, because it cannot be predicted which one saves more."""
MIN_IMPROVEMENT_RATIO: Final = 1.001

ConsolidationResult = tuple[Consolidation, list[ProposedCommand]]
"""A consolidation with its verdicts, and its commands."""


class ConsolidationSearch:
    """Searches for consolidation commands in several orders, each in a new simulation."""

    def __init__(
        self,
        build_consolidation: Callable[[list[Candidate]], Consolidation],
        cursor: str,
        is_over: Callable[[], bool],
    ) -> None:
        """Start at the candidate *cursor*; *build_consolidation* returns a consolidation that fills nodes in order."""
        self._build_consolidation, self._cursor, self._is_over = build_consolidation, cursor, is_over

    def search_deletions_first(self, eligible: list[Candidate], *, tries_two_orders: bool) -> ConsolidationResult:
        """Return the result for *eligible*: deletions in the order that saves more, then replacements."""
        consolidation, proposed_commands = self._find_deletions(eligible)
        if (
            proposed_commands
            and tries_two_orders
            and len(eligible) <= MAX_CANDIDATES_FOR_TWO_ORDERS
            and not self._is_over()
        ):
            reordered_candidates = sorted(eligible, key=build_ratio_sort_key)
            other_consolidation, other_commands = self._find_deletions(reordered_candidates)
            if _sum_net_savings(other_commands) > MIN_IMPROVEMENT_RATIO * _sum_net_savings(proposed_commands):
                consolidation, proposed_commands, eligible = other_consolidation, other_commands, reordered_candidates
        proposed_commands += consolidation.find_replacements(rotate_to_cursor(self._cursor, eligible))
        return consolidation, proposed_commands

    def search_mixed_sets_first(self, eligible: list[Candidate], *, with_several: bool) -> ConsolidationResult | None:
        """Return the result for *eligible* with mixed sets before deletions; None if there is no mixed set."""
        consolidation, candidates = self._build_consolidation(eligible), rotate_to_cursor(self._cursor, eligible)
        proposed_commands = consolidation.find_mixed_sets(candidates, with_several=with_several)
        if not proposed_commands or self._is_over():
            return None
        proposed_commands += consolidation.find_deletions(candidates)
        return consolidation, [*proposed_commands, *consolidation.find_replacements(candidates)]

    def _find_deletions(self, eligible: list[Candidate]) -> ConsolidationResult:
        consolidation = self._build_consolidation(eligible)
        return consolidation, consolidation.find_deletions(rotate_to_cursor(self._cursor, eligible))


def is_end_cheaper(
    commands: Sequence[ProposedCommand] | None, other_commands: Sequence[ProposedCommand] | None
) -> bool:
    """Return whether *commands* save more than *other_commands*, before and after the costs of the disruption.

    An end that is not known (None) is not cheaper.
    """
    return (
        commands is not None
        and other_commands is not None
        and all(
            compute_sum(commands) > MIN_IMPROVEMENT_RATIO * compute_sum(other_commands)
            for compute_sum in (_sum_savings, _sum_net_savings)
        )
    )


def _sum_savings(proposed_commands: Iterable[ProposedCommand]) -> float:
    return sum(proposal.savings_usd_per_hour for proposal in proposed_commands)


def _sum_net_savings(proposed_commands: Iterable[ProposedCommand]) -> float:
    return sum(proposal.net_usd_per_hour for proposal in proposed_commands)
