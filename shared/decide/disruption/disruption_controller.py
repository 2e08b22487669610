"""The disruption controller: one run decides which nodes to disrupt together, and why each other node stays.

Methods run in Karpenter's order: emptiness, static drift, drift, consolidation. Karpenter stops at the first method
that finds a command and starts again; here each method continues with the nodes that the earlier ones left, and their
commands are disjoint. Budgets are counted across all methods.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from shared.decide.disruption.budgets.budget_tracker import BudgetTracker
from shared.decide.disruption.budgets.cluster_settings import EVERYTHING, DisruptionSettings
from shared.decide.disruption.budgets.spot_share_tracker import SpotShareTracker
from shared.decide.disruption.budgets.workload_cooldown import WorkloadCooldown
from shared.decide.disruption.candidates import Candidate
from shared.decide.disruption.cluster_after_commands import find_end
from shared.decide.disruption.consolidation_policy import (
    explain_consolidation_refusal,
    explain_drift_first,
    explain_emptiness_refusal,
)
from shared.decide.disruption.disruption_context import DEFAULT_SETTINGS, NO_EXPECTED_PODS, DisruptionContext
from shared.decide.disruption.drift.drift import DRIFTED
from shared.decide.disruption.methods.candidate_order import build_cursor, build_price_sort_key, build_ratio_sort_key
from shared.decide.disruption.methods.consolidation import Consolidation
from shared.decide.disruption.methods.consolidation_context import UNDERUTILIZED_REASON, ConsolidationContext
from shared.decide.disruption.methods.consolidation_search import ConsolidationSearch, is_end_cheaper
from shared.decide.disruption.methods.drift_replacement import DriftReplacement, replace_static_nodes
from shared.decide.disruption.methods.mixed_sets import can_have_mixed_sets
from shared.decide.disruption.methods.proposed_command import (
    EMPTY_REASON,
    ProposedCommand,
    build_emptiness_commands,
    convert_to_command,
)
from shared.decide.disruption.methods.replacement import ReplacementFinder
from shared.decide.disruption.savings.balanced_policy import BalancedEvaluator
from shared.decide.disruption.simulation.simulation_builder import SimulationSetup
from shared.decide.scheduling.packing.node_costs import compute_extra_costs_by_node_pool
from shared.model.decisions.command import CommandState, DisruptionCommand
from shared.model.decisions.disruption_verdict import BlockedVerdict, KeptVerdict, Verdict
from shared.model.decisions.placement import SchedulingOptions
from shared.state.cluster_state import ClusterState


class DisruptionDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a disruption run."""

    commands: tuple[DisruptionCommand, ...] = ()
    """Disjoint, in the order in which they were found."""
    verdicts: tuple[Verdict, ...] = ()
    """One for each node, sorted by name."""
    cursor: str = ""
    """The candidates that the next run starts with after a time limit; "" if all candidates were evaluated."""
    proposed_commands: tuple[ProposedCommand, ...] = ()
    """The proposed commands behind *commands*, in the same order."""


def decide_node_disruption(
    cluster_state: ClusterState,
    *,
    options: SchedulingOptions,
    paused_reasons: Collection[str] = (),
    cursor: str = "",
    is_time_over: Callable[[], bool] | None = None,
    command_nodes: frozenset[str] = frozenset(),
    node_by_pod: Mapping[str, str] = NO_EXPECTED_PODS,
    settings: DisruptionSettings = DEFAULT_SETTINGS,
    command_states: Iterable[CommandState] = (),
) -> DisruptionDecision:
    """Return which nodes to disrupt now.

    *paused_reasons*: reasons that are paused, ``pool/reason`` for those of one NodePool, `EVERYTHING` for all.
    *command_nodes*: names of nodes in running commands, which count as removed. *node_by_pod*: where the pods of these
    commands are expected; their other pods are wherever they fit. *is_time_over* returns whether the time limit is
    reached; candidates that were not reached come first in the next run if it gets *cursor*. *command_states*: open
    commands and recent ones, for the cool-down of workloads.
    """
    context = DisruptionContext(cluster_state, options, command_nodes, node_by_pod, settings)
    cooldown = WorkloadCooldown(settings.workload_cooldown, command_states, cluster_state.taken_at)
    controller = _DisruptionController(context, frozenset(paused_reasons), cooldown, is_time_over or (lambda: False))
    return controller.run(cursor)


