"""The orders in which consolidation takes its steps, and which of them ends with the lowest cost.

Usually, nodes are deleted before others are replaced. Without spot-to-spot consolidation, this can use up the nodes
that are not spot, and leave spot nodes that can no longer be replaced. So mixed sets are also tried first, and both
results are continued until no command is left.

If the time limit ends a run, the next run continues in parts: it evaluates some candidates completely, then the next
ones. So every run advances, and each candidate is evaluated completely once in a sweep, however long the sweep takes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.methods.candidate_order import build_ratio_sort_key, split_at_cursor
from shared.decide.disruption.methods.consolidation import Consolidation
from shared.decide.disruption.methods.proposed_command import ProposedCommand

MAX_CANDIDATES_FOR_TWO_ORDERS: Final = 300
"""Up to this number of candidates, two orders are tried, because it cannot be predicted which one saves more."""
MIN_IMPROVEMENT_RATIO: Final = 1.001

MAX_PART_SIZE: Final = 256
"""Candidates of one part; the first part of a run has one candidate, and each further part twice as many."""

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
        if self._cursor:
            return self._search_in_parts(eligible)
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
        if consolidation.unreached:
            consolidation.mark_as_unreached(eligible)
        proposed_commands += consolidation.find_replacements(eligible)
        return consolidation, proposed_commands

    def _search_in_parts(self, eligible: list[Candidate]) -> ConsolidationResult:
        """Return the result for the candidates from the cursor on, part by part.

        The candidates before the cursor follow, if there is time: this sweep has already evaluated them. A part that
        the time limit interrupts is evaluated again by the next run, unless it is the first one.
        """
        consolidation = self._build_consolidation(eligible)
        candidates, earlier_candidates = split_at_cursor(self._cursor, eligible)
        proposed_commands: list[ProposedCommand] = []
        start, size = 0, 1
        while start < len(candidates) and not self._is_over():
            part = candidates[start : start + size]
            proposed_commands += consolidation.find_deletions(part)
            proposed_commands += consolidation.find_replacements(part)
            if start == 0 or not self._is_over():
                start, size = start + len(part), min(2 * size, MAX_PART_SIZE)
        if start == len(candidates):
            proposed_commands += consolidation.find_deletions(earlier_candidates)
            proposed_commands += consolidation.find_replacements(earlier_candidates)
        consolidation.mark_as_unreached(candidates[start:])
        return consolidation, proposed_commands

    def search_mixed_sets_first(self, eligible: list[Candidate], *, with_several: bool) -> ConsolidationResult | None:
        """Return the result for *eligible* with mixed sets before deletions; None if there is no mixed set."""
        consolidation = self._build_consolidation(eligible)
        candidates = [candidate for part in split_at_cursor(self._cursor, eligible) for candidate in part]
        proposed_commands = consolidation.find_mixed_sets(candidates, with_several=with_several)
        if not proposed_commands or self._is_over():
            return None
        proposed_commands += consolidation.find_deletions(candidates)
        return consolidation, [*proposed_commands, *consolidation.find_replacements(candidates)]

    def _find_deletions(self, eligible: list[Candidate]) -> ConsolidationResult:
        consolidation = self._build_consolidation(eligible)
        return consolidation, consolidation.find_deletions(eligible)


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
