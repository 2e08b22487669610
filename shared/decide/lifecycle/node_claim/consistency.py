"""Consistency of a node with its instance type: a node with less of a resource than expected gets an event."""

from typing import Final

import msgspec

from shared.decide.common.events import build_event
from shared.decide.lifecycle.reconcile_context import LifecycleContext, StepResult
from shared.model.core.conditions import with_condition
from shared.model.core.metadata import find_condition, is_condition_true
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.node import Node
from shared.state.node_claim_state import NodeClaimState

MIN_CAPACITY_PERCENT: Final = 90
CONSISTENT_STATE_FOUND: Final = "ConsistentStateFound"


def check_consistency(claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:
    """Compare an initialized node's capacity with its NodeClaim's, for the resources that the NodeClaim requests."""
    claim = claim_state.claim
    if len(claim_state.nodes) != 1 or not claim.provider_id or not is_condition_true(claim.conditions, "Initialized"):
        return StepResult(claim=claim)
    shortfall = _find_shortfall(claim, claim_state.nodes[0])
    status_fields = ("False", "ConsistencyCheckFailed", shortfall) if shortfall else ("True", "", "")
    old_condition = find_condition(claim.conditions, CONSISTENT_STATE_FOUND)
    conditions = with_condition(
        claim.conditions, CONSISTENT_STATE_FOUND, *status_fields, context.now, claim.meta.generation
    )
    is_news = shortfall and (old_condition is None or old_condition.message != shortfall)
    event = build_event("NodeClaim", claim.meta, "FailedConsistencyCheck", shortfall, context.now, type_="Warning")
    return StepResult(claim=msgspec.structs.replace(claim, conditions=conditions), after=(event,) if is_news else ())


def _find_shortfall(claim: NodeClaim, node: Node) -> str:
    for name in claim.requests.list_names():
        expected, actual = claim.capacity[name], node.capacity[name]
        if expected > 0 and actual * 100 < expected * MIN_CAPACITY_PERCENT:
            percent = actual * 100 // expected
            return f"node {node.name} has {percent}% of the {name} that the instance type should have"
    return ""
