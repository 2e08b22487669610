"""Surge drain of a disruption command: before its nodes are removed, Deployments start new pods on other nodes.

The nodes are tainted since the proposal, so no new pod is scheduled there. Each Deployment is restarted once for a
command: the annotation of its pod template is the command and the time of its proposal, so a repeated write changes
nothing. The Deployment controller removes an old pod when the new pod is available; when no such pod is left on the
nodes, the command continues as without a surge drain.

After a timeout the command fails and its nodes stay. The rollout is not reverted: the templates are equal, the old pods
run until the new ones are available, and a second change could collide with a rollout that a person has begun.
"""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Final

import msgspec

from shared.decide.common.events import build_event
from shared.decide.common.requeue_delays import compute_requeue_delay
from shared.decide.disruption.candidates import explain_surge_block
from shared.decide.disruption.orchestration.command_actions import describe_to_nodes
from shared.decide.disruption.orchestration.command_results import (
    CommandTransition,
    advance_committed,
    commit_command,
    explain_protection,
    fail_command,
    roll_back_command,
)
from shared.decide.disruption.orchestration.command_state import MAX_COMMAND_TIMEOUT, with_phase
from shared.decide.disruption.orchestration.command_targets import list_staying_targets
from shared.decide.disruption.orchestration.disruption_taint import find_mark_time, mark_node
from shared.model.core.formatting import format_count, join_names
from shared.model.core.units import format_instant
from shared.model.decisions.action import Action, FollowUp, RestartDeployment
from shared.model.decisions.command import CommandState, DisruptionCommand
from shared.model.kubernetes.workloads import DEFAULT_PROGRESS_DEADLINE, Workload
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode
from shared.state.surge_drain import Surge

SURGE_DRAIN_REASON: Final = "SurgeDraining"
"""Reason of the events on the nodes and Deployments."""
MAX_NAMES_SHOWN: Final = 3


class SurgePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The surge drains that the nodes of a command still need; Deployments are sorted by name."""

    waiting: tuple[Surge, ...] = ()
    """The pods that must be replaced before the nodes are drained."""
    restartable: tuple[Workload, ...] = ()
    """Deployments that can be restarted now."""
    refusal: str = ""
    """Why a pod can be neither replaced nor evicted."""

    def describe(self) -> str:
        """Return what the command waits for."""
        names = join_names((surge.pod.name for surge in self.waiting), MAX_NAMES_SHOWN)
        refusal = next((f"; {surge.refusal}" for surge in self.waiting if surge.refusal), "")
        return f"waiting for new pods in place of {format_count(len(self.waiting), 'pod')}: {names}{refusal}"


def plan_surge_drain(cluster_state: ClusterState, command_state: CommandState) -> SurgePlan:
    """Return the surge drains that the remaining nodes of the command need now."""
    restart = build_restart(command_state)
    surges, refusal = list[Surge](), ""
    for state in list_staying_targets(cluster_state, command_state.command):
        state_surges = [
            surge for pod in state.pods if (surge := cluster_state.surge_drains.find_surge(pod, restart)) is not None
        ]
        surges += state_surges
        refusal = refusal or _explain_lasting_block(state, command_state.command, state_surges)
    waiting = tuple(surge for surge in surges if not surge.refusal or surge.is_temporary)
    deployments = {
        surge.deployment.name: surge.deployment
        for surge in waiting
        if not surge.refusal and surge.deployment is not None
    }
    return SurgePlan(
        waiting=waiting,
        restartable=tuple(
            deployment for _, deployment in sorted(deployments.items()) if not _is_restarted(deployment, restart)
        ),
        refusal=refusal,
    )


def _explain_lasting_block(state: StateNode, command: DisruptionCommand, surges: Iterable[Surge]) -> str:
    """Return why a pod of the node can be neither replaced nor evicted; "" if the drain of the node ends anyway."""
    claim = state.claim
    if command.reason == "Drifted" and claim is not None and claim.termination_grace_period is not None:
        return ""
    return next((block for surge in surges if not surge.is_temporary and (block := explain_surge_block(surge))), "")


def build_restart(command_state: CommandState) -> str:
    """Return the annotation of Deployments that the command restarts; a repeated proposal has another one."""
    return f"{command_state.command.command_id} {format_instant(command_state.proposed_at)}"


def begin_drain(cluster_state: ClusterState, command_state: CommandState) -> CommandTransition:
    """Commit the command, or first begin the surge drains that its nodes need."""
    surge_plan = plan_surge_drain(cluster_state, command_state)
    if not surge_plan.waiting:
        return commit_command(cluster_state, command_state)
    next_state = with_phase(command_state, "SURGING", cluster_state.taken_at, surge_plan.describe())
    return CommandTransition(
        command_state=next_state, actions=_build_actions(cluster_state, next_state, surge_plan, timedelta())
    )


def advance_surging(cluster_state: ClusterState, command_state: CommandState) -> CommandTransition:
    """SURGING: restart the remaining Deployments, and wait until none of their pods is left on the nodes."""
    command, now = command_state.command, cluster_state.taken_at
    staying_nodes = list_staying_targets(cluster_state, command)
    if not staying_nodes:
        return advance_committed(
            cluster_state, with_phase(command_state, "INITIALIZED", now, "its nodes were deleted by another client")
        )
    surge_plan = plan_surge_drain(cluster_state, command_state)
    protection = explain_protection(cluster_state, command, staying_nodes)
    if protection or surge_plan.refusal:
        return roll_back_command(command_state, protection or surge_plan.refusal, now)
    if not surge_plan.waiting:
        return commit_command(cluster_state, command_state)
    age = now - command_state.phase_since
    if age > compute_surge_timeout(surge_plan):
        message = f"surge drain timed out: {surge_plan.describe()}"
        return fail_command(command_state, message, now, tuple(_report_timeout(cluster_state, surge_plan)))
    return CommandTransition(
        command_state=command_state, actions=_build_actions(cluster_state, command_state, surge_plan, age)
    )


def compute_surge_timeout(surge_plan: SurgePlan) -> timedelta:
    """Return how long the new pods may take: the longest progressDeadlineSeconds, at most an hour."""
    deadlines = (
        surge.deployment.rollout.progress_deadline
        for surge in surge_plan.waiting
        if surge.deployment is not None and surge.deployment.rollout is not None
    )
    return min(max(deadlines, default=DEFAULT_PROGRESS_DEADLINE), MAX_COMMAND_TIMEOUT)


def _build_actions(
    cluster_state: ClusterState, command_state: CommandState, surge_plan: SurgePlan, age: timedelta
) -> tuple[Action, ...]:
    """Return the actions of a step: taint the nodes again if necessary, restart Deployments, and run again soon.

    No Deployment is restarted before all nodes are tainted: its new pods could be scheduled there.
    """
    command, now = command_state.command, cluster_state.taken_at
    marks = [
        action
        for state in list_staying_targets(cluster_state, command)
        if find_mark_time(state, command.reason) is None
        for action in mark_node(state, command.reason, now)
    ]
    restarts = () if marks else surge_plan.restartable
    node_names = join_names(sorted(command.list_node_names()), MAX_NAMES_SHOWN)
    message = f"Restarted, so that new pods run before its pods leave {node_names} ({command.reason})"
    return (
        *marks,
        *(_restart_deployment(deployment, command_state) for deployment in restarts),
        *(build_event("Deployment", deployment.meta, SURGE_DRAIN_REASON, message, now) for deployment in restarts),
        *describe_to_nodes(cluster_state, command, SURGE_DRAIN_REASON, surge_plan.describe()),
        FollowUp(
            function="disrupt",
            after=compute_requeue_delay(age),
            message=f"{command.command_id} is waiting for new pods",
        ),
    )


def _restart_deployment(deployment: Workload, command_state: CommandState) -> RestartDeployment:
    return RestartDeployment(
        namespace=deployment.meta.namespace,
        name=deployment.meta.name,
        resource_version=deployment.meta.resource_version,
        restart=build_restart(command_state),
        message=f"surge drain for {command_state.command.reason}",
    )


def _report_timeout(cluster_state: ClusterState, surge_plan: SurgePlan) -> Iterator[Action]:
    """Yield a warning on each Deployment whose new pods did not become available."""
    deployments = {surge.deployment.name: surge.deployment for surge in surge_plan.waiting if surge.deployment}
    for _, deployment in sorted(deployments.items()):
        target = f"deployment {deployment.meta.name} -n {deployment.meta.namespace}"
        message = (
            "The new pods were not available in time, so the old pods and their nodes stay; the rollout continues: see "
            f"`kubectl rollout status {target}`, or revert it with `kubectl rollout undo {target}`"
        )
        yield build_event(
            "Deployment", deployment.meta, "SurgeDrainTimedOut", message, cluster_state.taken_at, type_="Warning"
        )


def _is_restarted(deployment: Workload, restart: str) -> bool:
    return deployment.rollout is not None and deployment.rollout.surge_drain == restart
