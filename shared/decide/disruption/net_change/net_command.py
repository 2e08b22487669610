"""One command with the net change of several: each node is disrupted once, and each pod moves once.

The command is subject to every rule of a command that the disruption controller finds: candidates, budgets, constraints
of pods, limits of NodePools, and savings. If a rule refuses it, there is no net command.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from shared.decide.disruption.budgets.budget_tracker import BudgetTracker
from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.budgets.workload_cooldown import WorkloadCooldown
from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.consolidation_policy import (
    explain_consolidation_refusal,
    explain_emptiness_refusal,
    explain_replacement_refusal,
)
from shared.decide.disruption.disruption_context import NO_EXPECTED_PODS, DisruptionContext
from shared.decide.disruption.drift.drift import DRIFTED
from shared.decide.disruption.methods.consolidation_context import UNDERUTILIZED_REASON, ConsolidationContext
from shared.decide.disruption.methods.proposed_command import ProposedCommand, sum_prices
from shared.decide.disruption.net_change.net_placement import NetPlacement, place_net_change
from shared.decide.disruption.savings.command_value import CommandValue
from shared.decide.disruption.simulation.simulation_builder import SimulationSetup
from shared.decide.scheduling.packing.node_costs import compute_extra_costs_by_node_pool
from shared.model.decisions.command import MAX_TARGETS_PER_COMMAND, CommandReason
from shared.model.decisions.placement import NewNodeClaim, SchedulingOptions
from shared.state.cluster_state import ClusterState

MIN_SAVINGS_USD_PER_HOUR: Final = 1e-6


class NetChange(msgspec.Struct, frozen=True, kw_only=True):
    """What several commands, one after the other, change in the end."""

    targets: tuple[Candidate, ...]
    """The disrupted nodes that existed before the first command."""
    new_nodes: tuple[NewNodeClaim, ...]
    """The new nodes that exist after the last command."""
    node_by_pod: Mapping[str, str]
    """Where the moved pods are after the last command."""
    reason: CommandReason | None
    """The reason for which all targets may be disrupted; None: there is none."""


def compute_net_change(commands: Sequence[ProposedCommand]) -> NetChange:
    """Return the net change of *commands*, each of which starts from the result of the previous ones."""
    created_names = {node.name for command in commands for node in command.new_nodes}
    removed_names = {target.name for command in commands for target in command.targets}
    sources = [(target, command) for command in commands for target in command.targets]
    reasons = {command.reason for target, command in sources if target.name not in created_names}
    return NetChange(
        targets=tuple(target for target, _ in sources if target.name not in created_names),
        new_nodes=tuple(node for command in commands for node in command.new_nodes if node.name not in removed_names),
        node_by_pod={pod: node for command in commands for pod, node in command.moves},
        reason=_choose_reason(commands, reasons),
    )


def _choose_reason(
    commands: Sequence[ProposedCommand], target_reasons: Iterable[CommandReason]
) -> CommandReason | None:
    """Return the common reason of the targets; consolidation may continue what drift began, not the reverse."""
    reasons = set(target_reasons)
    if len(reasons) != 1 or any(command.static_claims for command in commands):
        return None
    [reason] = reasons
    followers = {DRIFTED, UNDERUTILIZED_REASON} if reason == DRIFTED else {reason}
    return reason if all(command.reason in followers for command in commands) else None


def build_net_command(
    cluster_state: ClusterState,
    commands: Sequence[ProposedCommand],
    options: SchedulingOptions,
    settings: DisruptionSettings,
) -> ProposedCommand | None:
    """Return one command with the net change of *commands* in *cluster_state*, None if a rule refuses it.

    *cluster_state* need not be the one that the first command was found in. The final nodes and prices are those of
    *commands*; instance types that no longer hold the pods of a new node are left out.
    """
    change = compute_net_change(commands)
    tracker = BudgetTracker(cluster_state, settings, frozenset())
    if (
        change.reason is None
        or not 0 < len(change.targets) <= MAX_TARGETS_PER_COMMAND
        or not tracker.has_budget_for(change.targets, change.reason)
    ):
        return None
    return _NetCommandBuilder(cluster_state, change, change.reason, options, settings).build(commands)


class _NetCommandBuilder:
    """Checks a net change by the rules of its reason."""

    def __init__(
        self,
        cluster_state: ClusterState,
        change: NetChange,
        reason: CommandReason,
        options: SchedulingOptions,
        settings: DisruptionSettings,
    ) -> None:
        self._cluster_state, self._change, self._reason = cluster_state, change, reason
        self._options = options
        self._context = DisruptionContext(cluster_state, options, frozenset(), NO_EXPECTED_PODS, settings)

    def build(self, commands: Sequence[ProposedCommand]) -> ProposedCommand | None:
        targets = self._find_targets()
        if targets is None:
            return None
        if self._reason not in (DRIFTED, UNDERUTILIZED_REASON):
            return msgspec.structs.replace(commands[0], targets=targets) if len(commands) == 1 else None
        return self._build(targets, commands, is_pinned=False) or (
            self._build(targets, commands, is_pinned=True) if self._change.new_nodes else None
        )

    def _find_targets(self) -> tuple[Candidate, ...] | None:
        """Return the targets as they are now, None if one of them must not be disrupted."""
        candidates: list[Candidate] = []
        for target in self._change.targets:
            state = self._cluster_state.node_by_name.get(target.name)
            candidate = (
                self._context.evaluate_node(state, eventual=self._reason == DRIFTED) if state is not None else None
            )
            if not isinstance(candidate, Candidate) or self._must_stay(candidate):
                return None
            candidates.append(candidate)
        return tuple(candidates)

    def _must_stay(self, candidate: Candidate) -> bool:
        if self._reason == DRIFTED:
            return not self._context.has_drifted(candidate.state)
        if self._reason != UNDERUTILIZED_REASON:
            return explain_emptiness_refusal(candidate, self._cluster_state, self._context.buffer_nodes) is not None
        explain_refusal = explain_replacement_refusal if self._change.new_nodes else explain_consolidation_refusal
        return candidate.is_empty() or explain_refusal(candidate, self._cluster_state) is not None

    def _build(
        self, targets: tuple[Candidate, ...], commands: Sequence[ProposedCommand], *, is_pinned: bool
    ) -> ProposedCommand | None:
        """Return the net command; *is_pinned*: new nodes have the zone and capacity type of their cheapest offering."""
        setup = self._context.set_up_simulation(targets, (), keeps_anti_affinity=self._reason == UNDERUTILIZED_REASON)
        if self._reason == UNDERUTILIZED_REASON:
            self._context.close_recently_changed_nodes(setup)
        if any(pod.name in setup.unplannable_pods for target in targets for pod in target.state.pods):
            return None
        consolidation = self._build_consolidation_context(setup)
        placement = place_net_change(
            consolidation,
            targets,
            self._change.new_nodes,
            self._change.node_by_pod,
            is_drift=self._reason == DRIFTED,
            is_pinned=is_pinned,
        )
        if placement is None:
            return None
        if self._reason == DRIFTED:
            return _build_drift_command(targets, placement, commands)
        price = sum_prices(targets)
        savings = price - sum(node.cheapest.price_usd_per_hour for node in placement.new_nodes)
        receivers = {node for _, node in placement.moves if node in self._cluster_state.node_by_name}
        value = consolidation.evaluate_savings(targets, savings, receivers)
        if not isinstance(value, CommandValue) or savings <= MIN_SAVINGS_USD_PER_HOUR:
            return None
        if not placement.new_nodes:
            return consolidation.build_deletion(targets, placement.moves)
        return consolidation.build_replacement(targets, placement.new_nodes, placement.moves, value)

    def _build_consolidation_context(self, setup: SimulationSetup) -> ConsolidationContext:
        evaluated_nodes = self._context.evaluate_nodes()
        candidates = {name: item for name, item in evaluated_nodes.items() if isinstance(item, Candidate)}
        evaluator = self._context.build_evaluator(candidates)
        no_cooldown = WorkloadCooldown.build_disabled(self._cluster_state.taken_at)
        checks = (self._context.build_replacement_finder(setup), self._context.budget_tracker, no_cooldown)
        return ConsolidationContext(
            setup,
            (*checks, evaluator.evaluate),
            compute_extra_costs_by_node_pool(self._cluster_state.snapshot, self._options),
            lambda: False,
        )


def _build_drift_command(
    targets: tuple[Candidate, ...], placement: NetPlacement, commands: Sequence[ProposedCommand]
) -> ProposedCommand:
    messages = dict.fromkeys(command.message for command in commands if command.reason == DRIFTED)
    return ProposedCommand(
        method="Drift",
        reason=DRIFTED,
        targets=targets,
        new_nodes=placement.new_nodes,
        moves=placement.moves,
        price_usd_per_hour=sum_prices(targets),
        message="; ".join(messages),
    )
