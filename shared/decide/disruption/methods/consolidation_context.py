"""Shared state of the consolidation methods: simulation, checks, nodes already disrupted, and kept verdicts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from shared.decide.disruption.budgets.budget_tracker import BudgetTracker
from shared.decide.disruption.budgets.workload_cooldown import WorkloadCooldown
from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.methods.proposed_command import ProposedCommand, sum_prices
from shared.decide.disruption.methods.replacement import ReplacementFinder
from shared.decide.disruption.savings.command_value import CommandValue, merge_values
from shared.decide.disruption.savings.refusal import ReplacementRefusal
from shared.decide.disruption.savings.savings_duration import MAX_SAVINGS_DURATION
from shared.decide.disruption.simulation.simulation_builder import SimulationSetup
from shared.model.core.formatting import format_count, format_usd_per_hour
from shared.model.decisions.disruption_verdict import KeptVerdict
from shared.model.decisions.offering_text import format_offering
from shared.model.decisions.placement import NewNodeClaim
from shared.model.kubernetes.pod import Pod

UNDERUTILIZED_REASON: Final = "Underutilized"


class SavingsCheck(Protocol):
    """Evaluates commands."""

    def __call__(
        self, targets: Sequence[Candidate], savings_usd_per_hour: float, receivers: Iterable[str] = ()
    ) -> CommandValue | ReplacementRefusal:
        """Return the value of disrupting *targets* for these savings, or why the savings do not justify it.

        *receivers*: names of the existing nodes that receive their pods.
        """


class ConsolidationContext:
    """Nodes of commands found so far are removed from the simulation."""

    def __init__(
        self,
        setup: SimulationSetup,
        checks: tuple[ReplacementFinder, BudgetTracker, WorkloadCooldown, SavingsCheck],
        extra_cost_by_pool: Mapping[str, float],
        is_over: Callable[[], bool],
    ) -> None:
        """Search in the simulation of *setup*; *extra_cost_by_pool*: cost of a node in addition to its instance."""
        self.setup, self.simulation = setup, setup.simulation
        self.replacement_finder, self.budget_tracker, self._cooldown, self.evaluate_savings = checks
        self.extra_cost_by_pool, self.is_over = extra_cost_by_pool, is_over
        self.kept_verdicts: dict[str, KeptVerdict] = {}
        self.unreached_names: list[str] = []
        """Names of candidates that were not evaluated completely within the time limit, in order."""
        self.disrupted_nodes: set[str] = set()
        self.expected_pod_by_node: dict[str, str] = {}

    def record_commands(self, proposed_commands: Iterable[ProposedCommand]) -> list[ProposedCommand]:
        """Record which nodes are disrupted and where their pods are expected; nodes that expect pods stay for now.

        Return the commands without those that a cool-down refuses because of an earlier command of this run.
        """
        recorded_commands: list[ProposedCommand] = []
        for proposed_command in proposed_commands:
            if self._cooldown.explain_refusal(proposed_command.targets):
                self.filter_remaining(proposed_command.targets)
                continue
            recorded_commands.append(proposed_command)
            self._cooldown.reserve(proposed_command.targets)
            self.budget_tracker.reserve(proposed_command.targets)
            self.disrupted_nodes.update(target.name for target in proposed_command.targets)
            for pod, node in proposed_command.moves:
                self.expected_pod_by_node.setdefault(node, pod)
        for name in self.disrupted_nodes:
            self.kept_verdicts.pop(name, None)
        return recorded_commands

    def filter_remaining(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Return the *candidates* that are still available."""
        return list(self.iterate_remaining(candidates))

    def iterate_remaining(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """Yield those of *candidates* that are still available, each when it is needed."""
        for candidate in candidates:
            if candidate.name in self.expected_pod_by_node:
                message = (
                    "pods of disrupted nodes are expected there, for example "
                    f"{self.expected_pod_by_node[candidate.name]}"
                )
                self.kept_verdicts[candidate.name] = KeptVerdict(
                    node=candidate.name, reason="Expecting", message=message
                )
            elif candidate.name in self.disrupted_nodes or candidate.name in self.unreached_names:
                continue
            elif (kept_verdict := self._cooldown.find_verdict(candidate)) is not None:
                self.kept_verdicts[candidate.name] = kept_verdict
            else:
                yield candidate

    def find_unplannable_pod(self, candidate: Candidate) -> str:
        """Return the name of a pod that would have to move and cannot be planned, or "" if there is none."""
        return next((pod.name for pod in candidate.state.pods if pod.name in self.setup.unplannable_pods), "")

    def find_pod_kept_apart(self, pods: Iterable[str]) -> tuple[str, str] | None:
        """Return the first of *pods* that kept anti-affinity keeps from another node with room; None if there is none.

        The second name is the pod that has the anti-affinity: the pod itself, or a pod that keeps it away.
        """
        if not self.setup.kept_anti_affinity:
            return None
        packing = self.simulation.packing
        open_nodes = [
            node for number, node in enumerate(packing.existing_nodes) if not packing.closed_nodes >> number & 1
        ]
        for name in sorted(set(pods)):
            pod_class = self.simulation.queued_class_by_pod[name][1]
            owner = self.setup.find_kept_term_owner(self.simulation.movable_pods[name])
            if owner and any(node.count_fitting_pods(pod_class, 1) for node in open_nodes):
                return name, owner
        return None

    def is_placement_uncertain(self, targets: Sequence[Candidate], pods: Sequence[Pod]) -> bool:
        """Return whether *pods* of removed *targets* may fit on the other nodes only in the order of the plan.

        It is checked if evictions have a price, unless the targets have been quiet for a day. The targets are cleared.
        """
        value = self.evaluate_savings(targets, sum_prices(targets))
        return (
            isinstance(value, CommandValue)
            and value.cost.evictions_usd > 0
            and value.duration.expected < MAX_SAVINGS_DURATION
            and not self.simulation.can_place_smallest_first(pods)
        )

    def count_new_nodes(self) -> int:
        """Return the number of new nodes in the simulation."""
        return len(self.simulation.packing.open_nodes)

    def build_deletion(self, targets: Sequence[Candidate], moves: tuple[tuple[str, str], ...]) -> ProposedCommand:
        """Return a proposed command that removes *targets* without a new node; *moves*: nodes of their pods."""
        savings = sum_prices(targets)
        values = [
            self.evaluate_savings((target,), target.price_usd_per_hour, _list_receivers(target, moves))
            for target in targets
        ]
        single_values = [value for value in values if isinstance(value, CommandValue)]
        value = merge_values(single_values) if len(single_values) == len(targets) else self._get_value(targets, savings)
        subject = "its pods" if len(targets) == 1 else f"the pods of the {len(targets)} nodes"
        return ProposedCommand(
            method="SingleNode" if len(targets) == 1 else "MultiNode",
            reason=UNDERUTILIZED_REASON,
            targets=tuple(targets),
            moves=moves,
            price_usd_per_hour=savings,
            value=value,
            message=f"{subject} fit on other nodes"
            + ("" if value is not None and value.cost.usd > 0 else f"; saves {format_usd_per_hour(savings)}"),
        )

    def build_replacement(
        self,
        targets: Sequence[Candidate],
        new_nodes: Sequence[NewNodeClaim],
        moves: tuple[tuple[str, str], ...],
        value: CommandValue,
    ) -> ProposedCommand:
        """Return a proposed command that replaces *targets* with *new_nodes*; *moves*: nodes of their pods."""
        price = sum_prices(targets)
        new_nodes_text = (
            format_offering(new_nodes[0].cheapest) if len(new_nodes) == 1 else f"{len(new_nodes)} cheaper nodes"
        )
        return ProposedCommand(
            method="SingleNode" if len(targets) == 1 else "MultiNode",
            reason=UNDERUTILIZED_REASON,
            targets=tuple(targets),
            new_nodes=tuple(new_nodes),
            moves=moves,
            price_usd_per_hour=price,
            value=value,
            message=(
                f"replaces {format_count(len(targets), 'node')} ({format_usd_per_hour(price)}) with {new_nodes_text}"
            ),
        )

    def _get_value(self, targets: Sequence[Candidate], savings_usd_per_hour: float) -> CommandValue | None:
        value = self.evaluate_savings(targets, savings_usd_per_hour)
        return value if isinstance(value, CommandValue) else None


def _list_receivers(target: Candidate, moves: Iterable[tuple[str, str]]) -> list[str]:
    """Return the names of the nodes that receive the pods of *target* by *moves*."""
    pods = {pod.name for pod in target.state.pods}
    return [node for pod, node in moves if pod in pods]
