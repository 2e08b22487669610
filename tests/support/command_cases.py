"""Commands in all their phases, for the tests of disruption and its effects."""

from datetime import datetime, timedelta
from typing import Any

from shared.model.cluster import ClusterSnapshot
from shared.model.core import labels
from shared.model.core.metadata import Condition, ObjectMeta
from shared.model.core.taints import DISRUPTED
from shared.model.decisions.action import CreateNodeClaim
from shared.model.decisions.command import (
    CommandInvalidation,
    CommandReason,
    CommandState,
    CommandTarget,
    DisruptionCommand,
    Method,
    Phase,
    build_command,
)
from shared.model.karpenter.node_claim import NodeClaim
from shared.state.cluster_state import ClusterState
from tests.support.lifecycle_cases import (
    CLASS,
    NOW,
    STAGES,
    Case,
    make_claim,
    make_cluster,
    make_node,
    make_provider_id,
    make_true_conditions,
)

FEW_SECONDS: timedelta = timedelta(seconds=30)


def make_target(name: str = "a", pool: str = "default") -> CommandTarget:
    return CommandTarget(
        node=f"node-{name}", claim=name, claim_uid=f"uid-{name}", provider_id=make_provider_id(name), pool=pool
    )


def make_replacement(name: str = "new") -> CreateNodeClaim:
    return CreateNodeClaim(claim=NodeClaim(meta=ObjectMeta(name=name), node_class=CLASS), message="cheaper")


def make_command(
    *names: str,
    reason: CommandReason = "Underutilized",
    method: Method = "SingleNode",
    replacements: tuple[str, ...] = (),
) -> DisruptionCommand:
    """Return a command about nodes of *names*, replaced by claims named *replacements*."""
    targets = tuple(make_target(name) for name in names or ("a",))
    return build_command(
        reason=reason,
        method=method,
        targets=targets,
        replacements=tuple(map(make_replacement, replacements)),
        message="why",
    )


def make_emptiness_command(*names: str) -> DisruptionCommand:
    return make_command(*names, reason="Empty", method="Emptiness")


def make_command_state(
    command: DisruptionCommand, phase: Phase = "PROPOSED", since: datetime = NOW - FEW_SECONDS, **fields: Any
) -> CommandState:
    state_fields = {"phase_since": since, "proposed_at": since} | fields
    return CommandState(command=command, phase=phase, **state_fields)


def make_disruption_reason(reason: str = "Underutilized", since: datetime = NOW - FEW_SECONDS) -> Condition:
    return Condition(type="DisruptionReason", status="True", reason=reason, message=reason, since=since)


def make_proposed_pair(
    name: str = "a", reason: str = "Underutilized", since: datetime = NOW - FEW_SECONDS
) -> tuple[Case, Case]:
    """Return claim and Node of a proposed candidate."""
    node_claim = make_claim(name, conditions=(make_disruption_reason(reason, since), *make_true_conditions(*STAGES)))
    return node_claim, make_node(name, taints=(DISRUPTED,))


def make_replacement_claim(name: str = "new", command_id: str = "", *, fit: bool = False, **fields: Case) -> NodeClaim:
    """Return the claim of a replacement that is launched, or initialized if *fit*."""
    conditions = make_true_conditions(*STAGES) if fit else make_true_conditions("Launched")
    return make_claim(name, conditions=conditions, annotations={labels.COMMAND: command_id}, **fields)


def make_command_context(*machines: tuple[Case, Case | None], **fields: Case) -> ClusterState:
    """Return the command context of claims with their Nodes."""
    return ClusterState(make_cluster_with_nodes(*machines, **fields))


def make_cluster_with_nodes(*machines: tuple[Case, Case | None], **fields: Case) -> ClusterSnapshot:
    claims = tuple(node_claim for node_claim, _ in machines if node_claim is not None)
    nodes = tuple(cluster_node for _, cluster_node in machines if cluster_node is not None)
    return make_cluster(node_claims=claims, nodes=nodes, **fields)


def approve_command(of_cluster: ClusterState, command: DisruptionCommand) -> CommandInvalidation | None:
    del of_cluster, command
    return None


def reject_command(of_cluster: ClusterState, command: DisruptionCommand) -> CommandInvalidation | None:
    del of_cluster
    return CommandInvalidation(
        message=f"{command.targets[0].node} has a new pod", nodes=frozenset({command.targets[0].node})
    )
