"""Single-node and multi-node consolidation: replace one node or several nodes by one cheaper new node.

Each candidate is evaluated alone; then a set grows from each remaining candidate as long as each additional node
increases the savings. The result is simulated again from the start, because pods must be placed in an order in which
they can be bound.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from shared.decide.disruption.budgets.spot_share_tracker import SHARE_REASON, format_share_refusal
from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.methods.consolidation_context import (
    UNDERUTILIZED_REASON,
    ConsolidationContext,
)
from shared.decide.disruption.methods.proposed_command import ProposedCommand, sum_prices
from shared.decide.disruption.methods.replacement_result import Replacement
from shared.decide.disruption.savings.command_value import CommandValue
from shared.decide.disruption.savings.refusal import ReplacementRefusal
from shared.decide.disruption.simulation.exceeded_share import find_exceeded_share
from shared.decide.disruption.simulation.simulation import list_pod_moves
from shared.decide.scheduling.nodes.open_node_claim import OpenNodeClaim
from shared.decide.scheduling.pods.equivalence_class import PodEquivalenceClass
from shared.model.core.formatting import format_count, format_usd_per_hour
from shared.model.core.units import BYTES_PER_GIB
from shared.model.decisions.disruption_verdict import KeptVerdict
from shared.model.kubernetes.pod import Pod

MAX_SET_TRIALS_PER_RUN: Final = 1500
"""Number of trials that add a node to a set in one run."""
MIN_TRIALS_PER_SET: Final = 1
MAX_TRIALS_PER_SET: Final = 60
"""Limits for the number of trials for each set."""
MIN_SAVINGS_USD_PER_HOUR: Final = 1e-6
UNCERTAIN_MESSAGE: Final = (
    "its pods fit on other nodes only in one order, and kube-scheduler may bind them in another: waits until nothing "
    "has changed for 1d"
)


class SingleAndMultiNodeConsolidation:
    """Searches for nodes that can be removed together, with at most one new node that is cheaper."""

    def __init__(self, context: ConsolidationContext) -> None:
        """Search in the simulation of *context*."""
        self._context = context
        self.candidates_over_budget: list[Candidate] = []
        self._single_net_savings: dict[str, float] = {}
        self._worthwhile_nodes: set[str] = set()
        """Names of candidates whose removal alone saves money."""

    def find_replacements(self, candidates: list[Candidate]) -> list[ProposedCommand]:
        """Return proposed commands: sets of *candidates* to remove by launching one cheaper node."""
        proposed_commands: list[ProposedCommand] = []
        for position, candidate in enumerate(candidates):
            if self._context.is_over():
                self._context.unreached_names = self._context.unreached_names or [
                    unreached_candidate.name for unreached_candidate in candidates[position:]
                ]
                candidates = candidates[:position]
                break
            self._single_net_savings[candidate.name] = self.evaluate_single(candidate)
        trials = min(max(MAX_SET_TRIALS_PER_RUN // max(len(candidates), 1), MIN_TRIALS_PER_SET), MAX_TRIALS_PER_SET)
        for position, seed in enumerate(candidates):
            if self._context.is_over():
                names = [candidate.name for candidate in self._context.filter_remaining(candidates[position:])]
                self._context.unreached_names = [*names, *self._context.unreached_names]
                break
            if not self._context.filter_remaining((seed,)):
                continue
            other_candidates = self._context.iterate_remaining(
                candidates[number] for number in range(position + 1, len(candidates))
            )
            proposed_command = self._grow_set(seed, other_candidates, trials)
            if proposed_command is not None:
                proposed_commands.append(proposed_command)
                self._context.record_commands((proposed_command,))
        return proposed_commands

    def evaluate_single(self, candidate: Candidate) -> float:
        """Return the net savings if *candidate* is removed alone, or 0 and record why that is not possible."""
        if not self._context.budget_tracker.has_budget_for((candidate,), UNDERUTILIZED_REASON):
            self.candidates_over_budget.append(candidate)
            return 0.0
        simulation = self._context.simulation
        simulation.begin(max_new_nodes=1)
        value = self.simulate_removal(
            [candidate], self._context.count_new_nodes(), simulation.clear_node(simulation.node_numbers[candidate.name])
        )
        simulation.roll_back()
        if isinstance(value, ReplacementRefusal):
            self._context.kept_verdicts[candidate.name] = KeptVerdict(
                node=candidate.name, reason=value.reason, message=value.message
            )
            return 0.0
        if value.savings_usd_per_hour > MIN_SAVINGS_USD_PER_HOUR:
            self._worthwhile_nodes.add(candidate.name)
        return value.net_usd_per_hour

    def simulate_removal(
        self, targets: Sequence[Candidate], open_count_before: int, pods: Iterable[Pod]
    ) -> CommandValue | ReplacementRefusal:
        """Place *pods* and return the value if *targets* are removed, or the reason why that is not possible."""
        removed_pods = list(pods)
        is_uncertain = self._context.is_placement_uncertain(targets, removed_pods)
        unplaced_classes = self._context.simulation.place_pods(removed_pods)
        unplannable_pod = next(
            (name for candidate in targets if (name := self._context.find_unplannable_pod(candidate))), ""
        )
        if unplannable_pod:
            return ReplacementRefusal(
                reason="PodNotPlannable",
                message=f"pod {unplannable_pod}: {self._context.setup.unplannable_pods[unplannable_pod].message}",
            )
        refusal = self._explain_unplaced(unplaced_classes) if unplaced_classes else self._explain_exceeded_share()
        if refusal is not None:
            return refusal
        price = sum_prices(targets)
        open_nodes = self._context.simulation.packing.open_nodes[open_count_before:]
        if not open_nodes and is_uncertain:
            return ReplacementRefusal(reason="PlacementUncertain", message=UNCERTAIN_MESSAGE)
        receivers = self._context.simulation.list_receivers()
        if not open_nodes:
            return self._context.evaluate_savings(targets, price, receivers)
        replacement = self._context.replacement_finder.find_cheaper(open_nodes[0], targets)
        if isinstance(replacement, ReplacementRefusal):
            return self._explain_refusal(replacement, open_nodes[0], price)
        return self._context.evaluate_savings(targets, price - replacement.cheapest.price_usd_per_hour, receivers)

    def _explain_unplaced(self, unplaced_classes: Sequence[PodEquivalenceClass]) -> ReplacementRefusal:
        is_node_opened = self._context.simulation.packing.max_new_nodes == 0
        pods = sum(len(pod_class.pods) for pod_class in unplaced_classes)
        explanation = "need more than one new node" if is_node_opened else "fit no new node"
        kept_pod = self._context.find_pod_kept_apart(
            pod.name for pod_class in unplaced_classes for pod in pod_class.pods
        )
        if kept_pod is not None:
            return self._explain_kept_anti_affinity(*kept_pod, explanation)
        return ReplacementRefusal(
            reason="NoRoom", message=f"{format_count(pods, 'pod')} fit no other node, and {explanation}"
        )

    def _explain_exceeded_share(self) -> ReplacementRefusal | None:
        """Return which Spot share the trial exceeds; None if it exceeds none."""
        pool = find_exceeded_share(self._context.simulation)
        return ReplacementRefusal(reason=SHARE_REASON, message=format_share_refusal(pool)) if pool else None

    def _explain_refusal(self, refusal: ReplacementRefusal, node: OpenNodeClaim, price: float) -> ReplacementRefusal:
        kept_pod = self._context.find_pod_kept_apart(node.pods)
        if kept_pod is not None:
            return self._explain_kept_anti_affinity(*kept_pod, f"a new node: {refusal.message}")
        memory = node.used[1] / BYTES_PER_GIB
        pods = f"{format_count(len(node.pods), 'pod')} ({node.used[0]}m cpu, {memory:.1f} GiB)"
        return ReplacementRefusal(
            reason=refusal.reason, message=f"{refusal.message}: a node for {pods} below {format_usd_per_hour(price)}"
        )

    def _explain_kept_anti_affinity(self, pod: str, owner: str, explanation: str) -> ReplacementRefusal:
        keys = dict.fromkeys(term.topology_key for term in self._context.setup.kept_anti_affinity[owner])
        anti_affinity = "its preferred pod anti-affinity" if owner == pod else f"preferred anti-affinity of pod {owner}"
        return ReplacementRefusal(
            reason="PreferencesNotMet",
            message=(
                f"pod {pod} has room on other nodes, but not where its requirements are met and {anti_affinity} over "
                f"{' and '.join(keys)} holds as it does now; {explanation}"
            ),
        )

    def _grow_set(self, seed: Candidate, other_candidates: Iterable[Candidate], trials: int) -> ProposedCommand | None:
        simulation, open_count_before = self._context.simulation, self._context.count_new_nodes()
        if not self._context.budget_tracker.has_budget_for((seed,), UNDERUTILIZED_REASON):
            return None
        targets, net_savings = [seed], self._single_net_savings.get(seed.name, 0.0)
        is_worthwhile = seed.name in self._worthwhile_nodes
        simulation.begin(max_new_nodes=1)
        if simulation.place_pods(
            simulation.clear_node(simulation.node_numbers[seed.name])
        ) or self._context.find_unplannable_pod(seed):
            simulation.roll_back()
            return None
        for candidate in other_candidates:
            if trials <= 0 or self._context.is_over():
                break
            if candidate.price_usd_per_hour <= 0 or not self._context.budget_tracker.has_budget_for(
                (*targets, candidate), UNDERUTILIZED_REASON
            ):
                continue
            trials -= 1
            simulation.begin(max_new_nodes=1 - (len(simulation.packing.open_nodes) - open_count_before))
            set_value = self.simulate_removal(
                [*targets, candidate], open_count_before, simulation.clear_node(simulation.node_numbers[candidate.name])
            )
            if (
                isinstance(set_value, ReplacementRefusal)
                or set_value.net_usd_per_hour
                <= net_savings + self._single_net_savings.get(candidate.name, 0.0) + MIN_SAVINGS_USD_PER_HOUR
            ):
                simulation.roll_back()
                continue
            simulation.commit()
            targets.append(candidate)
            net_savings, is_worthwhile = set_value.net_usd_per_hour, True
        simulation.roll_back()
        return self.confirm_set(targets) if is_worthwhile else None

    def confirm_set(self, targets: list[Candidate]) -> ProposedCommand | None:
        """Simulate the removal of *targets* again, from the start, and return the proposed command if it saves money.

        If not all of them can be removed, the last ones are kept. The simulation is then that after the command.
        """
        simulation = self._context.simulation
        while targets:
            open_count_before, savepoint = self._context.count_new_nodes(), simulation.begin(max_new_nodes=1)
            pods = [pod for target in targets for pod in simulation.clear_node(simulation.node_numbers[target.name])]
            value = self.simulate_removal(targets, open_count_before, pods)
            if isinstance(value, CommandValue) and value.savings_usd_per_hour > MIN_SAVINGS_USD_PER_HOUR:
                proposed_command = self._build_proposed_command(targets, open_count_before, savepoint.placements, value)
                simulation.commit()
                simulation.seal_open_nodes()
                return proposed_command
            simulation.roll_back()
            targets = targets[:-1]
        return None

    def _build_proposed_command(
        self, targets: list[Candidate], open_count_before: int, moves: list[tuple[Pod, int]], value: CommandValue
    ) -> ProposedCommand:
        simulation = self._context.simulation
        open_nodes = simulation.packing.open_nodes[open_count_before:]
        replacement = self._context.replacement_finder.find_cheaper(open_nodes[0], targets) if open_nodes else None
        if not isinstance(replacement, Replacement):
            return self._context.build_deletion(targets, list_pod_moves(simulation, moves, {}))
        node = self._context.replacement_finder.accept(replacement, self._context.simulation.movable_pods)
        names = {len(simulation.packing.existing_nodes) + open_count_before: node.name}
        return self._context.build_replacement(targets, (node,), list_pod_moves(simulation, moves, names), value)
