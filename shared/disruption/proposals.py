"""Proposals: a disruption in two calls, without a memory.

The first taints the Node and says why on the claim; a later one looks again and either deletes the claim or takes
both back. What was begun and never finished is taken back too.
"""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.disruption.budgets import is_going
from shared.disruption.candidates import Candidate
from shared.model.action import Action, PatchStatus, TaintNode
from shared.model.conditions import conditions_json, with_condition, without_condition
from shared.model.labels import DISRUPTED_TAINT
from shared.model.nodes import NodeClaim
from shared.model.objects import Condition, condition
from shared.model.state import StateNode
from shared.model.taints import DISRUPTED

VALIDATION: Final = timedelta(seconds=5)
"""How long a proposal stands before it is looked at again."""
CONDITION: Final = "DisruptionReason"


def reason_of(claim: NodeClaim | None) -> str:
    """Answer why the claim is proposed for disruption; "" if it is not."""
    known = condition(claim.conditions, CONDITION) if claim is not None else None
    return known.reason if known is not None and known.status == "True" else ""


def propose(candidate: Candidate, reason: str, now: datetime) -> tuple[Action, ...]:
    """Taint, and say why; on a proposal that stands but has lost its taint, time begins again."""
    taints = _taint(candidate.state, f"proposed for disruption: {reason}", tainted=True)
    known = without_condition(candidate.claim.conditions, CONDITION)
    generation = candidate.claim.meta.generation
    new = with_condition(known, CONDITION, "True", reason, reason, now, generation)
    return (*taints, _write(candidate.claim, new, f"proposed for disruption: {reason}"))


def is_standing(candidate: Candidate, reason: str) -> bool:
    """Whether taint and reason are both there."""
    return reason_of(candidate.claim) == reason and DISRUPTED in candidate.node.taints


def is_mature(candidate: Candidate, now: datetime) -> bool:
    """Whether the proposal has stood long enough to be decided."""
    known = condition(candidate.claim.conditions, CONDITION)
    return known is not None and known.since is not None and now - known.since >= VALIDATION


def roll_back(state: StateNode, reasons: frozenset[str]) -> tuple[Action, ...]:
    """Take back what a proposal for one of *reasons*, or for none, has left on a node that stays."""
    node, claim = state.node, state.claim
    if node is None or claim is None or is_going(state):
        return ()
    reason = reason_of(claim)
    if reason and reason not in reasons:
        return ()
    taints = _taint(state, "it is not disrupted after all", tainted=False)
    if not reason or not state.is_initialized():
        return taints
    rest = without_condition(claim.conditions, CONDITION)
    return (*taints, _write(claim, rest, "it is not disrupted after all"))


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
