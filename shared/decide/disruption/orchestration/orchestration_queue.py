"""The orchestration queue: each step of a command is written to the table before it is performed.

Every write carries the fencing token of the planner's lease: a controller that lost the lease writes nothing, and
performs nothing that has an effect.
"""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.orchestration.cleanup import clean_up_commands
from shared.decide.disruption.orchestration.command_state import (
    build_command_state,
    compute_command_timeout,
    with_launched_phase,
)
from shared.decide.disruption.orchestration.command_targets import (
    find_expected_nodes,
    list_command_nodes,
    list_marked_nodes,
)
from shared.decide.disruption.orchestration.command_transitions import advance_command
from shared.decide.disruption.orchestration.validation import validate_command
from shared.decide.disruption.pauses import PauseSettings, count_long_pending_pods, find_pauses
from shared.model.core.metadata import Problem
from shared.model.decisions.action import Action, CreateNodeClaim, FollowUp
from shared.model.decisions.action_outcome import Outcome
from shared.model.decisions.command import CommandState, DisruptionCommand, DisruptionPauses
from shared.model.decisions.decision_requests import DecisionProcess, PerformActions, WriteCommandState
from shared.model.decisions.placement import SchedulingOptions
from shared.state.cluster_state import ClusterState
from shared.state.moved_pods import (
    check_outcomes,
    record_moved_pods,
    with_recorded_failures,
)

LEASE_LOST: Final = "another run took the lease before the command was recorded"


