"""Proposals, as the cluster shows them: a taint keeps pods from the Node, a condition of its claim says why."""

from datetime import datetime
from typing import Final

import msgspec

from shared.disruption.budgets import is_going
from shared.model.action import Action, PatchStatus, TaintNode
from shared.model.conditions import conditions_json, with_condition, without_condition
from shared.model.labels import DISRUPTED_TAINT
from shared.model.nodes import NodeClaim
from shared.model.objects import Condition, condition
from shared.model.state import StateNode
from shared.model.taints import DISRUPTED

CONDITION: Final = "DisruptionReason"


def reason_of(claim: NodeClaim | None) -> str:
    """Answer why the claim is proposed for disruption; "" if it is not."""
    known = condition(claim.conditions, CONDITION) if claim is not None else None
    return known.reason if known is not None and known.status == "True" else ""


def mark(state: StateNode, reason: str, now: datetime) -> tuple[Action, ...]:
    """Taint the Node, and say why on the claim; where half of that was lost, time begins again."""
    claim = state.claim
    if claim is None:
        return ()
    why = f"proposed for disruption: {reason}"
    known = without_condition(claim.conditions, CONDITION)
    new = with_condition(known, CONDITION, "True", reason, reason, now, claim.meta.generation)
    return (*_taint(state, why, tainted=True), _write(claim, new, why))


def marked_since(state: StateNode, reason: str) -> datetime | None:
    """Answer since when taint and *reason* are both there; None: they are not."""
    if state.node is None or state.claim is None or DISRUPTED not in state.node.taints:
        return None
    known = condition(state.claim.conditions, CONDITION)
    return known.since if reason_of(state.claim) == reason and known is not None else None


def is_touched(state: StateNode) -> bool:
    """Whether a taint or a reason is there, and the node is not going yet."""
    tainted = state.node is not None and DISRUPTED in state.node.taints
    return (tainted or bool(reason_of(state.claim))) and not is_going(state)


def unmark(state: StateNode) -> tuple[Action, ...]:
    """Take back taint and reason from a node that stays."""
    node, claim = state.node, state.claim
    if node is None or claim is None or is_going(state):
        return ()
    why = "it is not disrupted after all"
    taints = _taint(state, why, tainted=False)
    if not reason_of(claim) or not state.is_initialized():
        return taints
    return (*taints, _write(claim, without_condition(claim.conditions, CONDITION), why))


def _taint(state: StateNode, why: str, *, tainted: bool) -> tuple[TaintNode, ...]:
    node = state.node
    if node is None:
        return ()
    others = tuple(taint for taint in node.taints if taint.key != DISRUPTED_TAINT)
    taints = (*others, DISRUPTED) if tainted else others
    if sorted(taints) == sorted(node.taints):
        return ()
    return (TaintNode(name=node.name, resource_version=node.meta.resource_version, taints=taints, why=why),)


def _write(claim: NodeClaim, conditions: tuple[Condition, ...], why: str) -> PatchStatus:
    body = msgspec.json.encode({"conditions": conditions_json(conditions)}).decode()
    version = claim.meta.resource_version
    return PatchStatus(kind="NodeClaim", name=claim.name, resource_version=version, status=body, why=why)
