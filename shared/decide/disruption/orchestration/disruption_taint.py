"""Proposed disruption in the cluster: a taint on the Node, and a condition with the reason on the NodeClaim."""

from datetime import datetime
from typing import Final

import msgspec

from shared.model.core.conditions import encode_conditions, with_condition, without_condition
from shared.model.core.metadata import Condition, find_condition
from shared.model.core.taints import DISRUPTED, with_disrupted_taint, without_disrupted_taint
from shared.model.decisions.action import Action, PatchStatus, TaintNode
from shared.model.karpenter.node_claim import NodeClaim
from shared.state.state_node import StateNode, is_deleting_or_marked

DISRUPTION_REASON_CONDITION: Final = "DisruptionReason"


def get_disruption_reason(claim: NodeClaim | None) -> str:
    """Return the reason why the NodeClaim is proposed for disruption; "" if it is not."""
    reason_condition = find_condition(claim.conditions, DISRUPTION_REASON_CONDITION) if claim is not None else None
    return reason_condition.reason if reason_condition is not None and reason_condition.status == "True" else ""


def mark_node(state: StateNode, reason: str, now: datetime) -> tuple[Action, ...]:
    """Taint the Node and set the condition; if a part of this is lost, the delay starts again."""
    claim = state.claim
    if claim is None:
        return ()
    message = f"proposed for disruption: {reason}"
    other_conditions = without_condition(claim.conditions, DISRUPTION_REASON_CONDITION)
    conditions = with_condition(
        other_conditions, DISRUPTION_REASON_CONDITION, "True", reason, reason, now, claim.meta.generation
    )
    return (*_set_taint(state, message, is_tainted=True), _patch_conditions(claim, conditions, message))


def find_mark_time(state: StateNode, reason: str) -> datetime | None:
    """Return since when both the taint and *reason* are present; None if they are not."""
    if state.node is None or state.claim is None or DISRUPTED not in state.node.taints:
        return None
    reason_condition = find_condition(state.claim.conditions, DISRUPTION_REASON_CONDITION)
    return (
        reason_condition.since
        if get_disruption_reason(state.claim) == reason and reason_condition is not None
        else None
    )


def is_marked_for_disruption(state: StateNode) -> bool:
    """Return whether the taint or the condition is present and the node is not deleting."""
    is_tainted = state.node is not None and DISRUPTED in state.node.taints
    return (is_tainted or bool(get_disruption_reason(state.claim))) and not is_deleting_or_marked(state)


def unmark_node(state: StateNode) -> tuple[Action, ...]:
    """Remove the taint and the condition from a node that stays."""
    node, claim = state.node, state.claim
    if node is None or claim is None or is_deleting_or_marked(state):
        return ()
    message = "its disruption was cancelled"
    taints = _set_taint(state, message, is_tainted=False)
    if not get_disruption_reason(claim) or not state.is_initialized():
        return taints
    return (
        *taints,
        _patch_conditions(claim, without_condition(claim.conditions, DISRUPTION_REASON_CONDITION), message),
    )


def _set_taint(state: StateNode, message: str, *, is_tainted: bool) -> tuple[TaintNode, ...]:
    node = state.node
    if node is None:
        return ()
    taints = with_disrupted_taint(node.taints) if is_tainted else without_disrupted_taint(node.taints)
    if sorted(taints) == sorted(node.taints):
        return ()
    return (TaintNode(name=node.name, resource_version=node.meta.resource_version, taints=taints, message=message),)


def _patch_conditions(claim: NodeClaim, conditions: tuple[Condition, ...], message: str) -> PatchStatus:
    body = msgspec.json.encode({"conditions": encode_conditions(conditions)}).decode()
    version = claim.meta.resource_version
    return PatchStatus(kind="NodeClaim", name=claim.name, resource_version=version, status=body, message=message)
