"""Decisions about a snapshot: the functions of the same names, which read a ClusterState."""

from typing import Any

from shared.decide.disruption.orchestration import validation
from shared.decide.launch.fleets import launch_planning
from shared.decide.launch.fleets.launch_planning import LaunchPlan, LaunchPolicy
from shared.decide.lifecycle import reconcile
from shared.decide.provisioning import capacity_buffers, provisioner
from shared.decide.provisioning.capacity_buffers import BufferedPlacement
from shared.decide.scheduling import scheduler
from shared.model.cluster import ClusterSnapshot
from shared.model.decisions.action import Action
from shared.model.decisions.command import CommandInvalidation, DisruptionCommand
from shared.model.decisions.placement import Placement
from shared.state.cluster_state import ClusterState


def solve(cluster: ClusterSnapshot, **options: Any) -> Placement:
    """Return the placement of the pending pods of *cluster*."""
    return scheduler.solve(ClusterState(cluster), **options)


def plan_with_buffers(cluster: ClusterSnapshot, **options: Any) -> BufferedPlacement:
    """Return the placement of pods and buffer pods."""
    return capacity_buffers.plan_with_buffers(ClusterState(cluster), **options)


def build_placement_actions(cluster: ClusterSnapshot, placement: Placement) -> tuple[Action, ...]:
    """Return the actions for *placement*."""
    return provisioner.build_placement_actions(ClusterState(cluster), placement)


def decide_lifecycle(cluster: ClusterSnapshot, **options: Any) -> tuple[Action, ...]:
    """Return the lifecycle actions for *cluster*."""
    return reconcile.decide_lifecycle(ClusterState(cluster), **options)


def validate_command(
    cluster: ClusterSnapshot, command: DisruptionCommand, command_nodes: frozenset[str] = frozenset(), **options: Any
) -> CommandInvalidation | None:
    """Return why *command* must not be executed."""
    return validation.validate_command(ClusterState(cluster), command, command_nodes, **options)


def plan_launches(cluster: ClusterSnapshot, policy: LaunchPolicy | None = None) -> LaunchPlan:
    """Return the launches for the claims of *cluster* without an instance."""
    return launch_planning.plan_launches(ClusterState(cluster), policy)
