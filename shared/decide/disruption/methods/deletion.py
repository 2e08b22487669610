"""Deletion: nodes whose pods fit on other nodes are removed one after the other, each on top of the earlier ones."""

from collections.abc import Iterable, Sequence

from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.methods.consolidation_context import UNDERUTILIZED_REASON, ConsolidationContext
from shared.decide.disruption.methods.proposed_command import ProposedCommand
from shared.decide.disruption.savings.command_value import CommandValue
from shared.decide.disruption.simulation.exceeded_share import find_exceeded_share
from shared.decide.disruption.simulation.simulation import list_pod_moves
from shared.model.decisions.command import MAX_TARGETS_PER_COMMAND


class DeletionSearch:
    """Searches for nodes that can be removed without a new node; the result is simulated again from the start."""

    def __init__(self, context: ConsolidationContext) -> None:
        """Search in the simulation of *context*."""
        self._context = context

    def find_deletions(self, candidates: Sequence[Candidate]) -> list[ProposedCommand]:
        """Return the *candidates* that can be removed; they are tried in their order."""
        simulation, deletable_candidates = self._context.simulation, list[Candidate]()
        simulation.begin()
        for position, candidate in enumerate(candidates):
            if self._context.is_over():
                self._context.unreached_names = [
                    unreached_candidate.name for unreached_candidate in candidates[position:]
                ]
                break
            if not self._context.budget_tracker.has_budget_for((candidate,), UNDERUTILIZED_REASON):
                continue
            value = self._context.evaluate_savings((candidate,), candidate.price_usd_per_hour)
            if isinstance(value, CommandValue) and self._is_deletable(candidate):
                deletable_candidates.append(candidate)
                self._context.budget_tracker.reserve((candidate,))
        self._context.budget_tracker.release(deletable_candidates)
        node_by_pod = self._find_planned_nodes(deletable_candidates)
        simulation.roll_back()
        return self._confirm_deletions(deletable_candidates, node_by_pod)

    def _is_deletable(self, candidate: Candidate) -> bool:
        simulation = self._context.simulation
        simulation.begin()
        pods = simulation.clear_node(simulation.node_numbers[candidate.name])
        is_uncertain = self._context.is_placement_uncertain((candidate,), pods)
        if (
            is_uncertain
            or simulation.place_pods(pods)
            or find_exceeded_share(simulation)
            or self._context.find_unplannable_pod(candidate)
            or not self._is_worthwhile(candidate)
        ):
            simulation.roll_back()
            return False
        simulation.commit()
        return True

    def _is_worthwhile(self, candidate: Candidate) -> bool:
        """Return whether the savings still pay, given the nodes that the last trial has placed the pods on."""
        receivers = [
            node
            for _, node in list_pod_moves(self._context.simulation, self._context.simulation.trials[-1].placements, {})
        ]
        value = self._context.evaluate_savings((candidate,), candidate.price_usd_per_hour, receivers)
        return isinstance(value, CommandValue)

    def _find_planned_nodes(self, deletable_candidates: Iterable[Candidate]) -> dict[str, int]:
        moved_pods = {pod.name for candidate in deletable_candidates for pod in candidate.state.pods}
        pods_by_node = self._context.simulation.resident_pods
        return {name: number for number, there in pods_by_node.items() for name in there if name in moved_pods}

    def _confirm_deletions(
        self, deletable_candidates: list[Candidate], node_by_pod: dict[str, int]
    ) -> list[ProposedCommand]:
        proposed_commands: list[ProposedCommand] = []
        while deletable_candidates:
            targets = deletable_candidates[:MAX_TARGETS_PER_COMMAND]
            savepoint = self._context.simulation.begin()
            if self._place_all(targets, node_by_pod):
                proposed_commands.append(
                    self._context.build_deletion(
                        targets, list_pod_moves(self._context.simulation, savepoint.placements, {})
                    )
                )
                self._context.simulation.commit()
                deletable_candidates = deletable_candidates[MAX_TARGETS_PER_COMMAND:]
            else:
                self._context.simulation.roll_back()
                deletable_candidates = deletable_candidates[: max(len(targets) - 1, 0) * 3 // 4]
        return proposed_commands

    def _place_all(self, targets: Iterable[Candidate], node_by_pod: dict[str, int]) -> bool:
        """Clear *targets* and place their pods, on their planned nodes where possible.

        Return whether all are placed, and no Spot share is exceeded by more than before.
        """
        simulation = self._context.simulation
        pods = [pod for target in targets for pod in simulation.clear_node(simulation.node_numbers[target.name])]
        return not simulation.place_pods_at(pods, node_by_pod) and not find_exceeded_share(simulation)