class OrchestrationQueue(msgspec.Struct, kw_only=True):
    """The commands of one cycle, and how far they are."""

    cluster_state: ClusterState
    scheduling_options: SchedulingOptions
    disruption_settings: DisruptionSettings
    command_states: dict[str, CommandState]
    """Current states by command id."""
    pauses: DisruptionPauses = DisruptionPauses()
    changed_states: list[CommandState] = []
    """States written in this cycle, in order."""
    outcomes: list[Outcome] = []
    problems: list[Problem] = []
    requeue_delays: dict[str, timedelta] = {}
    """Delay by function of the follow-ups sent in this cycle."""
    outcome_window: timedelta = timedelta()
    """How long moved pods are checked; 0: not at all."""
    is_stopped: bool = False
    """Nothing more is done: another controller has the lease, or the mode is plan."""
    write_failure: str = ""
    """Why a step could not be written, "" if all were."""

    def advance_commands(self) -> DecisionProcess[None]:
        """Perform every step that is possible now, of all commands, sorted by name."""
        yield from self._record_failed_outcomes()
        for name in sorted(self.command_states):
            yield from self._advance_command(name)

    def begin_commands(
        self, commands: Iterable[DisruptionCommand], is_over: Callable[[], bool] | None = None
    ) -> DecisionProcess[None]:
        """Begin *commands*: write each one and taint its nodes. Paused commands are skipped.

        Commands that are left once *is_over* returns True are found again by the next sweep.
        """
        waiting_pods = count_long_pending_pods(self.cluster_state.snapshot)
        for command in commands:
            if is_over is not None and is_over():
                break
            existing_state = self.command_states.get(command.command_id)
            is_paused = any(self.pauses.find_pause_message(target.pool, command.reason) for target in command.targets)
            if is_paused or self.is_stopped or (existing_state is not None and existing_state.is_open):
                continue
            new_state = replace(
                build_command_state(command, self.cluster_state.taken_at), waiting_pod_count=waiting_pods
            )
            if existing_state is not None:
                new_state = replace(new_state, version=existing_state.version, failures=existing_state.failures)
            if (yield from self._write_state(new_state)):
                yield from self._advance_command(command.command_id)

    def remove_leftovers(self) -> DecisionProcess[None]:
        """Roll back what no open command accounts for: taints and annotations of ended commands."""
        if not self.is_stopped:
            yield from self._apply_actions(clean_up_commands(self.cluster_state, self.command_states.values()))

    def has_work(self) -> bool:
        """Return whether the next run has something to do even if nothing changes: a command, a pause or a retry."""
        is_any_open = any(state.is_open for state in self.command_states.values())
        return bool(is_any_open or self.changed_states or self.pauses.items or self.write_failure)

    def list_busy_nodes(self) -> frozenset[str]:
        """Return the names of nodes that get no new decision in this cycle.

        These are the nodes of open commands and the nodes with a disruption mark: it is being removed, or was still
        there when the snapshot was taken.
        """
        return list_command_nodes(self.command_states.values()) | list_marked_nodes(self.cluster_state)

    def compute_metrics(self) -> dict[str, float]:
        """Return the metrics of the queue."""
        saved_usd_per_hour = sum(
            state.command.savings_usd_per_hour for state in self.changed_states if state.phase == "INITIALIZED"
        )
        return {
            "OpenCommands": float(sum(state.is_open for state in self.command_states.values())),
            "ProposedCommands": float(sum(state.phase == "PROPOSED" for state in self.changed_states)),
            "RolledBackCommands": float(sum(state.phase == "ROLLED_BACK" for state in self.changed_states)),
            "AutomaticDisruptionPauses": float(sum(not pause.is_intentional for pause in self.pauses.items)),
            "OperatorDisruptionPauses": float(sum(pause.is_intentional for pause in self.pauses.items)),
            "SavingsUsdPerHour": saved_usd_per_hour,
        }

    def _advance_command(self, name: str) -> DecisionProcess[None]:
        """Perform one step of the command *name*; recording that all replacements were requested is a second step."""
        if self.is_stopped:
            return
        previous_state = self.command_states[name]
        other_states = [state for other_name, state in self.command_states.items() if other_name != name]
        step = advance_command(
            self.cluster_state,
            previous_state,
            lambda cluster_state, command: validate_command(
                cluster_state,
                command,
                list_command_nodes(other_states),
                node_by_pod=find_expected_nodes(cluster_state, other_states),
                options=self.scheduling_options,
                settings=self.disruption_settings,
            ),
            time_limit=compute_command_timeout(self.command_states.values()),
            pauses=self.pauses,
        )
        next_state = record_moved_pods(step.command_state, self.cluster_state, self.outcome_window)
        if next_state != previous_state and not (yield from self._write_state(next_state)):
            return
        outcomes = yield from self._apply_actions(step.actions)
        create_outcomes = [outcome for outcome in outcomes if isinstance(outcome.action, CreateNodeClaim)]
        if create_outcomes and all(outcome.result == "done" for outcome in create_outcomes):
            yield from self._write_state(with_launched_phase(self.command_states[name], self.cluster_state.taken_at))

    def _record_failed_outcomes(self) -> DecisionProcess[None]:
        """Remember which commands moved pods that fail, so that a pause outlasts the failure."""
        cluster = self.cluster_state.snapshot
        states = [state for state in self.command_states.values() if state.phase != "UNKNOWN"]
        for command_state in with_recorded_failures(check_outcomes(cluster, states, self.outcome_window)):
            if self.is_stopped or not (yield from self._write_state(command_state, is_reported=False)):
                return

    def _write_state(self, command_state: CommandState, *, is_reported: bool = True) -> DecisionProcess[bool]:
        """Write *command_state*; return whether it was written. With *is_reported*, the journal reports its phase."""
        result: CommandState | Problem | None = yield WriteCommandState(command_state=command_state)
        if result is None:
            self.is_stopped, self.write_failure = True, LEASE_LOST
        elif isinstance(result, Problem):
            self.write_failure = f"command {result.name} could not be recorded"
            self.problems.append(result)
        else:
            self.command_states[result.command.command_id] = result
            if is_reported:
                self.changed_states.append(result)
        return isinstance(result, CommandState)

    def _apply_actions(self, actions: Iterable[Action]) -> DecisionProcess[tuple[Outcome, ...]]:
        new_actions = tuple(action for action in actions if self._is_new(action))
        outcomes: tuple[Outcome, ...] = yield PerformActions(actions=new_actions, is_guarded=True)
        self.outcomes.extend(outcomes)
        return outcomes

    def _is_new(self, action: Action) -> bool:
        """Return whether *action* is not a follow-up, or wakes a function sooner than the follow-ups before it."""
        if not isinstance(action, FollowUp):
            return True
        shortest_delay = self.requeue_delays.get(action.function)
        if shortest_delay is None or action.after < shortest_delay:
            self.requeue_delays[action.function] = action.after
            return True
        return False


def build_orchestration_queue(
    cluster_state: ClusterState,
    command_states: Iterable[CommandState],
    pause_settings: PauseSettings,
    scheduling_options: SchedulingOptions,
    disruption_settings: DisruptionSettings,
    *,
    is_stopped: bool,
) -> OrchestrationQueue:
    """Build the queue for *command_states*; with *is_stopped*, no command is advanced."""
    state_by_id = {command_state.command.command_id: command_state for command_state in command_states}
    active_pauses, pause_problems = find_pauses(
        cluster_state.snapshot, cluster_state.nodes, state_by_id.values(), pause_settings
    )
    return OrchestrationQueue(
        cluster_state=cluster_state,
        scheduling_options=scheduling_options,
        disruption_settings=disruption_settings,
        command_states=state_by_id,
        pauses=active_pauses,
        problems=list(pause_problems),
        outcome_window=pause_settings.outcome_window,
        is_stopped=is_stopped,
    )
