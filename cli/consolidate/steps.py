"""Simulated disruption, step by step until there is no further command; nothing else changes in the cluster."""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import accumulate
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from cli.planning.fleet import Fleet, build_fleet, estimate_ideal_cost, get_node_name
from shared.cycles.setup.python_gc import pause_garbage_collection
from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.cluster_after_commands import predict_cluster_after
from shared.decide.disruption.disruption_controller import DisruptionDecision, decide_node_disruption
from shared.decide.disruption.methods.proposed_command import ProposedCommand
from shared.decide.disruption.net_change.net_steps import merge_commands
from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.disruption_verdict import BlockedVerdict, KeptVerdict
from shared.model.decisions.placement import SchedulingOptions
from shared.state.cluster_state import ClusterState

StopReason: TypeAlias = Literal["steps", "runs", "price", "interrupted"]
RunCallback: TypeAlias = Callable[[int, float], None]
DISRUPTION_REASONS: Final = ("Empty", "Drifted", "Underutilized")
MAX_DISRUPTION_RUNS: Final = 1000
"""Each run makes the cluster cheaper, so no cluster needs this many."""


class ConsolidationStep(msgspec.Struct, frozen=True, kw_only=True):
    """One disruption command, and the cost of the fleet after it."""

    proposed_command: ProposedCommand
    price_usd_per_hour: float


class ConsolidationResult(msgspec.Struct, frozen=True, kw_only=True):
    """All steps of a simulated consolidation."""

    before: Fleet
    after: Fleet
    steps: tuple[ConsolidationStep, ...]
    blocked: tuple[BlockedVerdict, ...]
    kept_verdicts: tuple[KeptVerdict, ...]
    underway: tuple[BlockedVerdict, ...]
    """Nodes that were already being deleted, and claims that have no node yet."""
    ideal_usd_per_hour: float
    """Cost if all pods of the disruptable nodes were rescheduled at once; other nodes do not change."""
    stopped: StopReason | None
    """Why there may be more steps; None: there is no further command."""
    cluster: ClusterSnapshot
    """The cluster after all steps."""


class StepLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions that end the simulation."""

    reasons: Collection[str] = DISRUPTION_REASONS
    max_steps: int | None = None
    max_runs: int | None = None
    until: Callable[[float], bool] | None = None
    """Called with the cost of the fleet in USD per hour; True stops."""

    def find_reached_limit(self, steps: int, price: float) -> StopReason | None:
        """Return the limit that forbids one more step, None if none does."""
        if self.max_steps is not None and steps >= self.max_steps:
            return "steps"
        return "price" if self.until is not None and self.until(price) else None


NO_LIMITS: Final = StepLimits()


def consolidate(
    cluster: ClusterSnapshot,
    options: SchedulingOptions,
    settings: DisruptionSettings,
    limits: StepLimits = NO_LIMITS,
    report_run: RunCallback | None = None,
) -> ConsolidationResult:
    """Take steps until there are none, a limit is reached, or Ctrl-C; call *report_run* after each disruption run.

    Raises:
        KeyboardInterrupt: Ctrl-C before the first run ended.
    """
    cluster_state = ClusterState(cluster)
    ideal_cost = estimate_ideal_cost(cluster_state, options, settings)
    paused_reasons = frozenset(DISRUPTION_REASONS) - frozenset(limits.reasons)
    runner = _StepRunner(cluster_state, options, settings, paused_reasons, limits)
    try:
        runner.run_until_stopped(report_run)
    except KeyboardInterrupt:
        if runner.last_decision is None:
            raise
        runner.stopped = "interrupted"
    return runner.build_result(build_fleet(cluster_state), ideal_cost)


def take_all_steps(
    cluster_state: ClusterState,
    options: SchedulingOptions,
    settings: DisruptionSettings,
    paused_reasons: Collection[str],
) -> tuple[ClusterState, Callable[[], tuple[ConsolidationStep, ...]]]:
    """Take steps until there are none; return the cluster after them, and a function that returns the merged steps."""
    runner = _StepRunner(cluster_state, options, settings, frozenset(paused_reasons), NO_LIMITS)
    runner.run_until_stopped(None)
    return runner.cluster_state, runner.merge_steps


class _StepRunner:
    """Runs disruption repeatedly and collects its steps."""

    def __init__(
        self,
        cluster_state: ClusterState,
        options: SchedulingOptions,
        settings: DisruptionSettings,
        paused_reasons: frozenset[str],
        limits: StepLimits,
    ) -> None:
        self.cluster_state, self._options, self._settings, self._limits = cluster_state, options, settings, limits
        self._cluster_before, self._paused_reasons = cluster_state.snapshot, paused_reasons
        self._price_before = self._price = build_fleet(cluster_state).price_usd_per_hour
        self._proposed_commands: list[ProposedCommand] = []
        self.last_decision: DisruptionDecision | None = None
        self.stopped: StopReason | None = None

    def run_until_stopped(self, report_run: RunCallback | None) -> None:
        """Take steps; call *report_run* with the number of steps and the cost of the fleet after each run."""
        for _ in range(MAX_DISRUPTION_RUNS if self._limits.max_runs is None else self._limits.max_runs):
            with pause_garbage_collection():
                self.last_decision = decide_node_disruption(
                    self.cluster_state,
                    options=self._options,
                    paused_reasons=self._paused_reasons,
                    settings=self._settings,
                )
            if not self.last_decision.proposed_commands:
                return
            self._take(self.last_decision.proposed_commands)
            if self.stopped is not None:
                return
            if report_run is not None:
                report_run(len(self._proposed_commands), self._price)
        self.stopped = "runs"

    def _take(self, proposed_commands: Iterable[ProposedCommand]) -> None:
        taken_commands: list[ProposedCommand] = []
        for proposed_command in proposed_commands:
            self.stopped = self._limits.find_reached_limit(len(self._proposed_commands), self._price)
            if self.stopped is not None:
                break
            taken_commands.append(proposed_command)
            self._price -= proposed_command.savings_usd_per_hour
            self._proposed_commands.append(proposed_command)
        self.cluster_state = ClusterState(predict_cluster_after(self.cluster_state.snapshot, taken_commands))

    def merge_steps(self) -> tuple[ConsolidationStep, ...]:
        """Return the steps, merged to their net change: none removes a node that an earlier one has launched."""
        with pause_garbage_collection():
            net_commands = merge_commands(self._cluster_before, self._proposed_commands, self._options, self._settings)
        return self._build_steps(net_commands)

    def _build_steps(self, proposed_commands: Sequence[ProposedCommand]) -> tuple[ConsolidationStep, ...]:
        """Return *proposed_commands* with the cost of the fleet after each of them."""
        savings = (-command.savings_usd_per_hour for command in proposed_commands)
        _, *prices = accumulate(savings, initial=self._price_before)
        return tuple(
            ConsolidationStep(proposed_command=command, price_usd_per_hour=price)
            for command, price in zip(proposed_commands, prices, strict=True)
        )

    def build_result(self, before: Fleet, ideal_cost: float) -> ConsolidationResult:
        """Return the result, with the verdicts on nodes that still exist."""
        after, states = build_fleet(self.cluster_state), self.cluster_state.nodes
        names = {state.name: get_node_name(state) for state in states}
        underway = {get_node_name(state) for state in states if state.node is None or state.is_marked_for_deletion()}
        all_verdicts = self.last_decision.verdicts if self.last_decision is not None else ()
        verdicts = [replace(verdict, node=names[verdict.node]) for verdict in all_verdicts if verdict.node in names]
        blocked = [verdict for verdict in verdicts if isinstance(verdict, BlockedVerdict)]
        return ConsolidationResult(
            before=before,
            after=after,
            steps=self._build_steps(self._proposed_commands) if self.stopped == "interrupted" else self.merge_steps(),
            blocked=tuple(verdict for verdict in blocked if verdict.node not in underway),
            kept_verdicts=tuple(verdict for verdict in verdicts if isinstance(verdict, KeptVerdict)),
            underway=tuple(verdict for verdict in blocked if verdict.node in underway),
            ideal_usd_per_hour=min(ideal_cost, after.price_usd_per_hour),
            stopped=self.stopped,
            cluster=self.cluster_state.snapshot,
        )
