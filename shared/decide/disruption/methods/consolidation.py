"""Consolidation: remove nodes whose pods fit on other nodes, or on cheaper new nodes.

Karpenter tries the first n candidates together for some n, then each alone. Joiner removes nodes one after the other,
each on top of the earlier ones, as long as their pods fit; then it replaces sets of nodes by several new nodes, and the
remaining nodes, alone or together, by one new node.
"""

from collections.abc import Iterable, Sequence

from shared.decide.disruption.budgets.budget_tracker import BudgetTracker
from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.consolidation_policy import explain_delete_only, is_delete_only
from shared.decide.disruption.methods.consolidation_context import UNDERUTILIZED_REASON, ConsolidationContext
from shared.decide.disruption.methods.deletion import DeletionSearch
from shared.decide.disruption.methods.mixed_sets import MixedSets
from shared.decide.disruption.methods.proposed_command import ProposedCommand
from shared.decide.disruption.methods.several_replacements import SeveralReplacements
from shared.decide.disruption.methods.single_and_multi_node_consolidation import SingleAndMultiNodeConsolidation
from shared.decide.disruption.savings.refusal import ReplacementRefusal
from shared.model.decisions.disruption_verdict import KeptVerdict


class Consolidation:
    """Searches for nodes to consolidate, with one method after the other."""

    def __init__(self, context: ConsolidationContext) -> None:
        """Search in the simulation of *context*."""
        self._context = context
        self._search = SingleAndMultiNodeConsolidation(context)

    @property
    def kept_verdicts(self) -> dict[str, KeptVerdict]:
        """Verdicts for the candidates that are kept, by node name."""
        return self._context.kept_verdicts

    @property
    def unreached(self) -> list[str]:
        """Names of candidates that were not evaluated completely within the time limit, in order."""
        return self._context.unreached_names

    def mark_as_unreached(self, candidates: Iterable[Candidate]) -> None:
        """Record that *candidates*, and no others, were not evaluated completely within the time limit."""
        self._context.unreached_names = [candidate.name for candidate in candidates]

    @property
    def budget_tracker(self) -> BudgetTracker:
        """The budgets, of which the commands of this consolidation have used their share."""
        return self._context.budget_tracker

    @property
    def candidates_over_budget(self) -> list[Candidate]:
        """Candidates that were not tried because their disruption budget is used up."""
        return self._search.candidates_over_budget

    def find_mixed_sets(self, candidates: Sequence[Candidate], *, with_several: bool) -> list[ProposedCommand]:
        """Return sets of spot nodes and others among *candidates* to replace, before any of them is deleted.

        *with_several*: also sets that become several nodes.
        """
        context, replaceable = self._context, [candidate for candidate in candidates if not is_delete_only(candidate)]
        proposed_commands = SeveralReplacements(context).find_replacements(replaceable) if with_several else []
        return [
            *proposed_commands,
            *MixedSets(context, self._search).find_replacements(context.filter_remaining(replaceable)),
        ]

    def find_deletions(self, candidates: Sequence[Candidate]) -> list[ProposedCommand]:
        """Return the *candidates* that can be removed without a new node; candidates are tried in their order."""
        context = self._context
        return context.record_commands(DeletionSearch(context).find_deletions(context.filter_remaining(candidates)))

    def find_replacements(self, candidates: Sequence[Candidate]) -> list[ProposedCommand]:
        """Return further *candidates* to remove by launching cheaper new nodes."""
        context, replaceable = self._context, [candidate for candidate in candidates if not is_delete_only(candidate)]
        proposed_commands = SeveralReplacements(context).find_replacements(context.filter_remaining(replaceable))
        proposed_commands += self._search.find_replacements(context.filter_remaining(replaceable))
        self._explain_delete_only(context.filter_remaining(filter(is_delete_only, candidates)))
        return proposed_commands

    def _explain_delete_only(self, candidates: Iterable[Candidate]) -> None:
        """Record why *candidates*, which may only be deleted, stay."""
        context = self._context
        for candidate in candidates:
            if not context.budget_tracker.has_budget_for((candidate,), UNDERUTILIZED_REASON):
                self._search.candidates_over_budget.append(candidate)
                continue
            value = context.evaluate_savings((candidate,), candidate.price_usd_per_hour)
            context.kept_verdicts[candidate.name] = (
                KeptVerdict(node=candidate.name, reason=value.reason, message=value.message)
                if isinstance(value, ReplacementRefusal)
                else explain_delete_only(candidate)
            )