class _DisruptionController:
    """The state of one disruption run."""

    def __init__(
        self,
        context: DisruptionContext,
        paused_reasons: frozenset[str],
        cooldown: WorkloadCooldown,
        is_time_over: Callable[[], bool],
        *,
        looks_ahead: bool = True,
    ) -> None:
        self._cooldown, self._looks_ahead = cooldown, looks_ahead
        self._context, self._paused_reasons, self._is_time_over = context, paused_reasons, is_time_over
        self._proposed_commands: list[ProposedCommand] = []
        self._verdicts: dict[str, Verdict] = {}
        self._disrupted_nodes: set[str] = set()
        self._simulation_setup: tuple[SimulationSetup, ReplacementFinder] | None = None

    def run(self, cursor: str) -> DisruptionDecision:
        evaluated_nodes = self._context.evaluate_nodes()
        candidates = {
            name: candidate for name, candidate in evaluated_nodes.items() if isinstance(candidate, Candidate)
        }
        self._verdicts |= {
            name: verdict for name, verdict in evaluated_nodes.items() if isinstance(verdict, BlockedVerdict)
        }
        self._find_empty_nodes(candidates.values())
        eligible = self._filter_consolidatable(candidates)
        self._replace_drifted_nodes(eligible)
        next_cursor = self._consolidate(
            [candidate for candidate in eligible if candidate.name not in self._disrupted_nodes], candidates, cursor
        )
        for proposed_command in self._proposed_commands:
            self._verdicts |= {verdict.node: verdict for verdict in proposed_command.build_verdicts()}
        return DisruptionDecision(
            commands=tuple(
                convert_to_command(
                    proposal, self._context.cluster_state.snapshot, self._cooldown.list_workloads(proposal.targets)
                )
                for proposal in self._proposed_commands
            ),
            verdicts=tuple(verdict for _, verdict in sorted(self._verdicts.items())),
            cursor=next_cursor,
            proposed_commands=tuple(self._proposed_commands),
        )

    def _add_commands(self, proposed_commands: Iterable[ProposedCommand]) -> None:
        for proposed_command in proposed_commands:
            self._proposed_commands.append(proposed_command)
            self._disrupted_nodes.update(target.name for target in proposed_command.targets)

    def _find_empty_nodes(self, candidates: Iterable[Candidate]) -> None:
        context, empty_candidates = self._context, list[Candidate]()
        share_tracker = SpotShareTracker(context.cluster_state, context.command_nodes)
        for candidate in share_tracker.sort_spot_first(sorted(candidates, key=build_ratio_sort_key)):
            kept_verdict = (
                explain_emptiness_refusal(candidate, context.cluster_state, context.buffer_nodes)
                or self._find_pause_verdict(candidate, EMPTY_REASON)
                or share_tracker.find_verdict(candidate)
            )
            if kept_verdict is not None:
                self._verdicts[candidate.name] = kept_verdict
            elif context.budget_tracker.has_budget_for((candidate,), EMPTY_REASON):
                empty_candidates.append(candidate)
                context.budget_tracker.reserve((candidate,))
                share_tracker.remove(candidate)
            else:
                self._verdicts[candidate.name] = _block_over_budget(candidate, EMPTY_REASON, context.budget_tracker)
        for proposed_command in build_emptiness_commands(empty_candidates):
            self._cooldown.reserve(proposed_command.targets)
            self._add_commands((proposed_command,))

    def _filter_consolidatable(self, candidates: Mapping[str, Candidate]) -> list[Candidate]:
        """Return the candidates for consolidation in their order; record verdicts for the others."""
        eligible_candidates: list[Candidate] = []
        for candidate in candidates.values():
            if candidate.is_empty():
                continue
            kept_verdict = (
                explain_consolidation_refusal(candidate, self._context.cluster_state)
                or self._find_pause_verdict(candidate, UNDERUTILIZED_REASON)
                or self._cooldown.find_verdict(candidate)
            )
            if kept_verdict is None:
                eligible_candidates.append(candidate)
            else:
                self._verdicts[candidate.name] = kept_verdict
        return sorted(eligible_candidates, key=build_price_sort_key)

    def _replace_drifted_nodes(self, eligible: list[Candidate]) -> None:
        if not any(self._context.has_drifted(state) for state in self._context.cluster_state.nodes):
            return
        drifted_candidates = []
        for candidate in self._context.evaluate_nodes(eventual=True).values():
            if (
                isinstance(candidate, BlockedVerdict)
                or candidate.name in self._disrupted_nodes
                or not self._context.has_drifted(candidate.state)
            ):
                continue
            kept_verdict = self._find_pause_verdict(candidate, DRIFTED) or self._cooldown.find_verdict(candidate)
            if kept_verdict is None:
                drifted_candidates.append(candidate)
            else:
                self._verdicts[candidate.name] = kept_verdict
        static_candidates = [drifted for drifted in drifted_candidates if drifted.pool.replicas is not None]
        proposed_commands, static_verdicts = replace_static_nodes(
            static_candidates,
            self._context.cluster_state,
            self._context.budget_tracker,
            self._context.command_nodes,
            self._context.build_eviction_costs(),
            self._cooldown,
        )
        self._add_commands(proposed_commands)
        self._verdicts |= {verdict.node: verdict for verdict in static_verdicts}
        dynamic_candidates = [verdict for verdict in drifted_candidates if verdict.pool.replicas is None]
        if not dynamic_candidates:
            return
        self._simulation_setup = setup, replacement_finder = self._build_simulation(eligible, keeps_anti_affinity=False)
        drift_replacement = DriftReplacement(
            setup,
            (replacement_finder, self._context.budget_tracker, self._cooldown),
            self._context.build_eviction_costs(),
            self._is_time_over,
        )
        self._add_commands(drift_replacement.find_replacements(dynamic_candidates))
        self._verdicts |= drift_replacement.verdicts

    def _build_simulation(
        self, eligible: list[Candidate], *, keeps_anti_affinity: bool
    ) -> tuple[SimulationSetup, ReplacementFinder]:
        setup = self._context.set_up_simulation(
            eligible, self._disrupted_nodes, keeps_anti_affinity=keeps_anti_affinity
        )
        return setup, self._context.build_replacement_finder(setup)

    def _consolidate(self, eligible: list[Candidate], candidates: Mapping[str, Candidate], cursor: str) -> str:
        if not eligible:
            return ""
        if self._simulation_setup is not None and self._context.find_kept_anti_affinity(self._disrupted_nodes):
            if any(command.reason == DRIFTED for command in self._proposed_commands):
                self._verdicts |= {candidate.name: explain_drift_first(candidate) for candidate in eligible}
                return cursor
            self._simulation_setup = None
        evaluator = self._context.build_evaluator(candidates)
        search = ConsolidationSearch(
            lambda order: self._build_consolidation(order, evaluator), cursor, self._is_time_over
        )
        has_not_drifted = self._simulation_setup is None
        consolidation, proposed_commands = search.search_deletions_first(eligible, tries_two_orders=has_not_drifted)
        if (
            self._looks_ahead
            and has_not_drifted
            and can_have_mixed_sets(eligible, spot_to_spot=self._context.settings.spot_to_spot)
        ):
            result = search.search_mixed_sets_first(eligible, with_several=bool(proposed_commands))
            if (
                result is not None
                and is_end_cheaper(result[1], proposed_commands)
                and is_end_cheaper(self._find_end(result[1]), self._find_end(proposed_commands))
            ):
                consolidation, proposed_commands = result
        self._add_commands(proposed_commands)
        self._verdicts |= consolidation.kept_verdicts
        for candidate in consolidation.candidates_over_budget:
            self._verdicts[candidate.name] = _block_over_budget(
                candidate, UNDERUTILIZED_REASON, consolidation.budget_tracker
            )
        return build_cursor(consolidation.unreached)

    def _build_consolidation(self, eligible: list[Candidate], evaluator: BalancedEvaluator) -> Consolidation:
        """Return a consolidation of *eligible*, in that order, in the existing simulation or in a new one."""
        context = self._context
        setup, replacement_finder = self._simulation_setup or self._build_simulation(eligible, keeps_anti_affinity=True)
        context.close_recently_changed_nodes(setup)
        extra_costs = compute_extra_costs_by_node_pool(context.cluster_state.snapshot, context.options)
        trackers = (context.budget_tracker.fork_tracker(), self._cooldown.fork_cooldown())
        checks = (replacement_finder, *trackers, evaluator.evaluate)
        return Consolidation(ConsolidationContext(setup, checks, extra_costs, self._is_time_over))

    def _find_end(self, proposed_commands: Iterable[ProposedCommand]) -> list[ProposedCommand] | None:
        """Return all commands until there are none, if this run proposes *proposed_commands*; None after the time."""
        commands = [*self._proposed_commands, *proposed_commands]
        return find_end(self._context.cluster_state, commands, self._decide_next_run, self._is_time_over)

    def _decide_next_run(self, cluster_state: ClusterState) -> Sequence[ProposedCommand]:
        """Return the commands of a later run, which does not look ahead."""
        context = self._context
        next_context = DisruptionContext(
            cluster_state, context.options, context.command_nodes, context.expected_node_by_pod, context.settings
        )
        cooldown = WorkloadCooldown.build_disabled(cluster_state.taken_at)
        controller = _DisruptionController(
            next_context, self._paused_reasons, cooldown, self._is_time_over, looks_ahead=False
        )
        return controller.run("").proposed_commands

    def _find_pause_verdict(self, candidate: Candidate, reason: str) -> KeptVerdict | None:
        if not self._paused_reasons & {reason, f"{candidate.pool.name}/{reason}", EVERYTHING}:
            return None
        is_pool_pause = not self._paused_reasons & {reason, EVERYTHING}
        pool_text = f" for NodePool {candidate.pool.name}, see its events" if is_pool_pause else ""
        return KeptVerdict(
            node=candidate.name, reason="Paused", message=f"disruption for reason {reason} is paused{pool_text}"
        )


def _block_over_budget(candidate: Candidate, reason: str, budget_tracker: BudgetTracker) -> BlockedVerdict:
    message = budget_tracker.explain_exhausted_budget(candidate.pool, reason)
    return BlockedVerdict(node=candidate.name, reason="Budget", message=message)
